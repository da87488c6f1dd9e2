package campaign_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/campaign"
	"dropbell/domain/user"
)

const secret = "0123456789abcdef0123456789abcdef"

func TestLinkTokens(t *testing.T) {
	links := campaign.Links{Links: user.NewLinks(secret)}
	newer := campaign.Links{Links: user.NewLinks("another0123456789abcdef0123456789," + secret)}
	rapid.Check(t, func(t *rapid.T) {
		r := campaign.Reader{CampaignID: rapid.Int64Min(1).Draw(t, "campaign"), UserID: user.ID(rapid.Int64Min(1).Draw(t, "user")),
			Variant: rapid.IntRange(0, 1).Draw(t, "variant"), Target: rapid.Uint32().Draw(t, "target")}
		token := links.Token(r)
		for _, l := range []campaign.Links{links, newer} {
			if got, err := l.Parse(token); err != nil || got != r {
				t.Fatalf("%+v became %+v %v", r, got, err)
			}
		}
		// A link with one character changed is not valid for any user.
		i := rapid.IntRange(0, len(token)-1).Draw(t, "at")
		other := []byte(token)
		other[i] = "AB"[min(1, strings.Count(token[i:i+1], "A"))]
		if _, err := links.Parse(string(other)); !errors.Is(err, user.ErrLink) {
			t.Fatalf("%s is accepted for %s", other, token)
		}
	})
}

// A link of one purpose is worth nothing for another, nor under another secret.
func TestLinkPurposes(t *testing.T) {
	links := campaign.Links{Links: user.NewLinks(secret)}
	token := links.Token(campaign.Reader{CampaignID: 1, UserID: 2})
	refused := map[string]error{}
	_, _, refused["opt-out"] = user.NewLinks(secret).Parse(token)
	_, refused["campaign"] = links.Parse(user.NewLinks(secret).Token(2, 1))
	_, refused["other secret"] = campaign.Links{Links: user.NewLinks("another0123456789abcdef0123456789")}.Parse(token)
	_, refused["none"] = campaign.Links{}.Parse(token)
	_, refused["empty"] = links.Parse("")
	_, refused["long"] = links.Parse(token + "AA")
	for name, err := range refused {
		if !errors.Is(err, user.ErrLink) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if (campaign.Links{}).Addresses("https://x.example") != nil {
		t.Error("links without a secret")
	}
	if got := links.Addresses("https://x.example/")(1, 2, 0, ""); got != "https://x.example/l/"+token {
		t.Errorf("address %s", got)
	}
}
