package coupons_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/message"
	"dropbell/domain/user"
)

// passed is a fixture with a coupon of user 5, its steps and its pass.
type passed struct {
	*fixture
	store couponsdb.Wallet
	steps *coupon.Service
	id    int64
}

func newPassed(t *testing.T) *passed {
	w := newFixture(t)
	tpl := w.Published(time.Hour)
	w.Exec(`insert into users (id, locale) values (5, 'zh-CN')`)
	p := &passed{fixture: w, store: couponsdb.NewWallet(w.DB), steps: &coupon.Service{Store: w.Payments, LockFor: time.Hour}}
	p.id = w.ID("coupons", pgtest.Row{"template_id": tpl.ID, "user_id": 5})
	return p
}

func (p *passed) lock(order string) {
	p.Helper()
	_, err := p.steps.Lock(p.Context(), "test", p.id, coupon.Order{ID: order, Amount: 100_000, Currency: "CNY"})
	p.Must(err)
}

func (p *passed) note() bool {
	p.Helper()
	changed, err := p.store.Note(p.Context(), []int64{p.id})
	p.Must(err)
	return changed
}

// lease returns the due changes and the token of their lease.
func (p *passed) lease() (string, []wallet.Change) {
	p.Helper()
	token, due, err := p.store.Lease(p.Context(), 10, time.Minute)
	p.Must(err)
	return token, due
}

func (p *passed) register(device string) bool {
	p.Helper()
	added, err := p.store.Register(p.Context(), device, p.id, "token of "+device)
	p.Must(err)
	return added
}

// TestPassFollowsItsCoupon: each step of the coupon is one change of its pass, however often
// its event arrives. Devices are told of the newest change. A device that registers while
// other devices are told is told too.
func TestPassFollowsItsCoupon(t *testing.T) {
	p := newPassed(t)
	p.lock("A-1")
	if p.note() {
		t.Error("a coupon without a pass has changed one")
	}
	p.Must(p.store.Issue(t.Context(), p.id, false))
	if p.note() {
		t.Error("the pass was issued after the lock, and knows of it")
	}
	if !p.register("d1") || p.register("d1") {
		t.Error("the device is new once")
	}
	if _, due := p.lease(); len(due) != 0 {
		t.Errorf("nothing has changed: %+v", due)
	}
	_, err := p.steps.Confirm(t.Context(), "test", p.id, "A-1")
	p.Must(err)
	if !p.note() || p.note() {
		t.Error("a step is one change")
	}
	token, due := p.lease()
	if len(due) != 1 || due[0].State != coupon.Used || due[0].Google || !slices.Equal(due[0].Devices, []wallet.Device{{Name: "d1", Token: "token of d1"}}) {
		t.Fatalf("due: %+v", due)
	}
	if _, twice := p.lease(); len(twice) != 0 {
		t.Errorf("a second worker got the same: %+v", twice)
	}
	if !p.register("d2") { // while d1 is told
		t.Error("d2 is not new")
	}
	p.Must(p.store.Record(t.Context(), token, []wallet.Result{{CouponID: p.id, Revision: due[0].Revision, Told: due[0].Devices, Google: true}}))
	token, due = p.lease()
	if len(due) != 1 || len(due[0].Devices) != 1 || due[0].Devices[0].Name != "d2" {
		t.Fatalf("the late device: %+v", due)
	}
	// A worker whose lease was lost records nothing; then device d2 is removed.
	p.Must(p.store.Record(t.Context(), "00000000-0000-0000-0000-000000000000", []wallet.Result{{CouponID: p.id, Revision: due[0].Revision, Google: true}}))
	p.Must(p.store.Record(t.Context(), token, []wallet.Result{{CouponID: p.id, Revision: due[0].Revision, Gone: due[0].Devices, Google: true}}))
	if n := p.Number(`select count(*) from wallet_registrations`); n != 1 {
		t.Errorf("%d devices", n)
	}
	if due, err := p.store.Due(t.Context()); due || err != nil {
		t.Errorf("due %v %v", due, err)
	}
}

// TestAStepWhoseEventWasLost: a comparison of passes with their coupons finds the lost step
// once; other passes do not change.
func TestAStepWhoseEventWasLost(t *testing.T) {
	p := newPassed(t)
	for i := range int64(5) { // of coupons that are gone
		p.Exec(`insert into wallet_passes (coupon_id, user_id, expires_at, coupon_version) values ($1, 5, now(), 1)`, p.id+1+i)
	}
	p.Must(p.store.Issue(t.Context(), p.id, true))
	p.lock("A-1") // without p.note
	for round := range 2 {
		rows := p.Number(`select count(*) from wallet_passes`)
		for after, steps := int64(0), int64(0); after > 0 || steps == 0; steps++ {
			last, err := p.store.NoteMissed(t.Context(), after, 2)
			if p.Must(err); steps > rows || last != 0 && last <= after {
				t.Fatalf("round %d: %d after %d", round, last, after)
			}
			after = last
		}
	}
	if p.note() {
		t.Error("the event that comes after all is a change")
	}
	if _, due := p.lease(); len(due) != 1 || due[0].CouponID != p.id || due[0].State != coupon.Locked || due[0].Revision != 2 {
		t.Errorf("%+v", due)
	}
}

// TestADeviceRegistersAnew: a result for the old token of a device does not remove the
// registration with the new token, and does not mark it as told.
func TestADeviceRegistersAnew(t *testing.T) {
	p := newPassed(t)
	p.Must(p.store.Issue(t.Context(), p.id, false))
	p.register("d1")
	p.register("d2")
	p.lock("A-1")
	p.note()
	token, due := p.lease()
	if len(due) != 1 || len(due[0].Devices) != 2 {
		t.Fatalf("due: %+v", due)
	}
	for _, d := range due[0].Devices { // while their old tokens are called
		if _, err := p.store.Register(t.Context(), d.Name, p.id, "new token of "+d.Name); err != nil {
			t.Fatal(err)
		}
	}
	p.Must(p.store.Record(t.Context(), token, []wallet.Result{{CouponID: p.id, Revision: due[0].Revision, Told: due[0].Devices[:1], Gone: due[0].Devices[1:], Google: true}}))
	_, due = p.lease()
	if len(due) != 1 || !slices.Equal(due[0].Devices, []wallet.Device{{Name: "d1", Token: "new token of d1"}, {Name: "d2", Token: "new token of d2"}}) {
		t.Errorf("due with new tokens: %+v", due)
	}
}

// TestPassIsTriedAgain: after a failure the pass is due again after the pause. A change
// meanwhile makes the pass due at once.
func TestPassIsTriedAgain(t *testing.T) {
	p := newPassed(t)
	p.Must(p.store.Issue(t.Context(), p.id, false))
	p.Must(p.store.Issue(t.Context(), p.id, true))
	p.lock("A-1")
	p.note()
	token, due := p.lease()
	if len(due) != 1 || !due[0].Google || due[0].Attempts != 0 {
		t.Fatalf("%+v", due)
	}
	hour := time.Hour
	failed := wallet.Result{CouponID: p.id, Revision: due[0].Revision, Again: &hour}
	p.Must(p.store.Record(t.Context(), token, []wallet.Result{failed}))
	if _, due := p.lease(); len(due) != 0 {
		t.Errorf("before the pause: %+v", due)
	}
	p.Exec(`update wallet_passes set next_at = now()`)
	token, due = p.lease()
	if len(due) != 1 || due[0].Attempts != 1 {
		t.Fatalf("again: %+v", due)
	}
	_, err := p.steps.Release(t.Context(), "test", p.id, "A-1")
	p.Must(err)
	p.note() // while the first change is told
	p.Must(p.store.Record(t.Context(), token, []wallet.Result{failed}))
	if _, due := p.lease(); len(due) != 1 || due[0].Attempts != 0 || due[0].State != coupon.Unused {
		t.Errorf("the second change: %+v", due)
	}
	// The worker dies: its lease ends.
	p.Exec(`update wallet_passes set lease_until = now()`)
	if _, due := p.lease(); len(due) != 1 {
		t.Errorf("after the lease: %+v", due)
	}
}

// TestPassExpires: the expiry is one change, without an event.
func TestPassExpires(t *testing.T) {
	p := newPassed(t)
	p.Must(p.store.Issue(t.Context(), p.id, true))
	p.Exec(`update coupons set expires_at = now() where id = $1`, p.id)
	p.Exec(`update wallet_passes set expires_at = now()`)
	for _, want := range []int{1, 0} {
		if n, err := p.store.NoteExpired(t.Context(), 10); n != want || err != nil {
			t.Errorf("%d expired, want %d (%v)", n, want, err)
		}
	}
	if _, due := p.lease(); len(due) != 1 || due[0].State != coupon.Expired {
		t.Errorf("%+v", due)
	}
}

// TestPassOfSteps: two concurrent issues create one pass; changes within one second get
// different times; the number of devices is bounded; erased users get no row.
func TestPassOfSteps(t *testing.T) {
	p := newPassed(t)
	for _, err := range pgtest.Together(8, func(i int) error { return p.store.Issue(t.Context(), p.id, i%2 == 0) }) {
		p.Must(err)
	}
	first, err := p.store.Sheet(t.Context(), p.id)
	p.Must(err)
	if first.Locale != "zh-CN" || first.Worth == (message.Worth{}) || first.Zone == "" || first.Modified.Nanosecond() != 0 {
		t.Errorf("%+v", first)
	}
	p.register("d1")
	p.lock("A-1")
	p.note()
	_, err = p.steps.Release(t.Context(), "test", p.id, "A-1")
	p.Must(err)
	p.note()
	second, err := p.store.Sheet(t.Context(), p.id)
	p.Must(err)
	if d := second.Modified.Sub(first.Modified); d < 2*time.Second {
		t.Errorf("two changes are %s apart", d)
	}
	for since, want := range map[time.Time]int{second.Modified: 1, second.Modified.Add(time.Second): 0, time.Unix(0, 0): 1} {
		if ids, latest, err := p.store.Changed(t.Context(), "d1", since); len(ids) != want || err != nil || want == 1 && !latest.Equal(second.Modified) {
			t.Errorf("since %s: %v %s %v", since, ids, latest, err)
		}
	}
	for i := 2; i <= wallet.MaxDevices; i++ {
		p.register(fmt.Sprint("d", i))
	}
	if _, err := p.store.Register(t.Context(), "one more", p.id, "x"); !errors.Is(err, wallet.ErrFull) {
		t.Errorf("one more: %v", err)
	}
	p.Must(p.store.Unregister(t.Context(), "d1", p.id))
	if _, err := p.store.Register(t.Context(), "d1", p.id+1, "x"); !errors.Is(err, wallet.ErrUnknown) {
		t.Errorf("no pass: %v", err)
	}
	if _, err := p.store.Sheet(t.Context(), p.id+1); !errors.Is(err, coupon.ErrNotFound) {
		t.Errorf("no coupon: %v", err)
	}
	p.Exec(`delete from wallet_passes`)
	p.Exec(`insert into erased_users (user_id, erased_by) values ($1, 'x')`, user.ID(5))
	p.Must(p.store.Issue(t.Context(), p.id, true))
	if n := p.Number(`select count(*) from wallet_passes`) + p.Number(`select count(*) from wallet_registrations`); n != 0 {
		t.Errorf("%d rows of an erased user", n)
	}
	// The pass of a user without a row is still shown.
	if x, err := p.store.Sheet(t.Context(), p.id); err != nil || x.Modified.IsZero() {
		t.Errorf("%+v %v", x, err)
	}
}
