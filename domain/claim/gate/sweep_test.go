package gate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/template"
)

// plans is a fake database whose plans cannot be read.
type plans struct {
	Store
	reasons map[int64]error
}

func (p plans) Unreconciled(context.Context, int64, int) ([]int64, error) { return []int64{1, 2}, nil }
func (p plans) Plan(_ context.Context, id int64) (Plan, error)            { return Plan{}, p.reasons[id] }

// TestASweepReportsAnUnreachableDatabase: the sweep ignores only that another process builds a gate
// or divides its stock. All other failures have the same code for callers and are returned.
func TestASweepReportsAnUnreachableDatabase(t *testing.T) {
	away := fmt.Errorf("%w (%w)", fault.New(fault.Unavailable, fault.CodeOf(ErrStaleEpoch), "the database cannot answer"), errors.New("connection refused"))
	for name, c := range map[string]struct {
		reason   error
		reported bool
	}{
		"the database is away":     {away, true},
		"the gate has moved":       {ErrMoved, true},
		"another process builds":   {fmt.Errorf("begin: %w", ErrStaleEpoch), false},
		"another process allotted": {errors.Join(ErrOverAllotted), false},
	} {
		k := &Keeper{Store: plans{reasons: map[int64]error{1: c.reason, 2: ErrStaleEpoch}}, Now: time.Now}
		if err := k.Sweep(t.Context()); errors.Is(err, c.reason) != c.reported || (err != nil) != c.reported {
			t.Errorf("%s: the sweep returns %v", name, err)
		}
	}
}

// TestLooksWhenADoorOpens: the share of the next door is handed out when the door opens, also while claims arrive.
func TestLooksWhenADoorOpens(t *testing.T) {
	opens := time.Date(2026, 12, 1, 20, 0, 0, 0, time.UTC)
	p := Plan{State: Active, Template: template.Template{Stored: template.Published}}
	p.Template.OpensAt, p.Template.Doors = opens, []template.Door{{LeadMinutes: 30, Share: 10}, {}}
	for before, want := range map[time.Duration][2]time.Duration{300 * time.Millisecond: {300 * time.Millisecond, 300 * time.Millisecond},
		3 * time.Second: {3 * time.Second, lookSoon}, time.Minute: {lookSometimes, lookSoon}, -time.Second: {lookSometimes, lookSoon}} {
		p.Now = opens.Add(-before)
		if got := [2]time.Duration{p.restFor(true), p.restFor(false)}; got != want {
			t.Errorf("%v before the opening: %v, want %v", before, got, want)
		}
	}
}
