package reminder

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/template"
)

func rem(c delivery.Channel, minutes int) Reminder {
	r, err := NewReminder(c, minutes)
	if err != nil {
		panic(err)
	}
	return r
}

var (
	app5, app10, app60 = rem(delivery.App, 5), rem(delivery.App, 10), rem(delivery.App, 60)
	email5, sms60      = rem(delivery.Email, 5), rem(delivery.SMS, 60)
	all                = StoredBitmap(1<<60 - 1)
)

func of(rs ...Reminder) Bitmap { return BitmapOf(rs...) }

// refusalCase is a decision that refused a change. offending is nil if the error names no
// reminder.
type refusalCase struct {
	name      string
	verdict   Decision
	asked     Bitmap
	want      *fault.Fault
	offending []Reminder
}

func (c refusalCase) check(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, c.want) || fault.CodeOf(err) != c.want.Code || fault.KindOf(err) != c.want.Kind {
		t.Errorf("%s: %v, want %s", c.name, err, c.want.Code)
		return
	}
	r, ok := errors.AsType[*Refusal](err)
	if ok != (c.offending != nil) || ok && !slices.Equal(r.Offending, c.offending) {
		t.Errorf("%s: %+v, want %v", c.name, err, c.offending)
	}
}

func TestWhyReservingWasRefused(t *testing.T) {
	for _, c := range []refusalCase{
		{"the opening has passed", Decision{Opened: true}, of(app5), template.ErrOpened, nil},
		{"the opening has passed for one who had it", Decision{Opened: true, Before: all}, of(app5), template.ErrOpened, nil},
		{"all due", Decision{}, of(app5, app60), ErrAlreadyDue, []Reminder{app60, app5}},
		{"one of two due", Decision{Open: of(app5)}, of(app5, app60), ErrAlreadyDue, []Reminder{app60}},
		{"one reserved", Decision{Open: all, Before: of(app5, sms60)}, of(app5, app10), ErrAlreadyReserved, []Reminder{app5}},
		{"all reserved, the farthest first", Decision{Open: all, Before: all}, of(app5, email5, sms60), ErrAlreadyReserved,
			[]Reminder{sms60, app5, email5}},
		{"one due and another reserved", Decision{Open: of(app5), Before: of(app5)}, of(app5, app60), ErrAlreadyDue, []Reminder{app60}},
		{"the row is gone by now", Decision{Open: all}, of(app5, app10), ErrAlreadyReserved, []Reminder{app10, app5}},
	} {
		c.check(t, c.verdict.reserveError(c.asked))
	}
}

func TestWhyCancellingWasRefused(t *testing.T) {
	for _, c := range []refusalCase{
		{"nothing reserved", Decision{Open: all}, of(app5), ErrNotReserved, nil},
		{"nothing reserved, all asked", Decision{Open: all}, Bitmap{}, ErrNotReserved, nil},
		{"one of two missing", Decision{Open: all, Before: of(app5)}, of(app5, app10), ErrNotReserved, []Reminder{app10}},
		{"due", Decision{Open: of(app5), Before: of(app5, app60)}, of(app5, app60), ErrAlreadyDue, []Reminder{app60}},
		{"one missing, another due", Decision{Before: of(app60)}, of(app5, app60), ErrNotReserved, []Reminder{app5}},
		{"all asked, all due", Decision{Before: of(app5, app60)}, Bitmap{}, ErrAlreadyDue, []Reminder{app60, app5}},
		{"the row changed meanwhile", Decision{Open: all, Before: of(app5)}, of(app5), ErrNotReserved, []Reminder{app5}},
	} {
		c.check(t, c.verdict.cancelError(c.asked))
	}
}

// TestARefusalIsAlwaysExplained: in all states of the store, a change that was not applied never
// looks like a success.
func TestARefusalIsAlwaysExplained(t *testing.T) {
	some := rapid.Map(rapid.Int64Range(0, 1<<60-1), StoredBitmap)
	rapid.Check(t, func(t *rapid.T) {
		v := Decision{Open: some.Draw(t, "open"), Before: some.Draw(t, "before"), Opened: rapid.Bool().Draw(t, "opened")}
		asked := some.Draw(t, "asked")
		if err := v.cancelError(asked); fault.KindOf(err) == 0 {
			t.Fatalf("cancelling: %v", err)
		}
		asked = asked.Union(of(app5))
		err := v.reserveError(asked)
		if fault.KindOf(err) == 0 {
			t.Fatalf("reserving: %v", err)
		}
		if r, ok := errors.AsType[*Refusal](err); ok && !asked.Contains(BitmapOf(r.Offending...)) {
			t.Fatalf("blames %v, asked %v", r.Offending, asked.Reminders())
		}
	})
}

func TestRefusalText(t *testing.T) {
	err := refuse(ErrAlreadyReserved, of(app5, sms60))
	if err.Error() != "already reserved: sms 60 minutes, app 5 minutes" {
		t.Errorf("%q", err)
	}
	if err := refuse(ErrAlreadyReserved, Bitmap{}); err != nil {
		t.Errorf("nobody to blame: %v", err)
	}
}
