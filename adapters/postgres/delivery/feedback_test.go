package delivery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
)

// sentBatch stores a batch of the users 1 to n that was sent, and returns its id.
func (w *fixture) sentBatch(n int) int64 {
	w.Helper()
	w.ready(1, time.Hour)
	l, err := w.Batches.LeaseNext(w.Context(), delivery.App, time.Minute)
	w.Must(err)
	_, err = l.Checkpoint(w.Context(), delivery.Progress{Sent: l.Batch().Left[:n], Done: true})
	w.Must(err)
	return l.Batch().ID
}

func (w *fixture) feedback() *deliverydb.Feedback {
	f := deliverydb.NewFeedback(w.DB, nil)
	w.Cleanup(f.Close)
	return f
}

func report(batch int64, id user.ID, s feedback.Status) feedback.Report {
	return feedback.Report{Ref: feedback.Ref{Batch: batch, User: id}, Status: s, Provider: "ses", Cause: "550 no such user <ada@shop.example>"}
}

// counts returns the numbers of delivered, bounced and complained messages, as one number.
func (w *fixture) counts(batch int64) int64 {
	return w.Number(`select delivered_count * 10000 + bounced_count * 100 + complained_count from batch_feedback where batch_id = $1`, batch)
}

// TestReportsComeInAnyOrder: any order, repetition and division of reports into calls stores
// the same state.
func TestReportsComeInAnyOrder(t *testing.T) {
	w := newFixture(t)
	f, batch := w.feedback(), w.sentBatch(10)
	all := []feedback.Report{report(batch, 1, feedback.Delivered),
		report(batch, 2, feedback.SoftBounced), report(batch, 2, feedback.Delivered),
		report(batch, 3, feedback.Delivered), report(batch, 3, feedback.Bounced),
		report(batch, 4, feedback.Bounced), report(batch, 4, feedback.Complained), report(batch, 4, feedback.Delivered),
		report(batch, 5, feedback.SoftBounced), report(batch, 6, feedback.Bounced)}
	for range 8 {
		w.Exec(`truncate batch_feedback cascade`)
		shuffled := slices.Concat(all, all)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		var calls sync.WaitGroup
		for len(shuffled) > 0 {
			n := 1 + rand.IntN(len(shuffled))
			call := shuffled[:n]
			shuffled = shuffled[n:]
			calls.Go(func() {
				if err := f.Take(t.Context(), call); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if n := w.counts(batch); n != 3*10000+3*100+1 {
			t.Fatalf("%d", n)
		}
		var rows string
		w.Must(w.SQL.QueryRow(t.Context(), `select string_agg(user_id || ' ' || status || ' ' || provider, ', ' order by user_id) from feedback_reports`).Scan(&rows))
		if rows != "3 bounced ses, 4 complained ses, 5 soft_bounced ses, 6 bounced ses" {
			t.Fatal(rows)
		}
	}
	var cause string
	w.Must(w.SQL.QueryRow(t.Context(), `select min(cause) from feedback_reports`).Scan(&cause))
	if !strings.HasPrefix(cause, "550 no such user") || strings.Contains(cause, "ada") {
		t.Error(cause)
	}
}

// TestReportsOfNoMessageAreIgnored: reports about unknown messages change nothing and return
// no error; with an error the provider would repeat them for days.
func TestReportsOfNoMessageAreIgnored(t *testing.T) {
	w := newFixture(t)
	f, batch := w.feedback(), w.sentBatch(10)
	n, err := f.Count(t.Context(), []feedback.Report{report(batch, 999, feedback.Delivered), report(batch+1, 1, feedback.Bounced),
		report(-1, -1, feedback.Delivered), {Status: feedback.Bounced, Address: "ada@shop.example"}, report(batch, 1, "odd"), report(batch, 1, feedback.Delivered), report(batch, 1, feedback.Delivered)})
	if w.Must(err); n != (feedback.Taken{Stored: 1, Known: 1, Ignored: 5}) {
		t.Errorf("%+v", n)
	}
	if n := w.counts(batch); n != 10000 {
		t.Errorf("%d", n)
	}
	w.Exec(`delete from batches`)
	n, err = f.Count(t.Context(), []feedback.Report{report(batch, 2, feedback.Bounced)})
	if w.Must(err); n != (feedback.Taken{Ignored: 1}) {
		t.Errorf("of a removed batch: %+v", n)
	}
	w.Must(f.Take(t.Context(), nil))
}

// TestReceiptsBeforeTheAnswer: a receipt may arrive before the answer of the call that sent
// the message. A checkpoint of the batch keeps the receipt.
func TestReceiptsBeforeTheAnswer(t *testing.T) {
	w := newFixture(t)
	f := w.feedback()
	w.ready(1, time.Hour)
	l, err := w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
	w.Must(err)
	batch := l.Batch().ID
	tallies := func() feedback.Tally {
		t.Helper()
		list, err := pg.Tallies(t.Context(), w.DB, delivery.KindReminder, []int64{1})
		w.Must(err)
		if len(list) > 1 {
			t.Fatal(list)
		}
		for _, s := range list {
			return s.Tally
		}
		return feedback.Tally{}
	}
	w.Must(f.Take(t.Context(), []feedback.Report{report(batch, 1, feedback.Delivered), report(batch, 2, feedback.Bounced), report(batch, 3, feedback.Complained)}))
	if n := tallies(); n.Any() {
		t.Errorf("of nothing sent %+v", n)
	}
	for sent, want := range []feedback.Tally{1: {Delivered: 1}, 2: {Delivered: 1, Bounced: 1}, 3: {Delivered: 2, Bounced: 1, Complained: 1}} {
		if sent == 0 {
			continue
		}
		_, err = l.Checkpoint(t.Context(), delivery.Progress{Sent: l.Batch().Left[sent-1 : sent], Done: sent == 3})
		if w.Must(err); tallies() != want {
			t.Errorf("of %d sent %+v, not %+v", sent, tallies(), want)
		}
	}
}

// TestReportsOfMessagesThatFailed: the batch's page and the list of batches show reports about
// sent messages, as the sums do, and no reports about messages that are recorded as failed.
func TestReportsOfMessagesThatFailed(t *testing.T) {
	w := newFixture(t)
	f := w.feedback()
	w.ready(1, time.Hour)
	l, err := w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
	w.Must(err)
	batch, left := l.Batch().ID, slices.Clone(l.Batch().Left)
	var dead []delivery.Exception
	for _, id := range left[4:] {
		dead = append(dead, delivery.Exception{UserID: id, Outcome: delivery.Dead, Reason: delivery.ReasonTooManyTries, Attempts: 8, FirstAt: time.Now(), LastAt: time.Now()})
	}
	_, err = l.Checkpoint(t.Context(), delivery.Progress{Sent: left[:4], Exceptions: dead, Done: true})
	w.Must(err)
	w.Must(f.Take(t.Context(), []feedback.Report{report(batch, left[0], feedback.Delivered), report(batch, left[1], feedback.Bounced), report(batch, left[5], feedback.Delivered),
		report(batch, left[6], feedback.Complained), report(batch, left[7], feedback.Bounced)}))
	want := feedback.Tally{Delivered: 1, Bounced: 1}
	ledger := deliverydb.NewLedger(w.DB)
	row, err := ledger.Batch(t.Context(), batch)
	w.Must(err)
	page, err := ledger.Batches(t.Context(), delivery.BatchQuery{Limit: 10})
	w.Must(err)
	sums, err := pg.Tallies(t.Context(), w.DB, delivery.KindReminder, []int64{1})
	if w.Must(err); row.Reported != want || len(page.List) != 1 || page.List[0].Reported != want || len(sums) != 1 || sums[0].Tally != want {
		t.Errorf("the batch says %+v, the list %+v, the sums %+v", row.Reported, page.List, sums)
	}
}

// TestTheSetsOfManyBatchesAreReadOnce: a live page asks every second. The sets of thousands of
// batches are not read each time, but the sets of a few batches are.
func TestTheSetsOfManyBatchesAreReadOnce(t *testing.T) {
	for batches, want := range map[int]int64{20: 40, 150: 150} {
		w := newFixture(t)
		w.Fill("batches", fmt.Sprintf("generate_series(1, %d) n", batches), pgtest.Row{"template_id": 7, "channel": delivery.Email, "from_user": pgtest.SQL("n"),
			"to_user": pgtest.SQL("n"), "state": "done", "due_count": 10, "sent": pgtest.Bitmap(1, 2, 3, 4, 5), "sent_count": 5})
		w.Exec(`insert into batch_feedback (batch_id, kind, owner_id, channel, delivered, delivered_count) select id, kind, owner_id, channel, $1, 2 from batches`, pgtest.Bitmap(1, 6))
		sums, err := pg.Tallies(t.Context(), w.DB, delivery.KindReminder, []int64{1})
		if w.Must(err); len(sums) != 1 || sums[0].Delivered != int64(batches) {
			t.Errorf("%d batches: %+v", batches, sums)
		}
		w.Exec(`update batch_feedback set delivered = $1, delivered_count = 3`, pgtest.Bitmap(1, 2, 6))
		sums, err = pg.Tallies(t.Context(), w.DB, delivery.KindReminder, []int64{1})
		if w.Must(err); len(sums) != 1 || sums[0].Delivered != want {
			t.Errorf("%d batches after a report: %+v, want %d", batches, sums, want)
		}
	}
}

// TestPricesAreKept: a price that arrives later is kept, also when a status without a price
// follows.
func TestPricesAreKept(t *testing.T) {
	w := newFixture(t)
	f, batch := w.feedback(), w.sentBatch(10)
	priced := report(batch, 1, feedback.Delivered)
	priced.PriceMicros, priced.Currency = 7500, "USD"
	w.Must(f.Take(t.Context(), []feedback.Report{report(batch, 1, feedback.Delivered)}))
	w.Must(f.Take(t.Context(), []feedback.Report{priced, priced}))
	w.Must(f.Take(t.Context(), []feedback.Report{report(batch, 1, feedback.Bounced)}))
	if n := w.Number(`select price_micros from feedback_reports where status = 'bounced' and currency = 'USD'`); n != 7500 {
		t.Errorf("%d", n)
	}
	priced.Ref.User = 2
	w.Must(f.Take(t.Context(), []feedback.Report{priced, report(batch, 2, feedback.Complained)}))
	if n := w.Number(`select price_micros from feedback_reports where status = 'complained'`); n != 7500 {
		t.Errorf("in one call: %d", n)
	}
	if n := w.counts(batch); n != 10000+100+1 {
		t.Errorf("%d", n)
	}
}

// Two processes take reports of the same batches, in opposite orders.
func TestProcessesTakeReportsTogether(t *testing.T) {
	w := newFixture(t)
	w.ready(6, time.Hour)
	var ids []int64
	rows, err := w.SQL.Query(t.Context(), `select id from batches order by id`)
	w.Must(err)
	for rows.Next() {
		var id int64
		w.Must(rows.Scan(&id))
		ids = append(ids, id)
	}
	w.Must(rows.Err())
	var all sync.WaitGroup
	for p := range 2 {
		f := w.feedback()
		for i := range 60 {
			all.Go(func() {
				var reports []feedback.Report
				for n := range ids {
					at := n
					if p == 1 {
						at = len(ids) - 1 - n
					}
					reports = append(reports, report(ids[at], user.ID(10*at+1+(i+n)%10), []feedback.Status{feedback.Delivered, feedback.Bounced}[(i+n)%2]))
				}
				if err := f.Take(context.Background(), reports); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if n := w.Number(`select count(*) from batch_feedback where delivered_count + bounced_count > 0`); n != int64(len(ids)) {
		t.Errorf("%d of %d batches", n, len(ids))
	}
}

// TestRecipientsWithReports: the list of recipients shows the report about each message, and
// its cause.
func TestRecipientsWithReports(t *testing.T) {
	w := newFixture(t)
	f, batch := w.feedback(), w.sentBatch(10)
	w.Must(f.Take(t.Context(), []feedback.Report{report(batch, 1, feedback.Delivered), report(batch, 2, feedback.Bounced), report(batch, 3, feedback.SoftBounced)}))
	list, err := w.Ledger.Recipients(t.Context(), delivery.RecipientQuery{BatchID: batch})
	w.Must(err)
	for i, want := range []feedback.Status{feedback.Delivered, feedback.Bounced, feedback.SoftBounced, "", ""} {
		if r := list[i]; r.Outcome != delivery.Sent || r.Reported != want || (r.Cause != "") != (i == 1 || i == 2) {
			t.Errorf("%+v", r)
		}
	}
	row, err := w.Ledger.Batch(t.Context(), batch)
	if w.Must(err); row.Reported != (feedback.Tally{Delivered: 1, Bounced: 2}) {
		t.Errorf("%+v", row.Reported)
	}
}
