package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"dropbell/musttest"
)

const claimsSecret = "a secret that only this test knows"

var claimsNow = time.Unix(1_800_000_000, 500_000_000)

func claimsVerifier(tb testing.TB, o TokenOptions) *Tokens {
	tb.Helper()
	o.Secret, o.Now, o.Log = claimsSecret, func() time.Time { return claimsNow }, slog.New(slog.DiscardHandler)
	t, err := NewTokens(context.Background(), o)
	musttest.OK(tb, err)
	return t
}

// TestPlainClaimsAreThoseOfTheParser: claims accepted by plainClaims are accepted by the general
// parser with the same values. The test runs over all claims that can be put together from good,
// bad, odd and repeated parts.
func TestPlainClaimsAreThoseOfTheParser(t *testing.T) {
	now := claimsNow.Unix()
	parts := []string{`"sub":"7"`, `"sub":"8"`, `"sub":7`, `"sub":""`, `"sub":"\u0037"`, `"SUB":"7"`, `"sub":null`, `"sub":" 7"`,
		`"iss":"i"`, `"iss":"j"`, `"aud":"a"`, `"aud":["a"]`, `"aud":["b","a"]`, `"aud":""`, `"jti":"x"`, `"jti":5`, `"nonce":"n"`, `"token_use":"id"`, `"typ":"ID"`, `"role":"x"`,
		`"kty":"RSA"`, `"keys":"x"`, `"ciphertext":"x"`, `"payload":"x"`, `"signatures":"x"`, `"KTY":"x"`, `"Keys":"x"`, `"payload":"x","signatures":"x"`}
	for _, name := range []string{"exp", "iat", "nbf"} {
		for _, at := range []int64{now - 100, now - 20, now - 1, now, now + 1, now + 20, now + 100, 0, 99999999999, 999999999999} {
			parts = append(parts, fmt.Sprintf(`%q:%d`, name, at))
		}
		parts = append(parts, fmt.Sprintf(`%q:%d.25`, name, now+50), fmt.Sprintf(`%q:"%d"`, name, now+50), `"`+name+`":1e12`, `"`+name+`":-5`, `"`+name+`":null`, `"`+name+`":01`)
	}
	random := rand.New(rand.NewPCG(1, 2))
	plain, parsed := 0, 0
	for _, o := range []TokenOptions{{}, {Issuer: "i"}, {Audience: "a"}, {Issuer: "i", Audience: "a"}} {
		tokens := claimsVerifier(t, o)
		for range 20_000 {
			list := []string{`"sub":"7"`, fmt.Sprintf(`"exp":%d`, now+60)}[random.IntN(2):]
			for range random.IntN(4) {
				list = append(list, parts[random.IntN(len(parts))])
			}
			if o.Issuer != "" && random.IntN(4) > 0 {
				list = append(list, `"iss":"i"`)
			}
			if o.Audience != "" && random.IntN(4) > 0 {
				list = append(list, `"aud":"a"`)
			}
			random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			payload := "{" + strings.Join(list, []string{",", " , ", ", \n"}[random.IntN(3)]) + "}" + []string{"", "", "", "}", " "}[random.IntN(5)]
			head := tokenHeader{algorithm: "HS256", kind: []string{"", "jwt", "at+jwt", "id+jwt"}[random.IntN(4)]}
			c, ok := tokens.plainClaims(head, []byte(payload))
			claims, err := jwt.ParseInsecure([]byte(payload))
			if err == nil {
				err = tokens.validate(head, claims)
			}
			if err == nil {
				parsed++
			}
			if !ok {
				continue
			}
			plain++
			if err != nil {
				t.Fatalf("%s (%+v, %q) is refused by the parser: %v", payload, o, head.kind, err)
			}
			subject, _ := claims.Subject()
			expires, _ := claims.Expiration()
			issued, dated := claims.IssuedAt()
			if c.subject != subject || !c.expires.Equal(expires) || c.dated != dated || dated && !c.issued.Equal(issued) {
				t.Fatalf("%s: %+v, want %s %s %s", payload, c, subject, expires, issued)
			}
		}
	}
	if plain < 1000 || parsed < plain {
		t.Errorf("%d were plain, %d good", plain, parsed)
	}
}

// BenchmarkUnknownToken measures the cost of a token that is not cached.
func BenchmarkUnknownToken(b *testing.B) {
	for name, claims := range map[string]string{
		"plain":  fmt.Sprintf(`{"exp":%d,"sub":"123456"}`, claimsNow.Unix()+3600),
		"parsed": fmt.Sprintf(`{"exp":%d,"role":"user","sub":"123456"}`, claimsNow.Unix()+3600),
	} {
		b.Run(name, func(b *testing.B) {
			signed, err := jws.Sign([]byte(claims), jws.WithKey(jwa.HS256(), []byte(claimsSecret)))
			musttest.OK(b, err)
			tokens, token := claimsVerifier(b, TokenOptions{}), string(signed)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tokens.verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
