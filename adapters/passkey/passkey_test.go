package passkey

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"dropbell/domain/staff"
	"dropbell/musttest"
)

func here() staff.Party { return staff.Party{ID: "drops.example", Origin: "https://drops.example"} }

// TestEnrolAsks: the request to the browser names the site and the member. The console's browser
// test covers a real answer.
func TestEnrolAsks(t *testing.T) {
	c, err := Passkeys{}.Enrol(here(), staff.Owner{Member: staff.Member{ID: 7, Email: "ada@example.com", Name: "Ada"}})
	musttest.OK(t, err)
	var o struct {
		Challenge string
		RP        struct{ ID string }
		User      struct{ ID, Name string }
	}
	if err := json.Unmarshal(c.Options, &o); err != nil || o.RP.ID != "drops.example" || o.User.Name != "ada@example.com" || len(o.Challenge) < 40 {
		t.Errorf("%v %s", err, c.Options)
	}
	if !strings.Contains(string(c.State), o.Challenge) {
		t.Error("the challenge is not kept")
	}
}

func TestAnswersThatProveNothing(t *testing.T) {
	who := staff.Owner{Member: staff.Member{ID: 7, Email: "ada@example.com"}}
	c, err := Passkeys{}.Enrol(here(), who)
	musttest.OK(t, err)
	for name, a := range map[string]staff.PasskeyAnswer{
		"nothing asked":  {Party: here(), Answer: []byte(`{}`)},
		"no site":        {State: c.State, Answer: []byte(`{}`)},
		"no answer":      {Party: here(), State: c.State},
		"no JSON":        {Party: here(), State: c.State, Answer: []byte(`<`)},
		"an empty one":   {Party: here(), State: c.State, Answer: []byte(`{}`)},
		"another type":   {Party: here(), State: c.State, Answer: []byte(`{"id":"AA","rawId":"AA","type":"password","response":{}}`)},
		"no attestation": {Party: here(), State: c.State, Answer: []byte(`{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"e30"}}`)},
	} {
		if _, err := (Passkeys{}).Enrolled(who, a); !errors.Is(err, staff.ErrSecondFactor) {
			t.Errorf("%s enrols: %v", name, err)
		}
		if _, err := (Passkeys{}).Answered(who, a); !errors.Is(err, staff.ErrSecondFactor) {
			t.Errorf("%s answers: %v", name, err)
		}
	}
}
