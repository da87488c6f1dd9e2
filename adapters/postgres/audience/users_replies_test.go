package audience_test

import (
	"strconv"
	"sync"
	"testing"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// stopTrunk is stopPhone with the trunk prefix of national calls, as some lists have it.
const (
	stopPhone = "+14155552671"
	stopTrunk = "+114155552671"
)

// A desk answers text messages from the same number, each with a name of its own.
type desk struct {
	t     *testing.T
	users audiencedb.Users
	n     int
}

func (d *desk) say(word feedback.Word) {
	d.t.Helper()
	d.n++
	d.repeat(word, d.n)
}

func (d *desk) repeat(word feedback.Word, n int) {
	d.t.Helper()
	if err := d.users.CarryOut(d.t.Context(), word, feedback.Reply{Provider: "twilio", From: stopPhone, ID: "SM" + strconv.Itoa(n)}, []string{stopPhone, stopTrunk}); err != nil {
		d.t.Fatal(err)
	}
}

// out checks which of the users have opted out of SMS, and that nothing further has changed.
func (d *desk) out(want ...bool) {
	d.t.Helper()
	for i, w := range want {
		u, err := d.users.User(d.t.Context(), user.ID(i+1))
		if err != nil {
			d.t.Fatal(err)
		}
		if got := u.OptOuts&4 != 0; got != w || u.OptOuts&^4 != 1 {
			d.t.Errorf("user %d has opted out of %05b, want of SMS: %v", i+1, u.OptOuts, w)
		}
	}
}

func TestStopAndStart(t *testing.T) {
	w := newFixture(t)
	d := &desk{t: t, users: audiencedb.NewUsers(w.DB)}
	w.Upsert(user.Change{ID: 1, Phone: new(stopPhone), OptOuts: new(uint8(1))}, user.Change{ID: 2, Phone: new(stopPhone), OptOuts: new(uint8(1))},
		user.Change{ID: 3, Phone: new(stopPhone), OptOuts: new(uint8(5))}, user.Change{ID: 4, Phone: new("+14155552672"), OptOuts: new(uint8(1))})
	d.say(feedback.Help)
	d.out(false, false, true, false)
	d.say(feedback.Stop)
	d.out(true, true, true, false)
	d.say(feedback.Stop)
	d.out(true, true, true, false)
	d.say(feedback.Start) // 3 had opted out in the app
	d.out(false, false, true, false)

	// A repeated callback changes nothing, also after later callbacks.
	d.repeat(feedback.Stop, 2)
	d.out(false, false, true, false)

	// An opt-out changed in another way after STOP is not STOP's any more.
	d.say(feedback.Stop)
	if _, err := d.users.SetOptOuts(t.Context(), 1, 4, 4, staff.Entry{}); err != nil {
		t.Fatal(err)
	}
	w.Upsert(user.Change{ID: 2, OptOuts: new(uint8(1))})
	w.Upsert(user.Change{ID: 2, OptOuts: new(uint8(5))})
	d.say(feedback.Start)
	d.out(true, true, true, false)
}

// A number that is stored in another form stops as well.
func TestStopOfAnotherForm(t *testing.T) {
	w := newFixture(t)
	d := &desk{t: t, users: audiencedb.NewUsers(w.DB)}
	w.Upsert(user.Change{ID: 1, Phone: new(stopTrunk), OptOuts: new(uint8(1))}, user.Change{ID: 2, Phone: new(stopPhone), OptOuts: new(uint8(1))},
		user.Change{ID: 3, OptOuts: new(uint8(1))})
	d.say(feedback.Stop)
	d.out(true, true, false)
	d.say(feedback.Start)
	d.out(false, false, false)
}

// An import that states an opt-out which STOP has set already makes it its own.
func TestAnImportAfterStop(t *testing.T) {
	w := newFixture(t)
	d := &desk{t: t, users: audiencedb.NewUsers(w.DB)}
	for id := range user.ID(3) {
		w.Upsert(user.Change{ID: id + 1, Phone: new(stopPhone), OptOuts: new(uint8(1))})
	}
	d.say(feedback.Stop)
	w.Upsert(user.Change{ID: 1, OptOuts: new(uint8(5))}, user.Change{ID: 2, Name: new("Ada")})
	d.say(feedback.Start)
	d.out(true, false, false)
}

func TestConcurrentStops(t *testing.T) {
	w := newFixture(t)
	d := &desk{t: t, users: audiencedb.NewUsers(w.DB)}
	w.Upsert(user.Change{ID: 1, Phone: new(stopPhone), OptOuts: new(uint8(1))}, user.Change{ID: 2, Phone: new(stopPhone), OptOuts: new(uint8(1))})
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			word := feedback.Stop
			if i%4 == 3 {
				word = feedback.Start
			}
			if err := d.users.CarryOut(t.Context(), word, feedback.Reply{Provider: "twilio", From: stopPhone, ID: strconv.Itoa(i / 2)}, []string{stopPhone}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	d.say(feedback.Stop)
	d.out(true, true)
	d.say(feedback.Start)
	d.out(false, false)
}

func TestAnErasedUserLeavesNoStop(t *testing.T) {
	w := newFixture(t)
	d := &desk{t: t, users: audiencedb.NewUsers(w.DB)}
	w.Upsert(user.Change{ID: 1, Phone: new(stopPhone), OptOuts: new(uint8(1))})
	d.say(feedback.Stop)
	if err := d.users.Erase(t.Context(), 1, staff.Entry{Action: "user.erase", ObjectKind: "user", ObjectID: "1"}); err != nil {
		t.Fatal(err)
	}
	var n int
	w.Must(w.SQL.QueryRow(t.Context(), `select count(*) from sms_stops`).Scan(&n))
	if n != 0 {
		t.Errorf("%d stops are left", n)
	}
}
