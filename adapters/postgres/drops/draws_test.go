package drops_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/draw"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// numbered is a beacon whose signature of a round is its number. It judges them too.
type numbered struct{ asked atomic.Int64 }

func (b *numbered) Round(_ context.Context, _ draw.Source, round int64) (string, error) {
	b.asked.Add(1)
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(round))), nil
}

func (b *numbered) Verify(_ string, round int64, signature []byte) error {
	if len(signature) != 8 || int64(binary.BigEndian.Uint64(signature)) != round {
		return errors.New("it is the signature of another round")
	}
	return nil
}

// drawing is a draw in a database, with its entrants and one worker.
type drawing struct {
	*fixture
	entries  *dropsdb.Entries
	service  *draw.Service
	operator *draw.Operator
	drop     template.Template
}

// aDraw publishes a drop whose entries close in an hour, with its card.
func aDraw(t *testing.T) *drawing {
	w := newFixture(t)
	keys, err := draw.NewKeys("a secret of at least thirty-two bytes")
	w.Must(err)
	d := &drawing{fixture: w, entries: dropsdb.NewEntries(w.DB, pg.Grouping{})}
	t.Cleanup(d.entries.Close)
	beacon := &numbered{}
	d.service = &draw.Service{Store: d.entries, Templates: w.Templates, Keys: keys}
	d.operator = &draw.Operator{Store: d.entries.Draws, Keys: keys, Beacon: beacon, Judge: beacon, Gate: w.Claims(), Random: rand.Uint64}
	d.drop = w.Do(w.Draft(func(s *template.Spec) {
		s.OpeningMode, s.DrawSource, s.Stock = template.ByDraw, template.SourceCommit, 10
	}), template.Publishing)
	w.Must(d.operator.Sweep(t.Context()))
	return d
}

func (d *drawing) enter(ids ...user.ID) {
	d.Helper()
	for _, err := range pgtest.Together(len(ids), func(i int) error {
		_, created, err := d.service.Enter(d.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: ids[i]})
		if err == nil && !created {
			err = errors.New("entered before")
		}
		return err
	}) {
		d.Must(err)
	}
}

// closing moves the opening to a few seconds from now, and with it the close of entries.
func (d *drawing) closing() {
	d.Helper()
	d.drop = d.Move(d.drop, pgtest.Clock().Add(4*time.Second).Truncate(time.Second))
}

// until sweeps with the operators until the draw is in the state.
func (d *drawing) until(state draw.State, operators ...*draw.Operator) draw.Draw {
	d.Helper()
	for {
		for _, err := range pgtest.Together(len(operators), func(i int) error { return operators[i].Sweep(d.Context()) }) {
			d.Must(err)
		}
		now, err := d.entries.Draw(d.Context(), d.drop.ID)
		d.Must(err)
		if now.State == state {
			return now
		}
	}
}

// verify recomputes the draw as a stranger would, with the receipt of a user.
func (d *drawing) verify(by user.ID) draw.Report {
	d.Helper()
	now, err := d.service.Draw(d.Context(), d.drop.ID)
	d.Must(err)
	mine, err := d.service.Mine(d.Context(), by, d.drop.ID)
	d.Must(err)
	var chunks [][]byte
	for {
		chunk, err := d.service.List(d.Context(), d.drop.ID, len(chunks))
		d.Must(err)
		if len(chunk) == 0 {
			break
		}
		chunks = append(chunks, chunk)
	}
	rows, err := draw.Rows(chunks...)
	d.Must(err)
	return draw.Verify(now.Published(), rows, draw.Kept{Receipt: mine.Receipt}, d.operator.Judge)
}

func (d *drawing) balanced() {
	d.Helper()
	now, err := d.entries.Draw(d.Context(), d.drop.ID)
	d.Must(err)
	won := d.Number(`select count(*) from draw_entries where template_id = $1 and state = 'won'`, d.drop.ID)
	struck := d.Number(`select count(*) from draw_entries where template_id = $1 and state = 'struck'`, d.drop.ID)
	waiting := d.Number(`select count(*) from draw_entries where template_id = $1 and state = 'entered'`, d.drop.ID)
	if now.Won != won || now.Struck != struck || now.Waiting() != waiting {
		d.Errorf("counted %+v, rows: won %d, struck %d, waiting %d", now.Counts, won, struck, waiting)
	}
}

// 40 users enter a draw of 10 coupons, twice each; two leave. Two workers take each step at the same time.
// Each winner has one coupon, and a stranger computes the same winners.
func TestDraw(t *testing.T) {
	d := aDraw(t)
	ids := pgtest.Users(1, 40)
	d.enter(ids...)
	first, created, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: 7})
	d.Must(err)
	again, err := d.service.Mine(t.Context(), 7, d.drop.ID)
	d.Must(err)
	if created || first.Receipt != again.Receipt || first.Ticket == (draw.Ticket{}) {
		t.Errorf("a repetition has another receipt: created %v\n%s\n%s", created, first.Receipt, again.Receipt)
	}
	for _, id := range []user.ID{39, 40} {
		d.Must(d.service.Leave(t.Context(), id, d.drop.ID))
	}
	if err := d.service.Leave(t.Context(), 40, d.drop.ID); !errors.Is(err, draw.ErrNotEntered) {
		t.Errorf("left twice: %v", err)
	}
	_, err = d.Claims().Claim(t.Context(), claim.Request{ID: claim.NewID(1, d.drop.ID), TemplateID: d.drop.ID, UserID: 7, Origin: claim.ByTap})
	if !errors.Is(err, claim.ErrIsDrawn) {
		t.Errorf("a tap is answered with %v", err)
	}
	d.closing()
	second := *d.operator
	second.Gate = d.Claims()
	end := d.until(draw.Done, d.operator, &second)
	if end.Counts != (draw.Counts{Entered: 40, Left: 2, Won: 10}) || end.Waiting() != 28 {
		t.Errorf("%+v", end.Counts)
	}
	d.balanced()
	if n := d.Number(`select count(distinct user_id) from coupons where template_id = $1 and origin = 'draw'`, d.drop.ID); n != 10 {
		t.Errorf("%d winners have coupons", n)
	}
	if n := d.Number(`select count(*) from coupons where template_id = $1`, d.drop.ID); n != 10 {
		t.Errorf("%d coupons", n)
	}
	for _, id := range ids[:38] {
		m, err := d.service.Mine(t.Context(), id, d.drop.ID)
		d.Must(err)
		won := m.Score.String() <= m.Result.Cutoff.String()
		if won != (m.Record.State == draw.Won) || won != (m.CouponID != 0) {
			t.Errorf("user %d: score %v, cutoff %v, %s, coupon %d", id, m.Score, m.Result.Cutoff, m.Record.State, m.CouponID)
		}
	}
	if r := d.verify(7); !r.Sound() {
		t.Errorf("%+v", r)
	}
	if _, _, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: 99}); !errors.Is(err, draw.ErrClosed) {
		t.Errorf("after the close: %v", err)
	}
	if err := d.service.Leave(t.Context(), 7, d.drop.ID); !errors.Is(err, draw.ErrClosed) {
		t.Errorf("leaving after the close: %v", err)
	}
}

// A moved opening and a raised stock make a new card; the receipts of earlier entries stay valid.
func TestDrawCards(t *testing.T) {
	d := aDraw(t)
	d.enter(1)
	d.closing()
	moved := d.drop
	d.Must(d.operator.Sweep(t.Context()))
	now, err := d.entries.Draw(t.Context(), d.drop.ID)
	d.Must(err)
	card, err := now.Card()
	d.Must(err)
	if len(now.Cards) != 2 || !card.ClosesAt.Equal(moved.OpensAt) || card.Version != 2 {
		t.Errorf("%d cards, the last %+v", len(now.Cards), card)
	}
	renamed := moved.Spec
	renamed.Name = "Another name"
	_, err = d.Service.Edit(t.Context(), pgtest.Actor, d.drop.ID, template.Edition{Version: moved.Version, Spec: renamed})
	d.Must(err)
	d.until(draw.Done, d.operator)
	if r := d.verify(1); !r.Sound() {
		t.Errorf("%+v", r)
	}
	if now, err = d.entries.Draw(t.Context(), d.drop.ID); err != nil || len(now.Cards) != 2 {
		t.Errorf("a new name made a card: %d, %v", len(now.Cards), err)
	}
}

// A draw without entries ends without winners. A drop that is cancelled is not drawn.
func TestDrawWithoutEntries(t *testing.T) {
	d := aDraw(t)
	d.closing()
	if end := d.until(draw.Done, d.operator); end.Won != 0 {
		t.Errorf("%+v", end.Counts)
	}
	other := d.Do(d.Draft(func(s *template.Spec) { s.OpeningMode, s.DrawSource = template.ByDraw, template.SourceCommit }), template.Publishing)
	d.Must(d.operator.Sweep(t.Context()))
	d.Do(other, template.Cancelling)
	d.drop = other
	d.until(draw.Cancelled, d.operator)
	if _, _, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: other.ID, UserID: 1}); !errors.Is(err, draw.ErrClosed) {
		t.Errorf("a cancelled draw: %v", err)
	}
}

// An entry whose group is being stored when the draw is closed is in the sealed list: the close waits.
func TestCloseWaitsForEntries(t *testing.T) {
	d := aDraw(t)
	d.closing()
	d.Must(d.operator.Sweep(t.Context())) // the card of the new close
	tx, err := d.SQL.Begin(t.Context())
	d.Must(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	for _, sql := range []string{`select from draws where template_id = $1 for share`,
		`insert into draw_entries (template_id, user_id, ticket, salt, entered_at) values ($1, 5, gen_random_uuid(), gen_random_uuid(), date_trunc('second', now()))`,
		`insert into draw_counts (template_id, shard, entered) values ($1, 0, 1)`} {
		_, err := tx.Exec(t.Context(), sql, d.drop.ID)
		d.Must(err)
	}
	closed := make(chan error, 1)
	go func() {
		for {
			err := d.entries.CloseDue(context.WithoutCancel(t.Context()))
			now, failed := d.entries.Draw(context.WithoutCancel(t.Context()), d.drop.ID)
			if err = errors.Join(err, failed); err != nil || now.State != draw.Open {
				closed <- err
				return
			}
		}
	}()
	d.Blocked(1)
	d.Must(tx.Commit(t.Context()))
	d.Must(<-closed)
	if end := d.until(draw.Done, d.operator); end.Won != 1 {
		t.Errorf("%+v", end.Counts)
	}
}

// leftMeanwhile is a store in which the user leaves between a request to enter and the look for the user's entry.
type leftMeanwhile struct {
	draw.Store
	looks int
}

func (s *leftMeanwhile) Enter(ctx context.Context, a draw.Attempt) (draw.Answer, error) {
	answer, err := s.Store.Enter(ctx, a)
	if s.looks == 0 { // as if another request of the user had been committed while this one waited for it
		answer.Record, answer.Window = nil, &draw.Window{State: draw.Open, ClosesAt: time.Now().Add(time.Hour), Now: time.Now()}
	}
	return answer, err
}

func (s *leftMeanwhile) Entry(ctx context.Context, id int64, by user.ID) (draw.Record, error) {
	s.looks++
	if err := s.Store.Leave(ctx, id, by); err != nil {
		return draw.Record{}, err
	}
	return s.Store.Entry(ctx, id, by)
}

// Requests of one user at the same time are answered as if they had come one after the other: of two requests to leave the
// second is told that there is no entry, not that entries are closed, and a request to enter that met one to leave stores an entry.
func TestEnteringAndLeavingAtOnce(t *testing.T) {
	d := aDraw(t)
	d.enter(5)
	_, commit := d.Hold(`delete from draw_entries where template_id = $1 and user_id = 5`, d.drop.ID)
	left := make(chan error, 1)
	go func() { left <- d.service.Leave(context.WithoutCancel(t.Context()), 5, d.drop.ID) }()
	d.Blocked(1)
	commit()
	if err := <-left; !errors.Is(err, draw.ErrNotEntered) {
		t.Errorf("the second request to leave: %v", err)
	}
	store := &leftMeanwhile{Store: d.entries}
	d.service.Store = store
	if m, created, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: 6}); err != nil || !created || m.Receipt == "" || store.looks != 1 {
		t.Errorf("the request to enter: %+v, created %v after %d looks, %v", m.Record, created, store.looks, err)
	}
	if n := d.Number(`select count(*) from draw_entries where template_id = $1 and user_id = 6`, d.drop.ID); n != 1 {
		t.Errorf("%d entries", n)
	}
}

// An opening that was moved ends the entries also while no worker has published the card of it: a receipt that is later than
// the last card would accuse an honest operator.
func TestMovedOpeningEndsEntriesBeforeItsCard(t *testing.T) {
	d := aDraw(t)
	d.enter(1)
	d.skew("1 hour")
	d.Exec(`update templates set opens_at = date_trunc('second', now()), version = version + 1 where id = $1`, d.drop.ID)
	if _, _, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: 2}); !errors.Is(err, draw.ErrClosed) {
		t.Errorf("an entry after the moved opening: %v", err)
	}
	if err := d.service.Leave(t.Context(), 1, d.drop.ID); !errors.Is(err, draw.ErrClosed) {
		t.Errorf("leaving after the moved opening: %v", err)
	}
	d.until(draw.Done, d.operator)
	if r := d.verify(1); !r.Sound() {
		t.Errorf("%+v", r)
	}
}

// A worker that dies at a step leaves the draw to the next one, which makes the same draw.
func TestDrawAfterFailures(t *testing.T) {
	d := aDraw(t)
	d.enter(pgtest.Users(1, 20)...)
	d.closing()
	broken := *d.operator
	gate := &failing{Gate: d.operator.Gate}
	gate.left.Store(4) // after four coupons
	broken.Gate = gate
	failed := 0
	for {
		if err := broken.Sweep(t.Context()); err != nil {
			failed++
			break
		}
	}
	drawn, err := d.entries.Draw(t.Context(), d.drop.ID)
	d.Must(err)
	end := d.until(draw.Done, d.operator)
	if drawn.Result != end.Result || failed != 1 {
		t.Errorf("the result changed")
	}
	if n := d.Number(`select count(*) from coupons where template_id = $1`, d.drop.ID); n != 10 {
		t.Errorf("%d coupons", n)
	}
	d.balanced()
}

// failing is a gate that fails after some claims, of which the last was stored without an answer.
type failing struct {
	claim.Gate
	left atomic.Int64
}

func (g *failing) Claim(ctx context.Context, r claim.Request) (claim.Claim, error) {
	n := g.left.Add(-1)
	if n < 0 {
		return claim.Claim{}, claim.ErrOverloaded
	}
	c, err := g.Gate.Claim(ctx, r)
	if n == 0 && err == nil {
		return claim.Claim{}, claim.ErrOverloaded
	}
	return c, err
}
