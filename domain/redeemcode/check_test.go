package redeemcode_test

import (
	"context"
	"encoding/base64"
	"testing"
	"time"

	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/musttest"
)

// checked is a store with one template and one batch.
type checked struct {
	redeemcode.Store
	*fakeGate
	template template.Template
}

func (c checked) Template(context.Context, int64) (template.Template, error) { return c.template, nil }

func (c checked) BatchOf(ctx context.Context, s redeemcode.Serial) (redeemcode.Batch, error) {
	return c.fakeGate.BatchOf(ctx, s)
}

func (c checked) UseOf(ctx context.Context, s redeemcode.Serial) (redeemcode.Use, bool, error) {
	return c.fakeGate.UseOf(ctx, s)
}

// A good code is called good only while its redemption would give a coupon.
func TestCheckSaysWhatWouldHappenNow(t *testing.T) {
	opens := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	keys, err := redeemcode.ParseKeys("1:" + base64.StdEncoding.EncodeToString([]byte("a key of 32 bytes, for tests one")))
	musttest.OK(t, err)
	code, err := keys.Code(1, 417)
	musttest.OK(t, err)
	stored := func(s template.State) func(*template.Template) { return func(t *template.Template) { t.Stored = s } }
	access := func(t *template.Template) {
		t.Stored, t.Obtain, t.Doors = template.Published, template.ByClaim, []template.Door{{Who: template.ToCodes}}
	}
	for _, c := range []struct {
		name  string
		drop  func(*template.Template)
		after time.Duration // since the opening
		want  redeemcode.CheckResult
	}{
		{"open", stored(template.Published), 0, redeemcode.Good},
		{"draft", stored(template.Draft), 0, redeemcode.Unpublished},
		{"ahead", stored(template.Published), -1, redeemcode.NotYet},
		{"paused", stored(template.Paused), 0, redeemcode.Halted},
		{"sold out", func(t *template.Template) { t.Issued = t.Stock }, 0, redeemcode.GoneAll},
		{"over", stored(template.Published), time.Hour, redeemcode.Over},
		{"paused and over", stored(template.Paused), time.Hour, redeemcode.Over},
		{"closed early", stored(template.Closed), 0, redeemcode.Over},
		{"cancelled", stored(template.Cancelled), 0, redeemcode.CalledOff},
		{"not by code", func(t *template.Template) { t.Obtain = template.ByClaim }, 0, redeemcode.NotByCode},
		{"access code ahead", access, -1, redeemcode.Good},
		{"access code, sold out", func(t *template.Template) { access(t); t.Issued = t.Stock }, 0, redeemcode.Good},
		{"access code of a drop that is over", access, time.Hour, redeemcode.Over},
	} {
		drop := template.Template{ID: 7, Stored: template.Published, Spec: template.Spec{Stock: 10, PerUserLimit: 1, OpensAt: opens,
			ClosesAt: opens.Add(time.Hour), ValidHours: 24, Obtain: template.ByCode}}
		c.drop(&drop)
		d := &fakeGate{batch: redeemcode.Batch{ID: 3, TemplateID: 7, First: 1, Count: 1000, Key: 1, State: redeemcode.Ready}}
		s := redeemcode.Service{Store: checked{fakeGate: d, template: drop}, Keys: keys, Now: func() time.Time { return opens.Add(c.after) }}
		f, err := s.Check(t.Context(), staff.System(), code.Text())
		if err != nil || f.Verdict != c.want || f.Template.ID != 7 {
			t.Errorf("%s: %s, of template %d, %v", c.name, f.Verdict, f.Template.ID, err)
		}
		d.used = true
		if f, err := s.Check(t.Context(), staff.System(), code.Text()); err != nil || f.Verdict != redeemcode.Spent {
			t.Errorf("%s, used: %s, %v", c.name, f.Verdict, err)
		}
	}
}
