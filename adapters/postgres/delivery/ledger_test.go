package delivery_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// told is the expected state of a batch.
type told struct {
	delivery.BatchRow
	who map[user.ID]delivery.Outcome
}

// books stores batches of every kind and outcome.
func (w *fixture) books(n int) []told {
	w.Helper()
	random := rand.New(rand.NewPCG(7, 7))
	w.Exec(`insert into shops (number, name, timezone) values (10, 'Ten', 'Asia/Shanghai'), (11, 'Eleven', 'UTC') on conflict do nothing`)
	for i := range 4 {
		w.Drop(pgtest.Drop{ID: int64(i + 1), Shop: 10 + int64(i+1)%2, Name: fmt.Sprint("Drop ", i+1), OpensAt: time.Now()})
	}
	w.Fill("slots", "generate_series(1, 12) n", pgtest.Row{"id": pgtest.SQL("n"), "template_id": pgtest.SQL("(n - 1) / 3 + 1"), "slot": pgtest.SQL("(n - 1) % 3 + 1"),
		"due_at": pgtest.SQL("now() + n * interval '1 minute'"), "state": "sending"})
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	all := make([]told, n)
	for i := range all {
		b := told{who: map[user.ID]delivery.Outcome{}}
		b.Kind, b.OwnerID = delivery.KindReminder, int64(random.IntN(12)+1)
		b.TemplateID, b.Slot = (b.OwnerID-1)/3+1, int((b.OwnerID-1)%3+1)
		if i%7 == 0 {
			b.Kind, b.Slot = delivery.KindCorrection, 0
		}
		b.ShopNumber, b.Channel = 10+b.TemplateID%2, delivery.Channel(random.IntN(5))
		b.DueAt = start.Add(time.Duration(random.IntN(20)) * time.Minute)
		b.State = delivery.BatchStates()[random.IntN(3)]
		w.fill(&b, i, random)
		all[i] = b
	}
	slices.SortFunc(all, func(a, b told) int { return cmp.Or(b.DueAt.Compare(a.DueAt), cmp.Compare(b.ID, a.ID)) })
	return all
}

// fill gives the batch recipients of its own and stores it.
func (w *fixture) fill(b *told, i int, random *rand.Rand) {
	w.Helper()
	from := user.ID(i%10)*100 + user.ID(i/10) + 1 // ranges overlap between owners
	var due, sent []user.ID
	type exception struct {
		id      user.ID
		outcome delivery.Outcome
	}
	var exceptions []exception
	finals := []delivery.Outcome{delivery.Skipped, delivery.Expired, delivery.Dead, delivery.Discarded, delivery.Failed}
	for id := from; id < from+30; id += user.ID(random.IntN(5) + 1) {
		due = append(due, id)
		switch o := random.IntN(12); {
		case o < 6 || i%3 != 0:
			sent, b.who[id] = append(sent, id), delivery.Sent
			if o == 0 {
				exceptions, b.who[id] = append(exceptions, exception{id, delivery.Recovered}), delivery.Recovered
			}
		case o < 11 && (b.State != delivery.BatchDone || finals[o-6].Final()):
			b.who[id] = finals[o-6]
			exceptions = append(exceptions, exception{id, b.who[id]})
		case b.State == delivery.BatchDone:
			sent, b.who[id] = append(sent, id), delivery.Sent
		default:
			b.who[id] = delivery.InFlight
		}
	}
	b.From, b.To = due[0], due[len(due)-1]
	for id, o := range b.who { // half of the skipped users are the control group
		if o == delivery.Skipped && id%2 == 0 {
			b.Counts.HeldOut++
		}
	}
	for _, o := range b.who {
		b.Counts.Reserved++
		switch o {
		case delivery.Sent, delivery.Recovered:
			b.Counts.Sent++
		case delivery.Skipped:
			b.Counts.Skipped++
		case delivery.Expired:
			b.Counts.Expired++
		case delivery.Dead, delivery.Discarded:
			b.Counts.Dead++
		default:
			b.Counts.InFlight++
			if o == delivery.Failed {
				b.Waiting++
			}
		}
	}
	b.ID = w.ID("batches", pgtest.Row{
		"kind": b.Kind, "owner_id": b.OwnerID, "template_id": b.TemplateID, "channel": b.Channel, "from_user": b.From, "to_user": b.To,
		"state": b.State, "due_at": b.DueAt, "worthless_after": b.DueAt, "due": pgtest.Bitmap(due...), "sent": pgtest.Bitmap(sent...),
		"due_count": b.Counts.Reserved, "sent_count": b.Counts.Sent, "skipped_count": b.Counts.Skipped,
		"expired_count": b.Counts.Expired, "dead_count": b.Counts.Dead, "failed_count": b.Waiting,
	})
	rest := b.State == delivery.BatchDone && i%2 == 0 // the control group has no rows
	if rest {
		w.Exec(`update batches set rest_outcome = 'skipped', rest_reason = 'hold_out' where id = $1`, b.ID)
	}
	for _, e := range exceptions {
		reason := "provider_error"
		if e.outcome == delivery.Skipped && e.id%2 == 0 {
			if reason = delivery.ReasonHoldOut; rest {
				continue
			}
		}
		w.Exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, attempts) values ($1, $2, $3, $4, $5,
			case $5 when 'hold_out' then '' else 'HTTP 503' end, case $5 when 'hold_out' then 0 else 3 end)`,
			b.ID, e.id, b.Channel, e.outcome, reason)
	}
}

func (b told) fits(q delivery.BatchQuery) bool {
	o, mine := b.who[q.UserID]
	has := map[delivery.Outcome]int64{delivery.Sent: b.Counts.Sent, delivery.Skipped: b.Counts.Skipped, delivery.Expired: b.Counts.Expired,
		delivery.Dead: b.Counts.Dead, delivery.Failed: b.Waiting, delivery.InFlight: b.Counts.InFlight}
	byUser := pgtest.Listed(o, q.Outcome)
	return (q.Kind == "" || b.Kind == q.Kind) && (q.TemplateID == 0 || b.TemplateID == q.TemplateID) && (q.Slot == 0 || b.Slot == q.Slot) &&
		(q.Channel == nil || b.Channel == *q.Channel) && (q.State == "" || b.State == q.State) &&
		(q.Outcome == "" || q.UserID != 0 && byUser || q.UserID == 0 && has[q.Outcome] > 0) && (q.UserID == 0 || mine) &&
		(q.From == nil || !b.DueAt.Before(*q.From)) && (q.To == nil || b.DueAt.Before(*q.To)) &&
		(len(q.Shops) == 0 || slices.Contains(q.Shops, b.ShopNumber))
}

func TestBatchesByEveryFilter(t *testing.T) {
	w := newFixture(t)
	all := w.books(120)
	ledger := &delivery.Ledger{Store: deliverydb.NewLedger(w.DB)}
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 400 {
		q := delivery.BatchQuery{Limit: random.IntN(20) + 1}
		maybe := func(one int, set func()) {
			if random.IntN(one) == 0 {
				set()
			}
		}
		maybe(3, func() { q.Kind = delivery.Kinds()[random.IntN(2)] })
		maybe(3, func() { q.TemplateID = int64(random.IntN(5) + 1) })
		maybe(4, func() { q.Slot = random.IntN(3) + 1 })
		maybe(4, func() { q.Channel = new(delivery.Channel(random.IntN(5))) })
		maybe(4, func() { q.State = delivery.BatchStates()[random.IntN(3)] })
		maybe(3, func() { q.Outcome = delivery.ListedOutcomes()[random.IntN(6)] })
		maybe(2, func() { q.UserID = user.ID(random.IntN(1000) + 1) })
		maybe(4, func() { q.From = new(all[random.IntN(len(all))].DueAt) })
		maybe(4, func() { q.To = new(all[random.IntN(len(all))].DueAt) })
		by := staff.Actor{Role: staff.Viewer}
		maybe(4, func() { by.Shops = []int64{10}; q.Shops = by.Shops })
		var want, got []string
		for _, b := range all {
			if b.fits(q) {
				want = append(want, fmt.Sprint(b.ID, b.Kind, b.TemplateID, b.Slot, b.Channel, b.State, b.Counts, b.Waiting, b.who[q.UserID]))
			}
		}
		for more := true; more; {
			page, err := ledger.Batches(t.Context(), by, q)
			w.Must(err)
			for _, b := range page.List {
				got = append(got, fmt.Sprint(b.ID, b.Kind, b.TemplateID, b.Slot, b.Channel, b.State, b.Counts, b.Waiting, b.Outcome))
			}
			more, q.After = page.More, page.Next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v:\ngot  %v\nwant %v", q, got, want)
		}
		found += len(got)
	}
	if found < 1000 {
		t.Errorf("only %d rows were found; the filters select too little to test anything", found)
	}
}

func TestRecipientsOfABatch(t *testing.T) {
	w := newFixture(t)
	ledger := &delivery.Ledger{Store: deliverydb.NewLedger(w.DB)}
	for _, b := range w.books(60) {
		for _, o := range append([]delivery.Outcome{""}, delivery.ListedOutcomes()...) {
			want, got, after := 0, 0, user.ID(0)
			for _, had := range b.who {
				if o == "" || (told{who: map[user.ID]delivery.Outcome{1: had}}).fits(delivery.BatchQuery{UserID: 1, Outcome: o}) {
					want++
				}
			}
			for {
				page, err := ledger.Recipients(t.Context(), staff.Actor{Role: staff.Viewer}, delivery.RecipientQuery{BatchID: b.ID, Outcome: o, After: after, Limit: 4})
				w.Must(err)
				for _, r := range page {
					if r.UserID <= after || r.Outcome != b.who[r.UserID] || (r.Outcome == delivery.InFlight) != r.At.IsZero() {
						t.Fatalf("batch %d: %+v, was %q", b.ID, r, b.who[r.UserID])
					}
					if excepted := r.Outcome != delivery.Sent && r.Outcome != delivery.InFlight && r.Reason != delivery.ReasonHoldOut; excepted != (r.Attempts == 3 && r.Detail == "HTTP 503") {
						t.Fatalf("%+v", r)
					}
					after, got = r.UserID, got+1
				}
				if len(page) < 4 {
					break
				}
			}
			if got != want {
				t.Fatalf("batch %d, %q: %d recipients, want %d", b.ID, o, got, want)
			}
		}
		one, err := ledger.Recipients(t.Context(), staff.Actor{Role: staff.Viewer}, delivery.RecipientQuery{BatchID: b.ID, Only: b.To})
		w.Must(err)
		none, err := ledger.Recipients(t.Context(), staff.Actor{Role: staff.Viewer}, delivery.RecipientQuery{BatchID: b.ID, Only: b.To + 1})
		w.Must(err)
		if len(one) != 1 || one[0].UserID != b.To || len(none) != 0 {
			t.Fatalf("one %v none %v", one, none)
		}
	}
}

func TestBatchesOfOtherShops(t *testing.T) {
	w := newFixture(t)
	all := w.books(20)
	w.Exec(`update batches set template_id = 0 where id = $1`, all[0].ID)
	ledger := &delivery.Ledger{Store: deliverydb.NewLedger(w.DB)}
	limited := staff.Actor{Role: staff.Viewer, Shops: []int64{10}}
	for i, b := range all {
		_, err := ledger.Batch(t.Context(), limited, b.ID)
		_, err2 := ledger.Recipients(t.Context(), limited, delivery.RecipientQuery{BatchID: b.ID})
		allowed := b.ShopNumber == 10 && i > 0
		if (err == nil) != allowed || (err2 == nil) != allowed || err != nil && !errors.Is(err, staff.ErrForbidden) && !errors.Is(err, delivery.ErrBatchNotFound) {
			t.Errorf("batch of shop %d: %v %v", b.ShopNumber, err, err2)
		}
	}
	if _, err := ledger.Batch(t.Context(), staff.System(), 999); !errors.Is(err, delivery.ErrBatchNotFound) {
		t.Error(err)
	}
}

// TestBatchOfTheGreatestUser: the greatest possible user id has a batch too.
func TestBatchOfTheGreatestUser(t *testing.T) {
	w := newFixture(t)
	const last = user.ID(1<<63 - 1)
	w.Insert("batches", pgtest.Row{"kind": "campaign", "from_user": 5, "to_user": last, "due": pgtest.Bitmap(5, last), "due_count": 2})
	ledger := &delivery.Ledger{Store: deliverydb.NewLedger(w.DB)}
	for _, id := range []user.ID{5, last} {
		page, err := ledger.Batches(t.Context(), staff.System(), delivery.BatchQuery{UserID: id, Limit: 5})
		w.Must(err)
		list, err := ledger.Recipients(t.Context(), staff.System(), delivery.RecipientQuery{BatchID: 1, After: id})
		w.Must(err)
		if len(page.List) != 1 || page.List[0].Outcome != delivery.InFlight || (id == last) != (len(list) == 0) {
			t.Errorf("user %d: %+v %v", id, page, list)
		}
	}
}
