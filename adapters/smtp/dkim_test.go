package smtp_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// keyOfRFC8463 is the private key of RFC 8463, appendix A.
const keyOfRFC8463 = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="

// verify checks the signature of a mail with the library that made it.
// [TestMailProgramsReadOurMails] uses another library.
func verify(t *testing.T, raw []byte, record string) error {
	t.Helper()
	found, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
		if name != "drop._domainkey.shop.example" {
			t.Errorf("the key is looked for at %s", name)
		}
		return []string{record}, nil
	}})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d signatures, %v", len(found), err)
	}
	return found[0].Err
}

// TestMailsAreSigned verifies mails of all forms that a real server received. Verification fails
// for a header or body that was changed or added on the way.
func TestMailsAreSigned(t *testing.T) {
	seed, err := base64.StdEncoding.DecodeString(keyOfRFC8463)
	musttest.OK(t, err)
	edwards := ed25519.NewKeyFromSeed(seed)
	if got := base64.StdEncoding.EncodeToString(edwards.Public().(ed25519.PublicKey)); got != "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=" {
		t.Fatalf("the public key is %s, not that of RFC 8463", got)
	}
	rivest, err := rsa.GenerateKey(rand.Reader, 2048)
	musttest.OK(t, err)
	for name, key := range map[string]struct {
		dkim   *smtp.DKIM
		record string
	}{
		"ed25519": {&smtp.DKIM{Domain: "shop.example", Selector: "drop", Key: edwards}, smtp.DKIM{Key: edwards}.Record()},
		"rsa":     {&smtp.DKIM{Domain: "shop.example", Selector: "drop", Key: rivest}, smtp.DKIM{Key: rivest}.Record()},
	} {
		t.Run(name, func(t *testing.T) {
			r := new(relay).start(t, nil)
			s := r.sender(t, func(c *smtp.Config) { c.DKIM = key.dkim })
			messages := sendertest.Messages(delivery.Email, 3)
			messages[0].OptOutURL = "https://shop.example/u/AQE?a=1"
			messages[1].To.Name, messages[1].Content = "王小明", &delivery.Content{Title: strings.Repeat("春季满减券 🎉", 20), Text: "开抢\r\n\r\n\r\n", HTML: "<p>开抢 </p>\r\n\r\n"}
			messages[2].Content = &delivery.Content{Title: "t", Text: "only text.  \r\n.\r\n..\r\n \r\n\r\n"}
			for i := range messages {
				want(t, s.Send(t.Context(), messages[i:i+1]), delivery.Delivered)
				raw := r.last(t).raw
				if err := verify(t, raw, key.record); err != nil {
					t.Errorf("mail %d: %v\n%s", i, err, raw)
				}
				for about, changed := range map[string][]byte{
					"a second From":       append([]byte("From: other@evil.example\r\n"), raw...),
					"a second Subject":    append([]byte("Subject: Win\r\n"), raw...),
					"another From":        bytes.Replace(raw, []byte("drops@shop.example"), []byte("drops@evil.example"), 1),
					"another body":        append(bytes.TrimRight(raw, "\r\n"), "x\r\n"...),
					"another opting out":  bytes.Replace(raw, []byte("List-Unsubscribe: <https://shop"), []byte("List-Unsubscribe: <https://evil"), 1),
					"an added opting out": append([]byte("List-Unsubscribe: <https://evil.example>\r\n"), raw...),
				} {
					if bytes.Equal(changed, raw) || about == "an added opting out" && i == 0 {
						continue
					}
					if err := verify(t, changed, key.record); err == nil {
						t.Errorf("mail %d: %s is believed", i, about)
					}
				}
			}
		})
	}
}

// TestTheExampleOfRFC8463: the verifier of these tests accepts the example of RFC 8463, appendix
// A.3, and refuses every changed copy.
func TestTheExampleOfRFC8463(t *testing.T) {
	mail := strings.ReplaceAll(`DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
`, "\n", "\r\n")
	for text, ok := range map[string]bool{mail: true, strings.Replace(mail, "lost", "won", 1): false} {
		found, err := dkim.VerifyWithOptions(strings.NewReader(text), &dkim.VerifyOptions{LookupTXT: func(string) ([]string, error) {
			return []string{"v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="}, nil
		}})
		if err != nil || len(found) != 1 || (found[0].Err == nil) != ok {
			t.Errorf("%v, %+v", err, found)
		}
	}
}

func TestKeysOfSignatures(t *testing.T) {
	encode := func(kind string, der []byte, err error) string {
		musttest.OK(t, err)
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	musttest.OK(t, err)
	good, err := rsa.GenerateKey(rand.Reader, 2048)
	musttest.OK(t, err)
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	musttest.OK(t, err)
	eight := func(key any) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return encode("PRIVATE KEY", der, err)
	}
	for text, ok := range map[string]bool{
		eight(edwards): true,
		eight(good):    true,
		encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(good), nil): true,
		eight(short):                            false,
		"no key":                                false,
		eight(good)[:200]:                       false,
		encode("PRIVATE KEY", []byte("x"), nil): false,
	} {
		if key, err := smtp.ParseDKIMKey(text); (err == nil) != ok || (key == nil) == ok {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// TestReturnPath: reports are mailed back to an address that contains the mail's reference. The
// header that comes back with the report contains the reference, too. A mail without a
// reference, such as a test message, uses the plain address.
func TestReturnPath(t *testing.T) {
	r := new(relay).start(t, nil)
	s := r.sender(t, func(c *smtp.Config) { c.ReturnPath = "bounces@mail.shop.example" })
	refs := feedback.NewRefs("a secret")
	ref := refs.Text(feedback.Ref{Batch: 1 << 62, User: 1 << 62})
	messages := sendertest.Messages(delivery.Email, 2)
	named := *messages[0].Subject
	named.Reference = func(user.ID) string { return ref }
	messages[0].Subject = &named
	want(t, s.Send(t.Context(), messages[:1]), delivery.Delivered)
	got := r.last(t)
	local, _, _ := strings.Cut(got.from, "@")
	if got.from != "bounces+"+ref+"@mail.shop.example" || len(local) > 64 || !bytes.Contains(got.raw, []byte("X-Dropbell-Reference: "+ref+"\r\n")) {
		t.Errorf("from %s\n%s", got.from, got.raw)
	}
	if !bytes.Contains(got.raw, []byte("From: \"Dropbell\" <drops@shop.example>\r\n")) {
		t.Errorf("the reader sees another sender:\n%s", got.raw)
	}
	want(t, s.Send(t.Context(), messages[1:]), delivery.Delivered)
	if got := r.last(t); got.from != "bounces@mail.shop.example" || bytes.Contains(got.raw, []byte("X-Dropbell-Reference")) {
		t.Errorf("from %s\n%s", got.from, got.raw)
	}
}
