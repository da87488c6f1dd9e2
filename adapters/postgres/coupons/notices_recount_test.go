package coupons_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/delivery"
)

// off returns the difference between the calendar's day and its notices.
func (b *noticeFixture) off(day time.Time) (sum int64) {
	b.Helper()
	list, err := b.notices.DayBalance(b.Context(), day)
	b.Must(err)
	for _, l := range list {
		sum += l.Difference()
	}
	return sum
}

// runsOff returns the sum of the differences between recent runs and their
// batches, and the number of these runs.
func (b *noticeFixture) runsOff() (sum int64, looked int) {
	b.Helper()
	list, looked, err := b.notices.RecentRuns(b.Context(), time.Hour, 100)
	b.Must(err)
	for _, l := range list {
		sum += l.Difference()
	}
	return sum, looked
}

// TestNoticesAreRecounted: the sent notices balance for every outcome of a
// reader, and a single wrong row of any kind is found.
func TestNoticesAreRecounted(t *testing.T) {
	b := newNoticeFixture(t, 1)
	fail := func(m delivery.Message, _ int) delivery.Result {
		if m.To.ID == 3 {
			return delivery.Result{Status: delivery.Permanent, Detail: "gone"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	b.app.Answer, b.hook.Answer = fail, fail
	b.own(b.drop, 1, 2, 3, 4, 5)
	b.planned(5)
	b.Exec(`update coupons set state = 'used' where user_id = 4`) // dropped before it is cut
	b.comeDue()
	b.until("the run is cut", func() bool { return b.Number(`select count(*) from batches`) == 2 })
	b.Exec(`update coupons set state = 'used' where user_id = 5`) // gone before it is sent
	b.deliver()
	b.until("the run is settled", func() bool { return b.Number(`select count(*) from notice_runs where settled_at is not null`) == 1 })
	sum := b.calendar()
	want := sum
	want.Planned, want.Sent, want.Failed, want.Dropped = 5, 2, 1, 2
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Fatalf("calendar (-want +got):\n%s", diff)
	}
	var day time.Time
	b.Must(b.SQL.QueryRow(t.Context(), `select day from notice_days`).Scan(&day))
	off, looked := b.runsOff()
	ofDay, lookedOfDay, err := b.notices.RunsOf(t.Context(), day)
	b.Must(err)
	if off != 0 || looked != 1 || len(ofDay) != 0 || lookedOfDay != 1 {
		t.Fatalf("off by %d in %d runs; of the day %v in %d", off, looked, ofDay, lookedOfDay)
	}
	for name, c := range map[string]struct {
		change    string
		days, run int64
	}{
		"a notice is gone":              {`delete from notices where user_id = 1`, 2, 1},
		"a notice has no outcome":       {`update notices set status = 0 where user_id = 1`, 1, 1},
		"failed, but reached":           {`update notices set status = 2 where user_id = 1`, 2, 1},
		"sent, but not reached":         {`update notices set status = 1 where user_id = 3`, 2, 1},
		"of somebody in no batch":       {`insert into notices select 77, template_id, day, days, due_at, expires_at, 1, '', run_id from notices where user_id = 1`, 2, 1},
		"planned is counted wrongly":    {`update notice_days set planned = planned + 7`, 7, 0},
		"sent is counted wrongly":       {`update notice_days set sent = sent - 1`, 1, 0},
		"a day that is not counted":     {`delete from notice_days`, 3 + 2 + 1, 0},
		"a run that is open says no":    {`update notice_runs set settled_at = null`, 0, 0},
		"a batch that is not done, too": {`update batches set state = 'ready' where channel = 0`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tables := []string{"notices", "notice_days", "notice_runs", "batches"}
			for _, table := range tables {
				b.Exec(`create table kept_` + table + ` as table ` + table)
			}
			b.Exec(c.change)
			if got := b.off(day); got != c.days {
				t.Errorf("the day is off by %d, want %d", got, c.days)
			}
			if got, _ := b.runsOff(); got != c.run {
				t.Errorf("the run is off by %d, want %d", got, c.run)
			}
			b.Exec(`delete from notices`)
			b.Exec(`delete from notice_days`)
			b.Exec(`insert into notices table kept_notices`)
			b.Exec(`insert into notice_days table kept_notice_days`)
			b.Exec(`update notice_runs r set settled_at = k.settled_at from kept_notice_runs k where k.id = r.id`)
			b.Exec(`update batches b set state = k.state from kept_batches k where k.id = b.id`)
			for _, table := range tables {
				b.Exec(`drop table kept_` + table)
			}
		})
	}
}
