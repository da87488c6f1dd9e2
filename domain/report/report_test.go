package report_test

import (
	"strings"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/report"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A token opens its own link only, with each of the secrets. A token of another
// purpose opens no report.
func TestLinkTokens(t *testing.T) {
	signed := user.NewLinks("a secret of thirty-two bytes or more, another secret of as many bytes")
	links := report.Links{Links: signed}
	token := links.Token(42)
	if id, err := links.Parse(token); id != 42 || err != nil {
		t.Errorf("%d, %v", id, err)
	}
	replaced := report.Links{Links: user.NewLinks("a newer secret of thirty-two bytes, a secret of thirty-two bytes or more")}
	if id, err := replaced.Parse(token); id != 42 || err != nil {
		t.Errorf("after the secret was replaced: %d, %v", id, err)
	}
	for name, bad := range map[string]string{"empty": "", "nonsense": "x", "cut": token[:len(token)-1], "changed": "B" + token[1:], "longer": token + "A",
		"a campaign's": campaign.Links{Links: signed}.Token(campaign.Reader{CampaignID: 42}), "an opt-out's": signed.Token(42, 1)} {
		if id, err := links.Parse(bad); err == nil {
			t.Errorf("%s opens link %d", name, id)
		}
	}
	if off := (report.Links{}); off.Token(1) != "" || off.Address("https://x", 1) != "" {
		t.Error("links are made without a secret")
	}
	if a := links.Address("https://coupons.example/", 42); a != "https://coupons.example/r/"+token || strings.Contains(a, "//r") {
		t.Errorf("address %q", a)
	}
}

func TestLinkIsValid(t *testing.T) {
	now := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	l := report.Link{ExpiresAt: now}
	if l.Valid(now) || !l.Valid(now.Add(-time.Second)) {
		t.Error("a link ends at its instant")
	}
	if l.RevokedAt = &now; l.Valid(now.Add(-time.Hour)) {
		t.Error("a revoked link is valid")
	}
}

func TestMoney(t *testing.T) {
	f := report.Figures{Template: template.Template{Spec: template.Spec{Kind: template.AmountOff, AmountOff: 1000}}, Total: 100, Issued: 60, Writing: 50,
		Tally: coupon.Tally{Issued: 60, Used: 7, Locked: 3, Expired: 10, Discounted: 6999}}
	if f.Left() != 0 || f.Average() != 1000 {
		t.Errorf("%d left, %d on average", f.Left(), f.Average())
	}
	if n, known := f.Outstanding(); n != 43_000 || !known {
		t.Errorf("outstanding %d, %v", n, known)
	}
	f.Template.Kind = template.PercentOff
	if _, known := f.Outstanding(); known {
		t.Error("a percentage is known without the order")
	}
	f.Tally.Returned, f.Money.Sums = 10, report.Sums{Paid: 1, PaidAmount: 6000, PaidDiscount: 1000}
	if f.Given() != 50 || f.PerCoupon() != 100 {
		t.Errorf("%d given, %d for each", f.Given(), f.PerCoupon())
	}
	if (report.Figures{}).Average() != 0 {
		t.Error("an average of nothing")
	}
}
