package drops

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/views/ui"
)

// A BalanceLine is one slot and channel of the sheet.
type BalanceLine struct{ reminder.BalanceLine }

// A balanceSlot is one slot with its lines.
type balanceSlot struct {
	slot  reminder.Slot
	lines []BalanceLine
}

// standing returns the outcome of the slot by its recounted lines.
func (s balanceSlot) standing(now time.Time) reminder.Standing {
	var sum delivery.Counts
	for _, l := range s.lines {
		sum = sum.Plus(l.Counted)
	}
	return s.slot.Standing(sum, now)
}

// slots divides the sheet by slot, in its order.
func (p Balance) slots() []balanceSlot {
	var list []balanceSlot
	for _, l := range p.Lines {
		if n := len(list); n == 0 || list[n-1].slot.ID != l.Slot.ID {
			list = append(list, balanceSlot{slot: l.Slot})
		}
		if last := &list[len(list)-1]; !l.blank() {
			last.lines = append(last.lines, l)
		}
	}
	return list
}

// archived reports whether the rows of some slots were removed after their retention.
func (p Balance) archived() bool {
	return slices.ContainsFunc(p.Lines, func(l BalanceLine) bool { return l.Archived })
}

// archived reports whether the slot's rows were removed after their retention.
func (s balanceSlot) archived() bool {
	return slices.ContainsFunc(s.lines, func(l BalanceLine) bool { return l.Archived })
}

// figure names a number of the line.
func (l BalanceLine) figure(key string) string {
	return fmt.Sprintf("slot:%d:%s:%s", l.Slot.ID, l.Channel, key)
}

// blank reports whether the line's channel had no recipients and no difference.
func (l BalanceLine) blank() bool {
	return l.Kept == (delivery.Counts{}) && l.Counted == (delivery.Counts{}) && l.Difference() == 0
}

// sum adds the recounted lines up.
func (p Balance) sum() (all delivery.Counts, off int64) {
	for _, l := range p.Lines {
		all = all.Plus(l.Counted)
		off += l.Difference()
	}
	return all, off
}

// identity writes the sheet's sentence with its numbers.
func identity(ctx context.Context, c delivery.Counts) string {
	return ui.T(ctx, "balance.identity", c.Reserved, c.Sent, c.Skipped, c.Expired, c.Dead, c.InFlight)
}

func (p Balance) receiptURL(s reminder.Slot) string {
	return fmt.Sprintf("/templates/%d/slots/%d/receipt.csv", p.Template.ID, s.ID)
}

// columns are the parts of the identity: the recounted number, the stored number, and whether the
// two must agree yet.
func (l BalanceLine) columns() []balanceColumn {
	done := l.Slot.State == reminder.Finished
	return []balanceColumn{
		{"sent", l.Counted.Sent, l.Kept.Sent, done}, {"skipped", l.Counted.Skipped, l.Kept.Skipped, done},
		{"expired", l.Counted.Expired, l.Kept.Expired, done}, {"dead", l.Counted.Dead, l.Kept.Dead, done},
		{"inflight", l.Counted.InFlight, 0, false},
	}
}

type balanceColumn struct {
	key           string
	counted, kept int64
	final         bool
}

func (c balanceColumn) off() bool { return c.final && c.counted != c.kept }

// causes explain the kind of difference of a line and its remedy.
func (l BalanceLine) causes(ctx context.Context) []string {
	if l.Difference() == 0 {
		return nil
	}
	var list []string
	if n := l.Kept.Reserved - l.Counted.Reserved; n > 0 {
		list = append(list, ui.N(ctx, "balance.cause.missing", n))
	} else if n < 0 {
		list = append(list, ui.N(ctx, "balance.cause.surplus", -n))
	}
	if l.Twice > 0 {
		list = append(list, ui.N(ctx, "balance.cause.twice", l.Twice))
	}
	if l.Counted.Difference() != 0 {
		list = append(list, ui.T(ctx, "balance.cause.identity"))
	}
	for _, c := range l.columns() {
		if c.off() {
			return append(list, ui.T(ctx, "balance.cause.counters"))
		}
	}
	return list
}
