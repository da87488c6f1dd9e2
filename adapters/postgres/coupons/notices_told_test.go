package coupons_test

import (
	"testing"

	"dropbell/domain/coupon"
)

// sleeps gives the user quiet hours around now.
func (b *noticeFixture) sleeps(id int64) {
	b.Helper()
	b.Exec(`update users set timezone = 'UTC', quiet_from = (extract(hour from now() at time zone 'UTC')::int + 23) % 24 * 60,
		quiet_to = (extract(hour from now() at time zone 'UTC')::int + 2) % 24 * 60 where id = $1`, id)
}

// TestTheCalendarDoesNotWaitForSleepers: a reached reader is counted as sent
// while another reader of the run is in quiet hours.
func TestTheCalendarDoesNotWaitForSleepers(t *testing.T) {
	b := newNoticeFixture(t, 1)
	const asleep = 3
	b.own(b.drop, 1, 2, asleep)
	b.planned(3)
	b.sleeps(asleep)
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	b.deliver()
	b.until("noted", func() bool { return b.Number(`select count(*) from notices where status = 1`) == 2 })
	if got := b.calendar(); got != (coupon.NoticeDay{Planned: 3, Sent: 2}) {
		t.Errorf("while one sleeps the calendar says %+v", got)
	}
	told := b.Number(`select told from notice_runs`)
	if again, err := b.notices.SleepingRuns(t.Context(), 10); err != nil || len(again) != 0 || told != 4 { // two channels
		t.Errorf("%v are to be noted again after %d messages (%v)", again, told, err)
	}
	b.wake()
	b.until("settled", func() bool { return b.Number(`select count(*) from notice_runs where settled_at is null`) == 0 })
	if got := b.calendar(); got != (coupon.NoticeDay{Planned: 3, Sent: 3}) {
		t.Errorf("in the end the calendar says %+v", got)
	}
	run := b.Number(`select id from notice_runs`)
	b.Must(b.notices.NoteReached(t.Context(), run)) // too late, by another worker
	if got := b.calendar(); got != (coupon.NoticeDay{Planned: 3, Sent: 3}) {
		t.Errorf("noted after the end the calendar says %+v", got)
	}
}

// TestNoticesOfACouponThatIsUsedAtOnce: the notices of a coupon that was used at
// once are still planned, because the coupon may be refunded.
func TestNoticesOfACouponThatIsUsedAtOnce(t *testing.T) {
	b := newNoticeFixture(t, 1)
	b.own(b.drop, 1, 2)
	b.Exec(`update coupons set state = 'used'`)
	b.planned(2)
	b.Exec(`update coupons set state = 'unused' where user_id = 1`)
	b.comeDue()
	b.until("dealt with", func() bool { return b.Number(`select count(*) from notices where run_id is null`) == 0 })
	b.deliver()
	if timesTold(b.app, 1) != 1 || timesTold(b.app, 2) != 0 {
		t.Errorf("told: %v", b.app.Got)
	}
	b.until("settled", func() bool { return b.status(1) == "1 " })
	if got := b.calendar(); got != (coupon.NoticeDay{Planned: 2, Sent: 1, Dropped: 1}) {
		t.Errorf("the calendar says %+v", got)
	}
}
