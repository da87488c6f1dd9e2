package coupons_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// noticeFixture is a database with templates that send notices before coupons expire.
type noticeFixture struct {
	*paymentFixture
	notices   couponsdb.Notices
	announcer *coupon.Announcer
	queue     *pgtest.MemoryQueue
	app, hook *pgtest.Sink
	daemon    *delivery.Service
}

func newNoticeFixture(t *testing.T, days ...int) *noticeFixture {
	p := newPaymentFixture(t)
	b := &noticeFixture{paymentFixture: p, notices: couponsdb.NewNotices(p.DB), queue: &pgtest.MemoryQueue{}, app: pgtest.NewSink(delivery.App, 100), hook: pgtest.NewSink(delivery.Webhook, 100)}
	b.announcer = &coupon.Announcer{Store: b.notices, Queue: b.queue}
	b.daemon = p.Deliverer(b.queue, b.app, b.hook)
	b.daemon.Guards = map[delivery.Kind]delivery.Guard{delivery.KindNotice: coupon.Guard{Store: b.notices}}
	b.drop = b.template(days...)
	return b
}

func (b *noticeFixture) template(days ...int) template.Template {
	b.Helper()
	s := pgtest.Spec(time.Hour).WithNotices(template.NoticeDaysOf(days...), delivery.ChannelSetOf(delivery.App, delivery.Webhook))
	tpl, err := b.Service.Create(b.Context(), staff.System(), s, "")
	b.Must(err)
	if tpl.NotifyDays != s.NotifyDays || tpl.NotifyOver != s.NotifyOver {
		b.Fatalf("stored %+v, wanted %+v", tpl.Spec, s)
	}
	return tpl
}

// own gives the users coupons that are valid for 100 hours.
func (b *noticeFixture) own(t template.Template, users ...int64) {
	b.Helper()
	for _, id := range users {
		b.Exec(`insert into users (id) values ($1) on conflict do nothing`, id)
		b.Insert("coupons", pgtest.Row{"template_id": t.ID, "user_id": id, "expires_at": pgtest.SQL("now() + interval '100 hours'")})
	}
}

// until sweeps repeatedly until the condition holds: other transactions of the server may
// delay the horizon for a moment.
func (b *noticeFixture) until(what string, holds func() bool) {
	b.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(end) {
			b.Fatalf("not in time: %s", what)
		}
		b.Must(b.announcer.Sweep(b.Context()))
		pause := time.NewTimer(5 * time.Millisecond)
		<-pause.C
	}
}

func (b *noticeFixture) planned(n int64) {
	b.Helper()
	b.until(fmt.Sprint(n, " planned"), func() bool { return b.Number(`select count(*) from notices`) >= n })
	if got := b.Number(`select count(*) from notices`); got != n {
		b.Fatalf("%d notices are planned, want %d", got, n)
	}
}

// comeDue pretends that time has passed.
func (b *noticeFixture) comeDue() {
	b.Exec(`update notices set due_at = clock_timestamp() - interval '1 minute'`)
}

func (b *noticeFixture) deliver() {
	b.Helper()
	for _, c := range []delivery.Channel{delivery.App, delivery.Webhook} {
		b.Must(b.daemon.Drain(b.Context(), c))
	}
}

func (b *noticeFixture) status(id user.ID) (s string) {
	b.Helper()
	b.Must(b.SQL.QueryRow(b.Context(), `select coalesce(min(status || ' ' || reason), 'none') from notices where user_id = $1`, id).Scan(&s))
	return s
}

// calendar fails unless the counted days agree with the notices.
func (b *noticeFixture) calendar() (sum coupon.NoticeDay) {
	b.Helper()
	now := pgtest.Clock()
	list, err := b.notices.NoticeDays(b.Context(), now.AddDate(0, 0, -60), now.AddDate(0, 0, 60), nil, 0)
	b.Must(err)
	for _, d := range list {
		sum.Planned, sum.Sent, sum.Failed, sum.Dropped = sum.Planned+d.Planned, sum.Sent+d.Sent, sum.Failed+d.Failed, sum.Dropped+d.Dropped
	}
	for status, want := range map[int]int64{0: sum.Waiting(), 1: sum.Sent, 2: sum.Failed} {
		if got := b.Number(`select count(*) from notices where status = $1`, status); got != want {
			b.Errorf("status %d: %d notices, %d counted", status, got, want)
		}
	}
	for _, d := range list {
		if off := b.off(d.Day); off != 0 {
			b.Errorf("the day %v is off by %d", d.Day, off)
		}
	}
	if off, _ := b.runsOff(); off != 0 {
		b.Errorf("runs are off by %d", off)
	}
	return sum
}

func TestNoticesGoOut(t *testing.T) {
	b := newNoticeFixture(t, 1)
	b.hook.Answer = func(m delivery.Message, _ int) delivery.Result {
		if m.To.ID == 3 || m.To.ID == 4 {
			return delivery.Result{Status: delivery.Permanent, Detail: "gone"}
		}
		if m.Content.Title != "Your coupon expires tomorrow: Half price" {
			t.Errorf("told %q", m.Content.Title)
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	b.app.Answer = func(m delivery.Message, _ int) delivery.Result {
		if m.To.ID == 3 {
			return delivery.Result{Status: delivery.Permanent, Detail: "gone"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	b.own(b.drop, 1, 2, 3, 4, 5, 6)
	b.own(b.template(), 9) // without a notice
	b.planned(6)
	b.Must(b.announcer.Sweep(t.Context()))
	if n := b.Number(`select count(*) from batches`); n != 0 {
		t.Fatal("cut before it is due")
	}
	b.Exec(`update coupons set state = 'used' where user_id = 5`)
	b.Exec(`update users set opt_outs = 17 where id = 6`) // app and webhook
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	b.Must(b.announcer.Sweep(t.Context()))
	if n := b.Number(`select count(*) from batches where kind = 'notice'`); n != 2 {
		t.Fatalf("%d batches, want one per channel", n)
	}
	if len(b.queue.Tasks) != 2 {
		t.Errorf("%d workers were woken", len(b.queue.Tasks))
	}
	b.deliver()
	b.until("settled", func() bool { return b.Number(`select count(*) from notice_runs where settled_at is null`) == 0 })
	for id, want := range map[user.ID]string{1: "1 ", 2: "1 ", 3: "2 refused_by_provider", 4: "1 ", 5: "none", 6: "2 opted_out"} {
		if got := b.status(id); got != want {
			t.Errorf("user %d: %q, want %q", id, got, want)
		}
	}
	got := b.calendar()
	want := got
	want.Planned, want.Sent, want.Failed, want.Dropped = 6, 3, 2, 1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calendar (-want +got):\n%s", diff)
	}
	if len(b.app.Got) != 4 || len(b.hook.Got) != 4 {
		t.Errorf("app told %v, webhook %v", b.app.Got, b.hook.Got)
	}
	for key, times := range b.app.Got {
		if times != 1 {
			t.Errorf("%s was sent %d times", key, times)
		}
	}
	// Settling again, because an event is repeated, changes nothing.
	b.Must(b.notices.SettleNotices(t.Context(), b.Number(`select id from notice_runs`)))
	b.calendar()
}

// TestSlowNoticesFollowTheirUsers sends one notice a second. After the first second other
// users use their coupon, begin quiet hours that last longer than the coupon, or opt out.
// These users get no notice.
func TestSlowNoticesFollowTheirUsers(t *testing.T) {
	b := newNoticeFixture(t, 1)
	b.own(b.drop, 1, 2, 3, 4, 5, 6)
	b.planned(6)
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	slow := pgtest.NewSink(delivery.Webhook, 1)
	var passed atomic.Int64 // seconds
	slow.Answer = func(m delivery.Message, _ int) delivery.Result {
		if passed.Add(1) == 2 {
			b.Exec(`update coupons set state = 'used' where user_id = 3`)
			b.Exec(`update users set timezone = 'UTC', quiet_from = (m + 1435) % 1440, quiet_to = (m + 1430) % 1440
				from (select (extract(hour from now() at time zone 'UTC') * 60 + extract(minute from now()))::int as m) x where id = 4`)
			b.Exec(`update users set opt_outs = 16 where id = 5`)
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	d := b.Deliverer(b.queue, slow)
	d.Guards, d.Parallel = b.daemon.Guards, nil
	d.Now = func() time.Time { return pgtest.Clock().Add(time.Duration(passed.Load()) * time.Second) }
	b.Must(d.RunNext(t.Context(), delivery.Webhook))
	if len(slow.Got) != 3 {
		t.Errorf("told %v", slow.Got)
	}
	for id, want := range map[user.ID]string{3: delivery.ReasonCouponGone, 4: delivery.ReasonQuietHours, 5: delivery.ReasonOptedOut} {
		if n := b.Number(`select count(*) from exceptions where user_id = $1 and reason = $2 and channel = $3`, id, want, delivery.Webhook); n != 1 {
			t.Errorf("user %d: %d exceptions for %s", id, n, want)
		}
	}
}

// TestNoticesMissNoCoupon: ids are drawn before they are committed, so a smaller id may appear
// after notices were planned for a greater id.
func TestNoticesMissNoCoupon(t *testing.T) {
	b := newNoticeFixture(t, 1)
	_, commit := b.Hold(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
		values ($1, 1, 1, 'claim', now(), now() + interval '100 hours')`, b.drop.ID)
	b.own(b.drop, 2)
	for range 5 {
		b.Must(b.announcer.Sweep(t.Context()))
	}
	if n := b.Number(`select count(*) from notices`); n != 0 {
		t.Fatal("planned beyond a coupon that is not committed yet")
	}
	commit()
	b.planned(2)
	b.own(b.drop, 3)
	b.planned(3)
	// Two coupons of one day are one notice, of the later expiry.
	b.Exec(`update notices set expires_at = expires_at - interval '1 second'`)
	before := b.Number(`select extract(epoch from max(expires_at))::bigint from notices where user_id = 3`)
	b.own(b.drop, 3)
	b.until("extended", func() bool {
		return b.Number(`select extract(epoch from max(expires_at))::bigint from notices where user_id = 3`) > before
	})
	b.planned(3)
}

// TestNoticesMissNoCouponOfTheNewestTransaction: the horizon is stored when no transaction
// with a greater number than the running transaction has ended.
func TestNoticesMissNoCouponOfTheNewestTransaction(t *testing.T) {
	b := newNoticeFixture(t, 1)
	const draw = `insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
		values ($1, $2, $2, 'claim', now(), now() + interval '100 hours')`
	older, commitOlder := b.Hold(draw, b.drop.ID, 1)
	_, commitNewer := b.Hold(draw, b.drop.ID, 2)
	_, err := older.Exec(t.Context(), draw, b.drop.ID, 3)
	b.Must(err)
	commitOlder()
	for range 5 {
		b.Must(b.announcer.Sweep(t.Context()))
	}
	if n := b.Number(`select count(*) from notices`); n != 0 {
		t.Error("planned beyond a coupon that is not committed yet")
	}
	commitNewer()
	b.planned(3)
}

// TestNoticesAreCutOnce: several workers cut each notice once. A user whose notices of several
// days are overdue gets one notice.
func TestNoticesAreCutOnce(t *testing.T) {
	b := newNoticeFixture(t, 1, 2, 3)
	var users []int64
	for i := range int64(60) {
		users = append(users, i+1)
	}
	b.own(b.drop, users...)
	b.planned(180)
	b.comeDue()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				_, n, err := b.notices.CutNotices(b.Context(), 30)
				if err != nil {
					b.Error(err)
				}
				if n == 0 {
					return
				}
			}
		})
	}
	all.Wait()
	if n := b.Number(`select count(*) from notices where run_id is null`); n != 0 {
		t.Fatalf("%d are left", n)
	}
	if n := b.Number(`select coalesce(sum(due_count), 0) from batches where channel = 0`); n != b.Number(`select count(*) from notices`) {
		t.Fatalf("%d in batches, %d notices", n, b.Number(`select count(*) from notices`))
	}
	b.deliver()
	b.until("settled", func() bool { return b.Number(`select count(*) from notice_runs where settled_at is null`) == 0 })
	for key, times := range b.app.Got {
		if times != 1 {
			t.Errorf("%s was sent %d times", key, times)
		}
	}
	b.calendar()
}

func TestNoticesTooLate(t *testing.T) {
	b := newNoticeFixture(t, 1, 2)
	b.own(b.drop, 1, 2)
	b.planned(4)
	b.Exec(`update notices set expires_at = clock_timestamp() where user_id = 1`)
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	if got := b.status(1); got != "2 deadline" {
		t.Errorf("expired before anybody was told: %q", got)
	}
	// User 2 gets only the notice of the day nearest to the expiry.
	if n := b.Number(`select count(*) from notices where user_id = 2`); n != 1 || b.Number(`select days from notices where user_id = 2`) != 1 {
		t.Errorf("%d notices for user 2", n)
	}
	got := b.calendar()
	if got.Waiting() != 1 {
		t.Errorf("calendar %+v", got)
	}
	want := got
	want.Planned, want.Failed, want.Dropped = 4, 2, 1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calendar (-want +got):\n%s", diff)
	}
}

// TestNoticesLetPeopleSleep covers users who changed their quiet hours or time zone after the
// notice was planned. They get the notice once, at the end of their quiet hours, or not at all
// if that is too late.
func TestNoticesLetPeopleSleep(t *testing.T) {
	b := newNoticeFixture(t, 1)
	const awake, asleep, byShop, tooLong, spent = 1, 2, 3, 4, 5
	b.own(b.drop, awake, asleep, byShop, spent)
	b.planned(4)
	now := pgtest.Clock()
	quiet := func(id user.ID, zone string, from, to time.Duration) {
		loc, err := time.LoadLocation(zone)
		b.Must(err)
		minute := func(at time.Time) int { return at.In(loc).Hour()*60 + at.In(loc).Minute() }
		b.Exec(`update users set timezone = $2, quiet_from = $3, quiet_to = $4 where id = $1`, id, zone, minute(now.Add(from)), minute(now.Add(to)))
	}
	quiet(awake, "Asia/Tokyo", 2*time.Hour, 3*time.Hour)
	quiet(asleep, "America/New_York", -time.Hour, time.Hour)
	b.Exec(`update shops set timezone = 'Asia/Tokyo'`)
	quiet(byShop, "Asia/Tokyo", -time.Hour, time.Hour)
	b.Exec(`update users set timezone = '' where id = $1`, byShop)
	quiet(spent, "UTC", -time.Hour, time.Hour)
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	b.deliver()
	for id, want := range map[int]int{awake: 1, asleep: 0, byShop: 0, spent: 0} {
		if n := timesTold(b.app, id) + timesTold(b.hook, id); n != 2*want {
			t.Errorf("user %d was told %d times", id, n)
		}
	}
	if list, err := b.Channels.Backlogs(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("who sleeps is no backlog: %+v %v", list, err)
	}
	b.Exec(`update coupons set state = 'used', expires_at = expires_at where user_id = $1`, spent) // overnight
	b.wake()
	if timesTold(b.app, spent)+timesTold(b.hook, spent) != 0 {
		t.Error("who has used the coupon is told that it expires")
	}
	if timesTold(b.app, asleep) != 1 || timesTold(b.hook, asleep) != 1 || timesTold(b.app, byShop) != 1 || timesTold(b.app, awake) != 1 {
		t.Errorf("in the end app told %v, webhook %v", b.app.Got, b.hook.Got)
	}
	b.until("settled", func() bool { return b.Number(`select count(*) from notice_runs where settled_at is null`) == 0 })
	if got := b.calendar(); got.Sent != 3 || got.Dropped != 1 || got.Failed != 0 {
		t.Errorf("calendar %+v", got)
	}
	if n := b.Number(`select count(*) from notices where user_id = $1`, spent); n != 0 {
		t.Errorf("%d notices of a used coupon are kept", n)
	}
	b.own(b.drop, tooLong)
	b.planned(4)
	quiet(tooLong, "UTC", -time.Hour, 2*time.Hour)
	b.Exec(`update notices set expires_at = clock_timestamp() + interval '110 minutes' where user_id = $1`, tooLong)
	b.Exec(`update coupons set expires_at = clock_timestamp() + interval '100 minutes' where user_id = $1`, tooLong)
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	b.deliver()
	b.until("settled", func() bool { return b.status(tooLong) == "2 quiet_hours" })
}

// timesTold is how often a user was sent something.
func timesTold(s *pgtest.Sink, id int) (n int) {
	for key, times := range s.Got {
		if strings.HasSuffix(key, fmt.Sprint("-", id)) {
			n += times
		}
	}
	return n
}

// wake ends all users' quiet hours and delivers their deferred notices.
func (b *noticeFixture) wake() {
	b.Helper()
	b.Exec(`update users set quiet_from = quiet_to`)
	b.Exec(`update batches set next_run_at = clock_timestamp() where state = 'ready'`)
	b.Exec(`update exceptions set next_retry_at = clock_timestamp() where outcome = 'failed'`)
	b.deliver()
}

// TestNoticesOfReplayedLettersAreSettledAgain: the run is settled again even if the event
// about the replay is lost. Until then its notices are recorded as failed.
func TestNoticesOfReplayedLettersAreSettledAgain(t *testing.T) {
	b := newNoticeFixture(t, 1)
	refuse := func(delivery.Message, int) delivery.Result {
		return delivery.Result{Status: delivery.Permanent, Detail: "gone"}
	}
	b.app.Answer, b.hook.Answer = refuse, refuse
	b.own(b.drop, 1, 2)
	b.planned(2)
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	b.deliver()
	b.until("settled", func() bool { return b.status(1) == "2 refused_by_provider" && b.status(2) == "2 refused_by_provider" })
	b.app.Answer, b.hook.Answer = nil, nil
	letters := &delivery.DeadLetters{Store: b.DeadLetters}
	_, err := letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Replay, Filter: delivery.DeadLetterFilter{UserID: 1}})
	b.Must(err)
	b.Must(letters.Step(t.Context()))
	// A worker that counted before the replay does not settle the run.
	b.Must(b.notices.SettleNotices(t.Context(), b.Number(`select id from notice_runs`)))
	b.deliver()
	b.until("settled again", func() bool { return b.status(1) == "1 " })
	if got := b.status(2); got != "2 refused_by_provider" {
		t.Errorf("who was not replayed: %q", got)
	}
	if got := b.calendar(); got.Sent != 1 || got.Failed != 1 {
		t.Errorf("calendar %+v", got)
	}
}

// TestSettlingNoticesWaitsForAReplay: settling waits for a replay that has made a batch ready
// again, and then leaves the run to a later call.
func TestSettlingNoticesWaitsForAReplay(t *testing.T) {
	b := newNoticeFixture(t, 1)
	b.own(b.drop, 1)
	b.planned(1)
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	b.deliver()
	b.until("settled", func() bool { return b.status(1) == "1 " })
	run := b.Number(`select id from notice_runs`)
	tx, commit := b.Hold(`select from notice_runs where id = $1 for update`, run)
	_, err := tx.Exec(t.Context(), `update batches set state = 'ready' where owner_id = $1 and kind = 'notice'`, run)
	b.Must(err)
	_, err = tx.Exec(t.Context(), `update notice_runs set settled_at = null where id = $1`, run)
	b.Must(err)
	settled := make(chan error, 1)
	go func() { settled <- b.notices.SettleNotices(b.Context(), run) }()
	b.Blocked(1)
	commit()
	b.Must(<-settled)
	if n := b.Number(`select count(*) from notice_runs where settled_at is null`); n != 1 {
		t.Error("settled while a batch is ready")
	}
}

// TestHeldOutUsersGetNoNotice: no notice is planned for a held-out user with a reservation, and a
// notice that an earlier program planned is dropped. Users without a reservation are not compared
// and get theirs.
func TestHeldOutUsersGetNoNotice(t *testing.T) {
	b := newNoticeFixture(t, 1)
	b.Exec(`update templates set hold_out_percent = 50 where id = $1`, b.drop.ID)
	var held, others []int64
	for id := int64(1); len(held) < 3 || len(others) < 2; id++ {
		if delivery.HeldOutOfDrop(b.drop.ID, 50, user.ID(id)) {
			held = append(held, id)
		} else {
			others = append(others, id)
		}
	}
	planned, early, absent := held[0], held[1], held[2]
	b.own(b.drop, planned, early, absent, others[0], others[1])
	for _, id := range []int64{planned, early, others[0]} {
		b.Insert("reservations", pgtest.Row{"template_id": b.drop.ID, "user_id": id, "slots": 1})
	}
	b.planned(3)
	b.Exec(`insert into notices select $1, template_id, day, days, due_at, expires_at from notices limit 1`, early)
	b.Exec(`update notice_days set planned = planned + 1`)
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	b.deliver()
	b.until("settled", func() bool { return b.Number(`select count(*) from notice_runs where settled_at is null`) == 0 })
	for id, want := range map[int64]string{planned: "none", early: "none", absent: "1 ", others[0]: "1 ", others[1]: "1 "} {
		if got := b.status(user.ID(id)); got != want {
			t.Errorf("user %d: %q, want %q", id, got, want)
		}
	}
	if sum := b.calendar(); sum.Planned != 4 || sum.Sent != 3 || sum.Dropped != 1 {
		t.Errorf("%+v", sum)
	}
}
