package drops_test

import (
	"testing"
	"time"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// TestReportsInTheBalance: the reported messages are a part of the sent messages, and the
// balance sheet still balances. Each user's message shows its report.
func TestReportsInTheBalance(t *testing.T) {
	w := pgtest.New(t)
	tpl := w.Published(2 * time.Hour)
	const users = 30
	w.Seed(tpl, users, pgtest.Reminders(delivery.Email, 5)...)
	w.Exec(`insert into users (id, email) select n * 7919 + 1, 'u' || n || '@shop.example' from generate_series(0, $1 - 1) as n`, users)
	w.DueNow(tpl, 1)
	w.CutSlot(tpl, 1, 100)
	q := &pgtest.MemoryQueue{}
	sink := pgtest.NewSink(delivery.Email, 50)
	sink.Answer = func(m delivery.Message, _ int) delivery.Result {
		if m.To.ID == 1 {
			return delivery.Result{Status: delivery.Permanent, Detail: "no such mailbox"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	w.Must(w.Deliverer(q, sink).RunNext(t.Context(), delivery.Email))
	batch := w.Number(`select id from batches`)
	id := func(n int) user.ID { return user.ID(n*7919 + 1) }
	report := func(n int, s feedback.Status) feedback.Report {
		return feedback.Report{Ref: feedback.Ref{Batch: batch, User: id(n)}, Status: s, Provider: "ses", Cause: "550 unknown user"}
	}
	// The first message was refused, so a report about it is not counted.
	reports := []feedback.Report{report(0, feedback.Delivered), report(1, feedback.Bounced), report(2, feedback.Complained), report(3, feedback.SoftBounced)}
	for n := 4; n < 20; n++ {
		reports = append(reports, report(n, feedback.Delivered))
	}
	w.Must(w.Feedback.Take(t.Context(), reports))
	lines, err := w.Boards.Balance(t.Context(), tpl.ID)
	w.Must(err)
	for _, l := range lines {
		want := feedback.Tally{}
		if l.Channel == delivery.Email {
			want = feedback.Tally{Delivered: 17, Bounced: 2, Complained: 1}
			if l.Counted.Sent != users-1 || l.Reported.Unconfirmed(l.Counted.Sent) != users-1-19 {
				t.Errorf("%+v", l)
			}
		}
		if l.Difference() != 0 || l.Reported != want {
			t.Errorf("%s is off by %d: %+v", l.Channel, l.Difference(), l.Reported)
		}
	}
	// All figures follow the rule of [pg.CountReported].
	want := feedback.Tally{Delivered: 17, Bounced: 2, Complained: 1}
	board, err := w.Boards.Board(t.Context(), tpl.ID)
	w.Must(err)
	var onBoard feedback.Tally
	for _, r := range board.Rows {
		onBoard = onBoard.Plus(r.Cells[delivery.Email].Reported)
	}
	if onBoard != want {
		t.Errorf("the board says %+v", onBoard)
	}
	explainer := &reminder.Explainer{Store: w.Reservations, Coupons: w.CouponSteps, Reminders: &reminder.Service{Store: w.Reservations, Templates: w.Templates,
		Channels: delivery.ChannelSetOf(delivery.Email), Now: pgtest.Clock}}
	for n, want := range map[int]feedback.Status{0: "", 1: feedback.Bounced, 2: feedback.Complained, 3: feedback.SoftBounced, 4: feedback.Delivered, 25: ""} {
		line, err := explainer.Explain(t.Context(), id(n), tpl.ID)
		w.Must(err)
		for _, s := range line.Steps {
			if s.Kind != reminder.StepOutcome {
				continue
			}
			if s.Reported != want || (s.Detail == "550 unknown user") != (want != "" && want != feedback.Delivered) {
				t.Errorf("user %d: %+v", n, s)
			}
		}
	}
	// The sums that outlive the batch follow the rule too.
	slot := w.Slot(tpl, 1).ID
	w.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '20 days', closes_at = now() - interval '19 days' where id = $1`, tpl.ID)
	w.Exec(`update batches set worthless_after = now() - interval '20 days'`)
	w.Clean()
	kept, err := pg.Tallies(t.Context(), w.DB, delivery.KindReminder, []int64{slot})
	if w.Must(err); w.Number(`select count(*) from batches`) != 0 || len(kept) != 1 || kept[0].Tally != want {
		t.Errorf("after the batch: %+v", kept)
	}
}
