package coupons_test

import (
	"errors"
	"testing"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/template"
)

// TestGrantsOfADropThatIsOver: staff can grant coupons after the drop's window
// has ended, but not after they closed the drop themselves. In that case the dry
// run already says so.
func TestGrantsOfADropThatIsOver(t *testing.T) {
	b := newCampaignGrant(t, 10)
	before := b.work(b.upload(true, "user_id", "1", "2"), false)
	b.Exec(`update templates set opens_at = opens_at - interval '4 hours', closes_at = opens_at - interval '3 hours', ended_at = opens_at - interval '3 hours',
		state = 'closed', version = version + 1`)
	if j := b.work(b.upload(true, "user_id", "3"), false); j.Done != 1 {
		t.Errorf("a dry run after the window: %+v", j)
	}
	if j := b.work(b.upload(false, "user_id", "3"), false); j.Done != 1 || b.results(j) != "3:issued" {
		t.Errorf("given after the window: %+v %s", j, b.results(j))
	}
	for over, sql := range map[string]string{
		"closed by staff":         `update templates set ended_at = closes_at - interval '1 minute', version = version + 1`,
		"not valid any longer":    `update templates set ended_at = closes_at, valid_hours = 0, valid_until = now() - interval '1 minute', version = version + 1`,
		"closed, without instant": `update templates set ended_at = null, valid_until = null, valid_hours = 24, version = version + 1`,
	} {
		b.Exec(sql)
		for _, dry := range []bool{true, false} {
			_, err := b.grants.Start(t.Context(), pgtest.Actor, coupon.GrantParams{TemplateID: b.drop.ID, DryRun: dry}, 1, "")
			if !errors.Is(err, template.ErrTransition) {
				t.Errorf("%s, dry run %v: %v", over, dry, err)
			}
		}
		if _, _, err := b.grants.Apply(t.Context(), pgtest.Actor, before.ID, ""); !errors.Is(err, template.ErrTransition) {
			t.Errorf("%s, applied: %v", over, err)
		}
	}
}
