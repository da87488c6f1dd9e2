package template_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/template"
)

func brokenFields(err error) []string {
	e, ok := errors.AsType[*fault.Fields](err)
	if !ok {
		return nil
	}
	var names []string
	for _, f := range e.List {
		names = append(names, f.Name)
	}
	return names
}

// promised are changes of terms that users were promised: each names its field.
var promised = map[string]func(*template.Spec){
	"shop_number":      func(s *template.Spec) { s.ShopNumber++ },
	"kind":             func(s *template.Spec) { s.Kind, s.Threshold = template.ThresholdOff, 5000 },
	"amount_off":       func(s *template.Spec) { s.AmountOff++ },
	"currency":         func(s *template.Spec) { s.Currency = "USD" },
	"target":           func(s *template.Spec) { s.Target, s.Product = template.Product, "p" },
	"per_user_limit":   func(s *template.Spec) { s.PerUserLimit++ },
	"household_limit":  func(s *template.Spec) { s.HouseholdLimit = 2 },
	"valid_hours":      func(s *template.Spec) { s.ValidHours++ },
	"valid_until":      func(s *template.Spec) { s.ValidHours, s.ValidUntil = 0, new(opens.Add(72*time.Hour)) },
	"obtain":           func(s *template.Spec) { s.Obtain = template.ByCode },
	"claim_mode":       func(s *template.Spec) { s.ClaimMode = template.Gate },
	"waitlist":         func(s *template.Spec) { s.Waitlist = template.IssueNext },
	"use_within_hours": func(s *template.Spec) { s.UseWithinHours = 1 },
	"refund_to":        func(s *template.Spec) { s.RefundTo = template.RefundToStock },
}

func TestPromisesHoldFromPublicationOn(t *testing.T) {
	for field, change := range promised {
		for _, state := range []template.State{template.Scheduled, template.Open, template.SoldOut, template.Paused} {
			tpl, now := inState(state)
			s := tpl.Spec
			change(&s)
			got, err := tpl.Edit(s, now)
			if !slices.Contains(brokenFields(err), field) {
				t.Errorf("%s of a template that is %s: %v", field, state, err)
			}
			if got.Spec != tpl.Spec {
				t.Errorf("%s of a template that is %s was refused and changed", field, state)
			}
		}
		draft, now := inState(template.Draft)
		s := draft.Spec
		change(&s)
		if got, err := draft.Edit(s, now); err != nil || got.Spec != s {
			t.Errorf("%s of a draft: %v", field, err)
		}
	}
}

func TestEveryBrokenPromiseIsNamedAtOnce(t *testing.T) {
	tpl, now := inState(template.Scheduled)
	s := tpl.Spec
	s.Kind, s.AmountOff, s.PercentOff, s.MaxOff, s.Threshold = template.PercentOff, 0, 10, 500, 100
	s.Target, s.Product = template.Product, "p"
	_, err := tpl.Edit(s, now)
	for _, want := range []string{"kind", "amount_off", "percent_off", "max_off", "threshold", "target", "product"} {
		if !slices.Contains(brokenFields(err), want) {
			t.Errorf("%s is not named: %v", want, brokenFields(err))
		}
	}
}

// TestSameInstantIsNoChange: the same end of validity, given in another zone or by another
// pointer, is no change of a promise.
func TestSameInstantIsNoChange(t *testing.T) {
	tpl, now := inState(template.Scheduled)
	until := opens.Add(72 * time.Hour)
	tpl.ValidHours, tpl.ValidUntil = 0, &until
	s := tpl.Spec
	s.ValidUntil = new(until.In(time.FixedZone("east", 8*3600)))
	s.OpensAt = s.OpensAt.In(time.FixedZone("east", 8*3600))
	if _, err := tpl.Edit(s, now); err != nil {
		t.Error(err)
	}
	s.ValidUntil = new(until.Add(time.Second))
	if _, err := tpl.Edit(s, now); !slices.Contains(brokenFields(err), "valid_until") {
		t.Errorf("another instant: %v", err)
	}
}

func TestStockHoldsWhatIsIssued(t *testing.T) {
	for _, state := range []template.State{template.Scheduled, template.Open, template.SoldOut, template.Paused} {
		tpl, now := inState(state)
		s := tpl.Spec
		s.Stock++
		if got, err := tpl.Edit(s, now); err != nil || got.Stock != 101 {
			t.Errorf("raised while %s: %v", state, err)
		}
		s.Stock = tpl.Issued
		if got, err := tpl.Edit(s, now); err != nil || got.Stock != tpl.Issued {
			t.Errorf("lowered to what is issued while %s: %v", state, err)
		}
		s.Stock = tpl.Issued - 1
		if got, err := tpl.Edit(s, now); !errors.Is(err, template.ErrStockBelow) || got.Stock != 100 {
			t.Errorf("lowered below while %s: %v", state, err)
		}
		s.Stock, s.ClaimMode, tpl.ClaimMode = 99, template.Gate, template.Gate
		_, err := tpl.Edit(s, now)
		if !errors.Is(err, template.ErrStockBelow) || tpl.Issued < 99 && !strings.Contains(err.Error(), "can only be raised; to sell fewer, pause or close the drop") {
			t.Errorf("lowered behind the gate while %s: %v", state, err)
		}
	}
	soldOut, now := inState(template.SoldOut)
	s := soldOut.Spec
	s.Stock++
	if got, _ := soldOut.Edit(s, now); got.State(now) != template.Open {
		t.Errorf("more stock after selling out: %s", got.State(now))
	}
}

func TestMovingTheOpening(t *testing.T) {
	for _, c := range []struct {
		name     string
		now      time.Time
		to       time.Time
		conflict bool
		field    string
	}{
		{"later", opens.Add(-time.Hour), opens.Add(time.Minute), false, ""},
		{"earlier", opens.Add(-time.Hour), opens.Add(-time.Minute), false, ""},
		{"a moment before it opens", opens.Add(-1), opens.Add(time.Minute), false, ""},
		{"after it opened", opens, opens.Add(time.Minute), true, ""},
		{"into the past", opens.Add(-time.Hour), opens.Add(-2 * time.Hour), false, "opens_at"},
		{"to this very moment", opens.Add(-time.Hour), opens.Add(-time.Hour), false, "opens_at"},
		{"beyond the end", opens.Add(-time.Hour), opens.Add(time.Hour), false, "closes_at"},
	} {
		tpl := template.Template{Spec: validSpec(), Stored: template.Published}
		s := tpl.Spec
		s.OpensAt = c.to
		got, err := tpl.Edit(s, c.now)
		refused := c.conflict || c.field != ""
		if (err != nil) != refused || errors.Is(err, template.ErrTransition) != c.conflict ||
			c.field != "" && !slices.Equal(brokenFields(err), []string{c.field}) {
			t.Errorf("%s: %v", c.name, err)
		}
		if want := map[bool]time.Time{true: opens, false: c.to}[refused]; !got.OpensAt.Equal(want) {
			t.Errorf("%s: opens %v", c.name, got.OpensAt)
		}
	}
}

func TestTheEndMayMoveWhileItLiesAhead(t *testing.T) {
	now := opens.Add(10 * time.Minute)
	for to, ok := range map[time.Time]bool{now.Add(time.Second): true, opens.Add(24 * time.Hour): true, now: false, now.Add(-time.Second): false} {
		tpl := template.Template{Spec: validSpec(), Stored: template.Published}
		s := tpl.Spec
		s.ClosesAt = to
		if _, err := tpl.Edit(s, now); (err == nil) != ok || !ok && !slices.Equal(brokenFields(err), []string{"closes_at"}) {
			t.Errorf("to %v: %v", to, err)
		}
	}
}

// TestAnOldNameStandsInNobodysWay: a live drop whose name was accepted under older rules can
// still be changed.
func TestAnOldNameStandsInNobodysWay(t *testing.T) {
	tpl, now := inState(template.Open)
	tpl.Name = "two\nlines"
	s := tpl.Spec
	s.Stock++
	if got, err := tpl.Edit(s, now); err != nil || got.Spec != s {
		t.Errorf("%+v %v", got.Spec, err)
	}
	s.Name = "two other\nlines"
	if _, err := tpl.Edit(s, now); !slices.Equal(brokenFields(err), []string{"name"}) {
		t.Error(err)
	}
}

func TestWhatMayChangeAfterPublication(t *testing.T) {
	tpl, now := inState(template.Open)
	s := tpl.Spec
	s.Name, s.Description, s.ClaimURL, s.ClosesAt, s.Stock = "N", "D", "https://shop.example/x", s.ClosesAt.Add(time.Hour), 1000
	if got, err := tpl.Edit(s, now); err != nil || got.Spec != s {
		t.Errorf("%+v %v", got.Spec, err)
	}
}
