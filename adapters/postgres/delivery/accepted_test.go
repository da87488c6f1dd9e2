package delivery_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
)

// TestAcceptedMessagesOutliveTheirWorker: a worker that takes a batch over knows the messages
// that were recorded one by one, until a checkpoint contains them. The records are removed at
// the batch's end.
func TestAcceptedMessagesOutliveTheirWorker(t *testing.T) {
	w := newFixture(t)
	for name, store := range w.stores() {
		t.Run(name, func(t *testing.T) {
			w.Exec(`truncate batches, exceptions, outbox, accepted_messages cascade`)
			w.ready(1, time.Hour)
			lease := func(want ...user.ID) delivery.Lease {
				t.Helper()
				l, err := store.LeaseNext(t.Context(), delivery.App, time.Minute)
				if w.Must(err); !slices.Equal(l.Batch().Accepted, want) {
					t.Fatalf("accepted are %v, want %v", l.Batch().Accepted, want)
				}
				return l
			}
			dies := func() { // and another worker takes over
				w.Exec(`update batches set lease_until = now() - interval '2 seconds', next_run_at = now() - interval '1 second'`)
				_, err := w.Batches.TakeBack(t.Context())
				w.Must(err)
			}
			accept := func(l delivery.Lease, ids ...user.ID) {
				t.Helper()
				for _, id := range ids {
					w.Must(l.Accepted(t.Context(), id, 0))
				}
			}
			checkpoint := func(l delivery.Lease, p delivery.Progress) {
				t.Helper()
				_, err := l.Checkpoint(t.Context(), p)
				w.Must(err)
			}
			first := lease()
			accept(first, 1, 3, 2, 2) // the answer to the third got lost
			dies()
			second := lease(1, 2, 3)
			if err := first.Accepted(t.Context(), 4, 0); !errors.Is(err, delivery.ErrLeaseLost) {
				t.Errorf("the first worker could still record: %v", err)
			}
			checkpoint(second, delivery.Progress{Sent: []user.ID{1, 2, 3}, Exceptions: []delivery.Exception{{UserID: 5, Outcome: delivery.Failed, Attempts: 1}}})
			accept(second, 5, 6)
			dies()
			third := lease(5, 6)
			// Another worker may have recorded a final outcome before the late worker's
			// message arrived.
			checkpoint(third, delivery.Progress{Exceptions: []delivery.Exception{{UserID: 6, Outcome: delivery.Skipped, Reason: "opted_out"}}, ReleaseUntil: time.Now().Add(-time.Second)})
			fourth := lease(5)
			if e := fourth.Batch().Exceptions[5]; e.Outcome != delivery.Failed || e.Attempts != 1 {
				t.Errorf("%+v", e)
			}
			checkpoint(fourth, delivery.Progress{Sent: []user.ID{4, 5, 7, 8, 9, 10}, Exceptions: []delivery.Exception{{UserID: 5, Outcome: delivery.Recovered, Attempts: 1}}, Done: true})
			if err := fourth.Accepted(t.Context(), 7, 0); !errors.Is(err, delivery.ErrLeaseLost) {
				t.Errorf("recorded after the end: %v", err)
			}
			if n := w.Number(`select count(*) from accepted_messages`); n != 0 {
				t.Errorf("%d rows are left", n)
			}
			if n := w.Number(`select sent_count * 100 + skipped_count * 10 + failed_count from batches`); n != 9*100+10 {
				t.Errorf("counts %d", n)
			}
		})
	}
}

// TestAcceptedMessagesOfManyBatches: messages of many batches are recorded together, and only
// the messages of a batch whose lease is lost fail.
func TestAcceptedMessagesOfManyBatches(t *testing.T) {
	w := newFixture(t)
	w.ready(6, time.Hour)
	leases := make([]delivery.Lease, 6)
	for i := range leases {
		var err error
		leases[i], err = w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
		w.Must(err)
	}
	lost := leases[2].Batch()
	w.Exec(`update batches set lease_until = now() - interval '2 seconds', next_run_at = now() - interval '1 second' where id = $1`, lost.ID)
	_, err := w.Batches.TakeBack(t.Context())
	w.Must(err)
	var all sync.WaitGroup
	for _, l := range leases {
		for _, id := range l.Batch().Left {
			all.Go(func() {
				err := l.Accepted(t.Context(), id, 0)
				if is := errors.Is(err, delivery.ErrLeaseLost); is != (l.Batch() == lost) || err != nil && !is {
					t.Errorf("batch %d, user %d: %v", l.Batch().ID, id, err)
				}
			})
		}
	}
	all.Wait()
	if n := w.Number(`select count(*) from (select distinct batch_id, unnest(users) from accepted_messages) a`); n != 50 {
		t.Errorf("%d messages are recorded, want 50", n)
	}
	w.Exec(`update accepted_messages set at = now() - interval '2 days'`)
	w.Exec(`update batches set state = 'done', lease_token = null, lease_until = null where id <> $1`, leases[0].Batch().ID)
	w.Clean()
	if n := w.Number(`select count(distinct batch_id) from accepted_messages`); n != 1 {
		t.Errorf("messages of %d batches are left, want those of the one that is not done", n)
	}
}

// TestReportedMessagesWereHandedOver: a worker dies before it records its messages. The
// provider's reports tell the next worker that the messages were sent.
func TestReportedMessagesWereHandedOver(t *testing.T) {
	w := newFixture(t)
	f := w.feedback()
	w.ready(1, time.Hour)
	first, err := w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
	w.Must(err)
	batch := first.Batch().ID
	w.Must(first.Accepted(t.Context(), 6, 0))
	_, err = first.Checkpoint(t.Context(), delivery.Progress{Sent: []user.ID{1}, Exceptions: []delivery.Exception{
		{UserID: 7, Outcome: delivery.Skipped, Reason: delivery.ReasonOptedOut}, {UserID: 8, Outcome: delivery.Failed, Attempts: 1}}})
	w.Must(err)
	var reports []feedback.Report
	for id, status := range map[user.ID]feedback.Status{1: feedback.Delivered, 2: feedback.SoftBounced, 3: feedback.Bounced, 4: feedback.Complained,
		5: feedback.Delivered, 6: feedback.Delivered, 7: feedback.Delivered, 8: feedback.Bounced} {
		reports = append(reports, report(batch, id, status))
	}
	w.Must(f.Take(t.Context(), reports))
	w.Exec(`update batches set lease_until = now() - interval '2 seconds', next_run_at = now() - interval '1 second'`)
	_, err = w.Batches.TakeBack(t.Context())
	w.Must(err)
	for name, store := range w.stores() {
		w.Exec(`update batches set state = 'ready', lease_token = null, lease_until = null, next_run_at = now() - interval '1 second'`)
		l, err := store.LeaseNext(t.Context(), delivery.App, time.Minute)
		if w.Must(err); !slices.Equal(l.Batch().Accepted, []user.ID{3, 4, 5, 6}) {
			t.Errorf("%s: accepted are %v", name, l.Batch().Accepted)
		}
	}
}

// TestReportedMessagesNameTheOnlyProvider: a message that is known only from a report counts
// for the provider that accepted all other messages of the batch, if there is only one such
// provider.
func TestReportedMessagesNameTheOnlyProvider(t *testing.T) {
	w := newFixture(t)
	f := w.feedback()
	w.ready(1, time.Hour)
	var l delivery.Lease
	next := func() {
		t.Helper()
		w.Exec(`update batches set state = 'ready', lease_token = null, lease_until = null, next_run_at = now() - interval '1 second'`)
		var err error
		l, err = w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
		w.Must(err)
	}
	next()
	w.Must(f.Take(t.Context(), []feedback.Report{report(l.Batch().ID, 3, feedback.Delivered)}))
	for _, step := range []struct {
		record func() error
		want   int64
	}{
		{func() error { return nil }, 0}, // nothing is known
		{func() error { return l.Accepted(t.Context(), 6, 11) }, 11},
		{func() error {
			_, err := l.Checkpoint(t.Context(), delivery.Progress{Sent: []user.ID{1}, Via: map[user.ID]int64{1: 11}})
			return err
		}, 11},
		{func() error { return l.Accepted(t.Context(), 7, 0) }, 0}, // the environment's
	} {
		w.Must(step.record())
		next()
		if b := l.Batch(); !slices.Contains(b.Accepted, 3) || b.AcceptedVia[3] != step.want {
			t.Errorf("accepted are %v through %v, want %d", b.Accepted, b.AcceptedVia, step.want)
		}
	}
}
