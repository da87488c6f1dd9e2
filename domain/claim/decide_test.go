package claim_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

var opens = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func drop(change func(*template.Template)) template.Template {
	t := template.Template{ID: 1, Stored: template.Published, Spec: template.Spec{Stock: 10, PerUserLimit: 1, OpensAt: opens,
		ClosesAt: opens.Add(time.Hour), ValidHours: 24, Obtain: template.ByClaim}}
	if change != nil {
		change(&t)
	}
	return t
}

func TestAdmit(t *testing.T) {
	inside, before, after := opens.Add(time.Minute), opens.Add(-time.Microsecond), opens.Add(time.Hour)
	state := func(s template.State) func(*template.Template) { return func(t *template.Template) { t.Stored = s } }
	byCode := func(t *template.Template) { t.Obtain = template.ByCode }
	early := opens.Add(30 * time.Minute)
	closedEarly := func(t *template.Template) { t.Stored, t.EndedAt = template.Closed, &early }
	closedByClock := func(t *template.Template) { t.Stored, t.EndedAt = template.Closed, &after }
	validUntil := func(t *template.Template) { t.ValidUntil = &early }
	tap, code, grant, campaign := claim.ByTap, claim.ByCode, claim.ByGrant, claim.ByCampaign
	for _, c := range []struct {
		name   string
		drop   func(*template.Template)
		at     time.Time
		by     []claim.Origin
		refuse error
	}{
		{"open", nil, inside, []claim.Origin{tap, grant, campaign}, nil},
		{"at the opening", nil, opens, []claim.Origin{tap, grant}, nil},
		{"just before", nil, before, []claim.Origin{tap}, claim.ErrNotStarted},
		{"staff before", nil, before, []claim.Origin{grant, campaign}, nil},
		{"just before the end", nil, after.Add(-time.Microsecond), []claim.Origin{tap}, nil},
		{"at the end", nil, after, []claim.Origin{tap}, claim.ErrEnded},
		{"staff after the end", nil, after, []claim.Origin{grant, campaign}, nil},
		{"draft", state(template.Draft), inside, []claim.Origin{tap, code, grant, campaign}, template.ErrNotFound},
		{"cancelled", state(template.Cancelled), inside, []claim.Origin{tap, grant, campaign}, template.ErrNotOpen},
		{"paused", state(template.Paused), inside, []claim.Origin{tap, grant, campaign}, template.ErrNotOpen},
		{"paused and over", state(template.Paused), after, []claim.Origin{tap}, claim.ErrEnded},
		{"paused and early", state(template.Paused), before, []claim.Origin{tap}, template.ErrNotOpen},
		{"closed by staff", closedEarly, inside, []claim.Origin{tap, grant, campaign}, claim.ErrEnded},
		{"closed by the clock", closedByClock, after, []claim.Origin{tap}, claim.ErrEnded},
		{"staff after the clock closed", closedByClock, after, []claim.Origin{grant, campaign}, nil},
		{"by code", byCode, inside, []claim.Origin{code, grant, campaign}, nil},
		{"by code, tapped", byCode, inside, []claim.Origin{tap}, template.ErrNotOpen},
		{"by code, early", byCode, before, []claim.Origin{code}, claim.ErrNotStarted},
		{"by claim, with a code", nil, inside, []claim.Origin{code}, template.ErrNotOpen},
		{"expired as soon as issued", validUntil, early, []claim.Origin{tap, grant, campaign}, claim.ErrEnded},
		{"valid still", validUntil, early.Add(-time.Microsecond), []claim.Origin{tap, grant}, nil},
	} {
		for _, by := range c.by {
			if err := claim.Admit(drop(c.drop), by, c.at); !errors.Is(err, c.refuse) || (err == nil) != (c.refuse == nil) {
				t.Errorf("%s, %s: %v, want %v", c.name, by, err, c.refuse)
			}
		}
	}
}

// An offer is refused as the claim would be, by the same rules.
func TestOfferIsWhatTheDeskDecides(t *testing.T) {
	for _, stored := range []template.State{template.Draft, template.Published, template.Paused, template.Closed, template.Cancelled} {
		for _, issued := range []int64{0, 9, 10, 11} {
			for _, by := range []claim.Origin{claim.ByTap, claim.ByCode, claim.ByGrant} {
				for _, at := range []time.Time{opens.Add(-1), opens, opens.Add(time.Hour)} {
					it := drop(func(t *template.Template) { t.Stored, t.Issued = stored, issued })
					decider := newDecider(nil, nil, it)
					decider.At = at
					want := decider.Decide(claim.Request{ID: 1, TemplateID: 1, UserID: 7, Origin: by}).Err
					if got := claim.Offer(it, by, at); got != want {
						t.Errorf("%s with %d of 10 issued, %s at %v: %v, want %v", stored, issued, by, at, got, want)
					}
				}
			}
		}
	}
}

func TestExpiresAt(t *testing.T) {
	until := opens.Add(100 * time.Hour)
	for _, c := range []struct {
		drop template.Template
		want time.Time
	}{
		{drop(nil), opens.Add(24 * time.Hour)},
		{drop(func(t *template.Template) { t.ValidUntil, t.ValidHours = &until, 0 }), until},
	} {
		if got := claim.ExpiresAt(c.drop, opens); !got.Equal(c.want) {
			t.Errorf("expires at %v, want %v", got, c.want)
		}
	}
}

func newDecider(known []*claim.Claim, counts map[claim.Holder]int, drops ...template.Template) *claim.Decider {
	d := &claim.Decider{At: opens.Add(time.Minute), Templates: map[int64]template.Template{}, Counts: counts,
		Known: map[claim.RepeatKey]*claim.Claim{}, KnownID: map[claim.ID]*claim.Claim{}}
	if d.Counts == nil {
		d.Counts = map[claim.Holder]int{}
	}
	for _, t := range drops {
		d.Templates[t.ID] = t
	}
	for _, c := range known {
		d.KnownID[c.ID] = c
	}
	return d
}

func TestALimitReachedBefore(t *testing.T) {
	full := map[claim.Holder]int{{TemplateID: 1, UserID: 7}: 1}
	d := newDecider(nil, full, drop(nil))
	if v := d.Decide(claim.Request{ID: 1, TemplateID: 1, UserID: 7, Origin: claim.ByTap}); !errors.Is(v.Err, claim.ErrLimit) || v.Claim != nil {
		t.Errorf("got %+v", v)
	}
	d = newDecider(nil, full, drop(func(t *template.Template) { t.Issued = 10 }))
	if v := d.Decide(claim.Request{ID: 1, TemplateID: 1, UserID: 7, Origin: claim.ByTap}); !errors.Is(v.Err, claim.ErrSoldOut) {
		t.Errorf("without stock everybody hears the same: %+v", v)
	}
	if len(d.Fresh()) != 0 || len(d.Issued()) != 0 {
		t.Errorf("a refusal leaves %v to be written", d.Fresh())
	}
}

// TestAnyGroup decides random groups: the coupons to be written never exceed stock or
// limits, are exactly those granted, and granting any refused request would have
// exceeded stock or limit.
func TestAnyGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drops := make([]template.Template, rapid.IntRange(1, 3).Draw(t, "templates"))
		for i := range drops {
			drops[i] = drop(func(d *template.Template) {
				d.ID = int64(i + 1)
				d.Stock = rapid.Int64Range(1, 8).Draw(t, "stock")
				d.Issued = rapid.Int64Range(0, d.Stock).Draw(t, "issued")
				d.PerUserLimit = rapid.IntRange(1, 3).Draw(t, "limit")
			})
		}
		d := newDecider(nil, nil, drops...)
		keys, wantKeys := rapid.SampledFrom([]string{"", "", "a", "b"}), map[string]claim.Request{}
		granted, perUser := map[int64]int64{}, map[claim.Holder]int{}
		for i := range rapid.IntRange(0, 40).Draw(t, "requests") {
			r := claim.Request{ID: claim.ID(i + 1), TemplateID: int64(rapid.IntRange(1, len(drops)).Draw(t, "template")),
				UserID: user.ID(rapid.IntRange(1, 4).Draw(t, "user")), Origin: claim.ByTap, Key: keys.Draw(t, "key")}
			of, h := d.Templates[r.TemplateID], claim.Holder{TemplateID: r.TemplateID, UserID: r.UserID}
			v := d.Decide(r)
			if first, repeated := wantKeys[r.Key]; repeated && r.Key != "" {
				same := first.TemplateID == r.TemplateID && first.UserID == r.UserID
				if same && (v.Err != nil || v.Claim.ID != first.ID) || !same && !errors.Is(v.Err, claim.ErrIdempotency) {
					t.Fatalf("%+v repeats %+v and got %+v", r, first, v)
				}
				continue
			}
			var want error
			switch {
			case of.Issued+granted[r.TemplateID] >= of.Stock:
				want = claim.ErrSoldOut
			case perUser[h] >= of.PerUserLimit:
				want = claim.ErrLimit
			default:
				granted[r.TemplateID]++
				perUser[h]++
				wantKeys[r.Key] = r
			}
			if !errors.Is(v.Err, want) || (v.Claim == nil) != (want != nil) {
				t.Fatalf("%+v got %+v, want %v", r, v, want)
			}
		}
		fresh := map[int64]int64{}
		for i, n := range d.Fresh() {
			fresh[n.Request.TemplateID]++
			if i > 0 && n.Request.ID <= d.Fresh()[i-1].Request.ID {
				t.Fatalf("%+v is written out of order", n)
			}
			if n.Claim.State != claim.Issued || !n.Claim.At.Equal(d.At) || !n.ExpiresAt.Equal(d.At.Add(24*time.Hour)) {
				t.Fatalf("written: %+v", n)
			}
		}
		for id, n := range granted {
			if fresh[id] != n || d.Issued()[id] != n {
				t.Fatalf("template %d: %d granted, %d written, %d counted", id, n, fresh[id], d.Issued()[id])
			}
		}
	})
}
