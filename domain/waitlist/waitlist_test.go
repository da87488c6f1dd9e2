package waitlist_test

import (
	"errors"
	"testing"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/waitlist"
)

var opens = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)

func soldOut(change func(*template.Template)) template.Template {
	t := template.Template{ID: 1, Spec: template.Spec{Waitlist: template.IssueNext, Obtain: template.ByClaim, ClaimMode: template.Durable, Stock: 10, PerUserLimit: 1,
		OpensAt: opens, ClosesAt: opens.Add(time.Hour), ValidHours: 48}, Stored: template.Published, Issued: 10}
	if change != nil {
		change(&t)
	}
	return t
}

// TestJoinable: the first reason that holds is told.
func TestJoinable(t *testing.T) {
	until := opens.Add(90 * time.Minute)
	for name, c := range map[string]struct {
		change func(*template.Template)
		after  time.Duration
		want   error
	}{
		"sold out":                   {nil, time.Minute, nil},
		"paused":                     {func(t *template.Template) { t.Stored = template.Paused }, time.Minute, nil},
		"the rest is kept":           {func(t *template.Template) { t.Issued, t.Held = 7, 3 }, time.Minute, nil},
		"behind a gate":              {func(t *template.Template) { t.ClaimMode, t.Issued = template.Gate, 3 }, time.Minute, nil},
		"a coupon is left":           {func(t *template.Template) { t.Issued = 9 }, time.Minute, waitlist.ErrStockLeft},
		"a draft":                    {func(t *template.Template) { t.Stored = template.Draft }, time.Minute, template.ErrNotFound},
		"no waitlist":                {func(t *template.Template) { t.Waitlist = template.NoWaitlist }, time.Minute, waitlist.ErrNone},
		"cancelled":                  {func(t *template.Template) { t.Stored = template.Cancelled }, time.Minute, claim.ErrCancelled},
		"before the opening":         {nil, -time.Minute, claim.ErrNotStarted},
		"after the end":              {nil, time.Hour, claim.ErrEnded},
		"too little validity":        {func(t *template.Template) { t.ValidHours, t.ValidUntil = 0, &until }, 31 * time.Minute, claim.ErrEnded},
		"just enough validity":       {func(t *template.Template) { t.ValidHours, t.ValidUntil = 0, &until }, 29 * time.Minute, nil},
		"paused, before the opening": {func(t *template.Template) { t.Stored = template.Paused }, -time.Minute, claim.ErrNotStarted},
		"paused, after the end":      {func(t *template.Template) { t.Stored = template.Paused }, time.Hour, claim.ErrEnded},
	} {
		if err := waitlist.Joinable(soldOut(c.change), opens.Add(c.after)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestGives: stock is given while the drop is open; a pause ends, an end does not.
func TestGives(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(*template.Template)
		after       time.Duration
		gives, over bool
	}{
		"open":    {nil, time.Minute, true, false},
		"paused":  {func(t *template.Template) { t.Stored = template.Paused }, time.Minute, false, false},
		"closed":  {func(t *template.Template) { t.Stored = template.Closed }, time.Minute, false, true},
		"ended":   {nil, time.Hour, false, true},
		"not yet": {nil, -time.Second, false, false},
	} {
		if gives, over := waitlist.Gives(soldOut(c.change), opens.Add(c.after)); gives != c.gives || over != c.over {
			t.Errorf("%s: gives %v, over %v", name, gives, over)
		}
	}
}

func TestOutlook(t *testing.T) {
	for n, want := range map[int64]waitlist.Ahead{0: "under_10", 9: "under_10", 10: "under_100", 999: "under_1000", 1000: "more"} {
		if got := waitlist.AheadOf(n); got != want {
			t.Errorf("%d users before: %s, want %s", n, got, want)
		}
	}
	for _, c := range []struct {
		reached, lists int64
		want           waitlist.Chance
	}{{2, 2, ""}, {3, 3, "good"}, {3, 5, "good"}, {1, 5, "some"}, {0, 3, "small"}, {3, 20, "small"}} {
		if got := waitlist.ChanceOf(c.reached, c.lists); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.reached, c.lists, got, c.want)
		}
	}
}
