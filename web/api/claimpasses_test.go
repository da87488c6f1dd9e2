package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"

	"dropbell/adapters/lookup"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/claim"
	"dropbell/domain/pass"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/musttest"
	"dropbell/web/api"
)

var passKeys = pass.NewKeys("a-pass-secret-of-32-bytes-for-tests")

// solve solves the puzzle in the answer and returns what ALTCHA would send.
func solve(t testing.TB, a answer) string {
	t.Helper()
	var body struct{ Puzzle pass.Challenge }
	musttest.OK(t, json.Unmarshal(a.Body.Bytes(), &body))
	salt, err1 := hex.DecodeString(body.Puzzle.Parameters.Salt)
	nonce, err2 := hex.DecodeString(body.Puzzle.Parameters.Nonce)
	if err1 != nil || err2 != nil || body.Puzzle.Signature == "" {
		t.Fatalf("the puzzle is %s", a.Body)
	}
	for n := uint32(0); ; n++ {
		sum := sha256.Sum256(binary.BigEndian.AppendUint32(append(append([]byte{}, salt...), nonce...), n))
		if key := hex.EncodeToString(sum[:]); strings.HasPrefix(key, body.Puzzle.Parameters.KeyPrefix) {
			sent, err := json.Marshal(map[string]any{"challenge": body.Puzzle, "solution": map[string]any{"counter": n, "derivedKey": key, "time": 12.5}})
			musttest.OK(t, err)
			return base64.StdEncoding.EncodeToString(sent)
		}
	}
}

// service is a service that checks tokens.
type service struct{ err error }

func (s *service) Verify(_ context.Context, token string) (bool, error) {
	return token == "good", s.err
}

// guarded returns an API whose claims need the passes of protected drops.
func guarded(t testing.TB, checks *service) *fixture {
	return newFixture(t, func(d *api.Deps) {
		templates, err := lookup.New(d.Coupons.ClaimPasses.Templates.(dropsdb.Templates), now)
		musttest.OK(t, err)
		d.Coupons.ClaimPasses.Verifier, d.Coupons.ClaimPasses.Templates = checks, templates
		gate := d.Coupons.Claims.Gate
		d.Coupons.Claims.Gate = &claim.Prefilter{Gate: gate, Templates: templates, Record: gate.(claim.Doors).Gate.(claim.Record), Now: now,
			Admit: func(drop *template.Template, by user.ID, text string) error {
				return passKeys.Admit(drop, by, text, now())
			}}
	})
}

func testClaimPass(t *testing.T) {
	checks := &service{}
	r := guarded(t, checks)
	id, plain := r.open(100), r.open(100)
	r.exec(`update templates set protection = 'standard' where id = $1`, id)
	get := func(user int, body map[string]any, more ...string) answer {
		return r.call(as(token(user), more...), "POST", "/passes/"+id, body)
	}
	claimWith := func(user int, text any) map[string]any { return map[string]any{"template_id": id, "pass": text} }

	if shown := r.want(r.call(as(""), "GET", "/templates/"+id, nil), 200, ""); shown.json["protection"] != "standard" {
		t.Errorf("the drop is shown as %s", shown.Body)
	}
	r.want(r.call(as(token(1)), "POST", "/claims", claimOf(id)), 403, "pass_required")
	offer := r.want(get(1, map[string]any{}), 200, "")
	if offer.json["pass"] != nil || offer.at("ways.0") != "puzzle" || offer.at("ways.1") != "token" || offer.at("ways.2") != "attested" || offer.at("ways.3") != "phone_code" {
		t.Errorf("without evidence: %s", offer.Body)
	}
	solution := solve(t, offer)
	earned := r.want(get(1, map[string]any{"puzzle": solution}), 200, "")
	until, err := time.Parse(time.RFC3339, earned.json["expires_at"].(string))
	if left := time.Until(until); err != nil || left < 29*time.Minute || left > 30*time.Minute || earned.json["puzzle"] != nil {
		t.Errorf("the pass is %s", earned.Body)
	}
	r.want(get(2, map[string]any{"puzzle": solution}), 422, "pass_refused") // another user's
	r.want(get(1, map[string]any{"puzzle": "AAAA"}), 422, "pass_refused")
	r.want(r.call(as(token(2)), "POST", "/claims", claimWith(2, earned.json["pass"])), 403, "pass_required")
	r.want(r.call(as(token(1)), "POST", "/claims", claimWith(1, earned.json["pass"])), 201, "")
	// The general way of reading a claim judges the same pass.
	again := r.want(get(3, map[string]any{"token": "good"}), 200, "")
	r.want(r.call(as(token(3)), "POST", "/claims", `{"pass":"\u00`+hex.EncodeToString([]byte(again.json["pass"].(string)[:1]))+again.json["pass"].(string)[1:]+`","template_id":"`+id+`"}`), 201, "")
	r.want(get(4, map[string]any{"token": "bad"}), 422, "pass_refused")
	checks.err = pass.ErrUnreachable
	r.want(get(4, map[string]any{"token": "good"}), 503, "overloaded")
	r.want(get(4, map[string]any{"phone_code": "123456"}), 409, "phone_code_expired")

	// A drop without protection needs no pass, and ignores one.
	free := r.want(r.call(as(token(1)), "POST", "/passes/"+plain, map[string]any{}), 200, "")
	if free.json["pass"] != nil || free.json["ways"] != nil {
		t.Errorf("without protection: %s", free.Body)
	}
	r.want(r.call(as(token(1)), "POST", "/claims", map[string]any{"template_id": plain, "pass": "x"}), 201, "")

	r.exec(`update templates set protection = 'strict' where id = $1`, id)
	strict := guarded(t, &service{}) // with an empty cache
	strictID := strict.open(100)
	strict.exec(`update templates set protection = 'strict' where id = $1`, strictID)
	offer = strict.want(strict.call(as(token(5)), "POST", "/passes/"+strictID, map[string]any{}), 200, "")
	if offer.at("ways.0") != "token" || offer.json["puzzle"] != nil {
		t.Errorf("a strict drop offers %s", offer.Body)
	}
	attested := sign(jwa.HS256(), []byte(secret), map[string]any{"sub": "6", "exp": time.Now().Add(time.Hour).Unix(), "dropbell_attested": "play_integrity"})
	earned = strict.want(strict.call(as(attested), "POST", "/passes/"+strictID, map[string]any{}), 200, "")
	strict.want(strict.call(as(attested), "POST", "/claims", map[string]any{"template_id": strictID, "pass": earned.json["pass"]}), 201, "")
	puzzle := passKeys.Issue(pass.Pass{Way: pass.Puzzle, IssuedAt: now(), ExpiresAt: now().Add(time.Hour)}, 5, strict.number(`select $1::bigint`, strictID))
	strict.want(strict.call(as(token(5)), "POST", "/claims", map[string]any{"template_id": strictID, "pass": puzzle}), 403, "pass_required")
	strict.want(strict.call(as(token(5)), "POST", "/passes/"+strictID, map[string]any{"puzzle": "e30="}), 422, "pass_refused")

	strict.exec(`update templates set state = 'closed', ended_at = now() where id = $1`, strictID)
	closed := guarded(t, nil)
	closedID := closed.open(1)
	closed.exec(`update templates set protection = 'standard', state = 'closed', ended_at = now() where id = $1`, closedID)
	closed.want(closed.call(as(token(5)), "POST", "/passes/"+closedID, map[string]any{}), 409, "template_not_open")
	closed.want(closed.call(as(token(5)), "POST", "/passes/999", map[string]any{}), 404, "template_not_found")
}
