package drops_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"

	"github.com/jackc/pgx/v5"
)

// doored is a drop with doors: gold users, a list of guests, and all users.
type doored struct {
	*pgtest.Fixture
	drop   template.Template
	guests segment.Segment
}

// newDoored publishes a drop that opens in four hours. leads are those of its doors in minutes.
func newDoored(t *testing.T, leads ...int) *doored { return dooredOn(t, pgtest.New(t), leads...) }

func dooredOn(t *testing.T, fixture *pgtest.Fixture, leads ...int) *doored {
	w := &doored{Fixture: fixture}
	rule := segment.Rule{Condition: segment.Condition{Field: segment.Attribute, Name: "tier", Op: segment.Is, Values: []string{"gold"}}}
	gold, err := w.Segments.CreateSegment(t.Context(), segment.Segment{Name: "Gold", Kind: segment.ByRules, Rule: rule}, "", pgtest.AboutSegment("segment.create"))
	w.Must(err)
	w.guests, err = w.Segments.CreateSegment(t.Context(), segment.Segment{Name: "Guests", Kind: segment.ByList, Rule: segment.Everybody()}, "", pgtest.AboutSegment("segment.create"))
	w.Must(err)
	w.drop = w.Draft(func(s *template.Spec) {
		s.OpensAt, s.ClosesAt = s.OpensAt.Add(2*time.Hour), s.ClosesAt.Add(2*time.Hour)
	})
	w.drop.Doors = []template.Door{{Name: "Gold", Who: template.ToSegment, SegmentID: gold.ID}, {Name: "Guests", Who: template.ToList, SegmentID: w.guests.ID}, {Name: "All", Who: template.ToAll}}
	w.lead(leads...)
	w.drop = w.Do(w.drop, template.Publishing)
	return w
}

// lead moves the doors.
func (w *doored) lead(leads ...int) {
	w.Helper()
	for i, l := range leads {
		w.drop.Doors[i].LeadMinutes = l
	}
	var err error
	w.drop, err = w.Templates.SaveDoors(w.Context(), w.drop, nil, staff.Entry{Actor: pgtest.Actor, Action: "template.doors", ObjectKind: "template"})
	w.Must(err)
}

// tier stores the user's tier; a user of whom nothing was stored is imported.
func (w *doored) tier(id user.ID, value string) {
	w.Upsert(user.Change{ID: id, Attributes: &map[string]any{"tier": value}})
}

func (w *doored) change(id user.ID, door int, minutes ...int) reminder.Change {
	return reminder.Change{TemplateID: w.drop.ID, UserID: id, Door: door, Bits: reminder.BitmapOf(pgtest.Reminders(delivery.App, minutes...)...)}
}

func (w *doored) waiting() []reminder.Slot {
	w.Helper()
	waiting, _, err := w.Slots.WaitingSlots(w.Context(), w.drop.ID)
	w.Must(err)
	return waiting
}

// fire fires the slot as if its instant had come, delivers its batches, and returns the users whom it reached.
func (w *doored) fire(s reminder.Slot) (due []user.ID) {
	w.Helper()
	w.Exec(`update slots set due_at = due_at - interval '1 day' where id = $1`, s.ID)
	w.Must(w.Fixture.Timers(&pgtest.MemoryQueue{}).Fire(w.Context(), s.ID))
	w.Exec(`update slots set due_at = due_at + interval '1 day' where id = $1`, s.ID)
	rows, err := w.SQL.Query(w.Context(), `update batches set state = 'done', sent = due, sent_count = due_count, finished_at = clock_timestamp()
		where kind = 'reminder' and owner_id = $1 returning due`, s.ID)
	w.Must(err)
	stored, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	w.Must(err)
	for _, raw := range stored {
		set, err := pg.DecodeSet(raw)
		w.Must(err)
		for _, id := range set.ToArray() {
			due = append(due, user.ID(id))
		}
	}
	_, err = w.Slots.FinishSlots(w.Context())
	w.Must(err)
	slices.Sort(due)
	return due
}

// TestRemindersOfDoorsAgreeWithAModel reserves, cancels, moves doors, imports and changes users and fires slots at
// random. In the model a reminder is open until the slot of the user's own door has fired, and a slot that fires reaches
// the users with its bit whose door it is for, except those whom the slot of the same opening has reached before.
func TestRemindersOfDoorsAgreeWithAModel(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { modelDoors(t, rand.New(rand.NewPCG(seed, 118))) })
	}
}

type modelSlot struct {
	opens time.Time
	slot  template.Slot
}

func modelDoors(t *testing.T, random *rand.Rand) {
	leads := func() []int {
		l := []int{5 * random.IntN(4), 5 * random.IntN(4)}
		return []int{max(l[0], l[1]), min(l[0], l[1]), 0}
	}
	w := newDoored(t, leads()...)
	const users = 40
	gold, guests := map[user.ID]bool{}, map[user.ID]bool{}
	var list []user.ID
	for id := user.ID(1); id <= users; id += 1 + user.ID(random.IntN(6)) {
		list, guests[id] = append(list, id), true
	}
	_, err := w.Segments.AddMembers(t.Context(), w.guests.ID, list)
	w.Must(err)
	place := func(id user.ID) int {
		switch {
		case gold[id]:
			return 1
		case guests[id]:
			return 2
		}
		return 3
	}
	booked := map[user.ID]reminder.Bitmap{}
	reached := map[modelSlot]map[user.ID]bool{}
	slots := w.waiting()
	fire := func(s reminder.Slot) {
		t.Helper()
		at := modelSlot{s.OpensAt, s.Slot}
		var want []user.ID
		for id, bits := range booked {
			if w.drop.OpensFor(place(id)).Equal(s.OpensAt) && !bits.Intersect(reminder.SlotMask(s.Slot)).IsEmpty() && !reached[at][id] {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		if got := w.fire(s); !slices.Equal(got, want) {
			t.Fatalf("slot %d of %s for doors %b, round %d: reached %v, want %v", s.Slot, s.OpensAt, s.Doors, s.Round, got, want)
		}
		if reached[at] == nil {
			reached[at] = map[user.ID]bool{}
		}
		for _, id := range want {
			reached[at][id] = true
		}
	}
	for step := range 220 {
		id := user.ID(1 + random.IntN(users))
		switch n := random.IntN(12); {
		case n < 6:
			k := template.Slot(1 + random.IntN(template.Slots))
			c := w.change(id, place(id), k.Minutes())
			asked, opens := reminder.SlotMask(k), w.drop.OpensFor(place(id))
			open := slices.ContainsFunc(slots, func(s reminder.Slot) bool { return s.Slot == k && s.OpensAt.Equal(opens) })
			had := !booked[id].Intersect(asked).IsEmpty()
			if n < 5 {
				d, err := w.Reservations.Reserve(t.Context(), c)
				w.Must(err)
				if d.Applied != (open && !had) {
					t.Fatalf("step %d: user %d of door %d reserves slot %d: %+v, want open %v, had %v", step, id, place(id), k, d, open, had)
				}
				if d.Applied {
					booked[id] = booked[id].Union(c.Bits)
				}
				continue
			}
			d, err := w.Reservations.Cancel(t.Context(), c)
			w.Must(err)
			if d.Applied != (open && had) {
				t.Fatalf("step %d: user %d of door %d cancels slot %d: %+v, want open %v, had %v", step, id, place(id), k, d, open, had)
			}
			if d.Applied {
				booked[id] = booked[id].Without(c.Bits)
			}
		case n < 9:
			gold[id] = !gold[id]
			w.tier(id, map[bool]string{true: "gold", false: "silver"}[gold[id]])
		case n < 10:
			w.lead(leads()...)
			slots = w.waiting()
		default:
			if len(slots) > 0 {
				fire(slots[random.IntN(len(slots))])
				slots = w.waiting()
			}
		}
	}
	for _, s := range w.waiting() {
		fire(s)
	}
	w.Balanced(w.drop)
	for at := range maps.Keys(reached) {
		if n := w.Number(`select count(*) from (select round from slots where template_id = $1 and opens_at = $2 and slot = $3 group by 1 having count(*) > 1) twice`, w.drop.ID, at.opens, at.slot); n > 0 {
			t.Errorf("%d rounds of slot %d are there twice", n, at.slot)
		}
	}
}

// TestNoGapAtADoor: users reserve while the slot of their door is fired by two workers, and while the door moves. Each
// reservation that was accepted is delivered once, in a slot of the user's own door.
func TestNoGapAtADoor(t *testing.T) {
	w := newDoored(t, 30, 10, 0)
	const users = 400
	for id := range user.ID(users) {
		w.tier(1+id, "gold")
	}
	var mu sync.Mutex
	var accepted []user.ID
	var all sync.WaitGroup
	half := make(chan struct{})
	for id := range user.ID(users) {
		wish := w.change(1+id, 1, 60) // the drop changes meanwhile
		all.Go(func() {
			if id >= users/2 {
				<-half
			}
			d, err := w.Reservations.Reserve(t.Context(), wish)
			w.Must(err)
			if d.Applied {
				mu.Lock()
				accepted = append(accepted, 1+id)
				mu.Unlock()
			}
		})
	}
	first := w.waiting()[0]
	if first.Slot != 12 || !first.Doors.Has(1) || first.Doors.Has(2) {
		t.Fatalf("the first slot is %+v", first)
	}
	w.Exec(`update slots set due_at = due_at - interval '1 day' where id = $1`, first.ID)
	for range 2 {
		all.Go(func() { w.Must(w.Fixture.Timers(&pgtest.MemoryQueue{}).Fire(t.Context(), first.ID)) })
	}
	close(half)
	w.lead(20, 10, 0)
	all.Wait()
	w.Exec(`update slots set due_at = due_at + interval '1 day' where id = $1`, first.ID)
	reached := w.fire(first) // it has fired, or it moved
	for _, s := range w.waiting() {
		if s.Slot == 12 && s.Doors.Has(1) {
			reached = append(reached, w.fire(s)...)
		}
	}
	slices.Sort(accepted)
	slices.Sort(reached)
	missed := slices.DeleteFunc(slices.Clone(accepted), func(id user.ID) bool { return slices.Contains(reached, id) })
	if len(missed) > 0 {
		t.Errorf("%d of %d were accepted and missed", len(missed), len(accepted))
	}
	w.Balanced(w.drop)
}

// TestDoorsHaveFewSlots: a slot row for each instant at which doors open, none for a door of its own while all open
// together, and no more timers than that; what moves is the slots of the door that moves.
func TestDoorsHaveFewSlots(t *testing.T) {
	w := newDoored(t, 0, 0, 0)
	count := func(when string, want int) {
		t.Helper()
		if got := len(w.waiting()); got != want {
			t.Errorf("%s: %d slots wait, want %d", when, got, want)
		}
	}
	count("all together", 12)
	if s := w.waiting()[0]; s.Doors != template.AllDoors {
		t.Errorf("for doors %b", s.Doors)
	}
	w.lead(30, 30, 0)
	count("two together", 24)
	w.lead(60, 30, 0)
	count("each alone", 36)
	before := w.Number(`select id from slots where template_id = $1 and slot = 1 and doors = 4`, w.drop.ID)
	w.lead(60, 20, 0)
	count("the second moved", 36)
	if after := w.Number(`select id from slots where template_id = $1 and slot = 1 and doors = 4 and state = 'waiting'`, w.drop.ID); after != before {
		t.Error("a slot of a door that did not move was replaced")
	}
	w.lead(0, 0, 0)
	count("all together again", 12)
	w.Move(w.drop, w.drop.OpensAt.Add(time.Hour))
	count("after the drop moved", 12)
	if n := w.Number(`select count(*) from slots where template_id = $1 and state = 'waiting' and opens_at <> (select opens_at from templates where id = $1)`, w.drop.ID); n != 0 {
		t.Errorf("%d slots wait for a former opening", n)
	}
}

// TestReservingByDoor: the service knows the user's door. A reservation shows the opening of the own door, users of no
// door are refused but can cancel, and a drop that is open for the own door takes no reservations.
func TestReservingByDoor(t *testing.T) {
	w := newDoored(t, 30, 10, 0)
	w.tier(1, "gold")
	doors := fixedDoors{1: 1, 2: 3}
	s := &reminder.Service{Store: w.Reservations, Templates: w.Templates, Doors: doors, Channels: delivery.ChannelSetOf(delivery.App), Now: pgtest.Clock}
	reserve := func(id user.ID) (reminder.View, error) {
		v, _, err := s.Reserve(t.Context(), reminder.Request{TemplateID: w.drop.ID, UserID: id, ShopNumber: 10, Reminders: pgtest.Reminders(delivery.App, 5)})
		return v, err
	}
	for id, lead := range map[user.ID]time.Duration{1: 30 * time.Minute, 2: 0} {
		v, err := reserve(id)
		w.Must(err)
		if want := w.drop.OpensAt.Add(-lead); !v.OpensAt.Equal(want) || !v.Items[0].DueAt.Equal(want.Add(-5*time.Minute)) {
			t.Errorf("user %d: opens %s, due %s", id, v.OpensAt, v.Items[0].DueAt)
		}
	}
	if _, err := reserve(3); fault.CodeOf(err) != "not_eligible" {
		t.Errorf("without a door: %v", err)
	}
	delete(doors, 2)
	_, err := s.Cancel(t.Context(), 2, w.drop.ID, nil)
	w.Must(err)
	s.Now = func() time.Time { return w.drop.OpensAt.Add(-20 * time.Minute) }
	if _, err := reserve(1); fault.CodeOf(err) != template.ErrOpened.Code {
		t.Errorf("after the own door has opened: %v", err)
	}
}

// fixedDoors are the doors of users; the others have none.
type fixedDoors map[user.ID]int

// Door implements [reminder.Doors].
func (f fixedDoors) Door(_ context.Context, _ *template.Template, by user.ID) (int, error) {
	if f[by] == 0 {
		return 0, claim.ErrNotEligible
	}
	return f[by], nil
}

// TestCorrectionsByDoor: after a door has moved, the users who were reminded of its former opening are told its new one, and
// no other user is told anything.
func TestCorrectionsByDoor(t *testing.T) {
	n := pgtest.NewNotifier(t)
	w := dooredOn(t, n.Fixture, 30, 10, 0)
	for id := range user.ID(6) {
		place := 3
		if id < 3 {
			w.tier(1+id, "gold")
			place = 1
		}
		if d, err := w.Reservations.Reserve(t.Context(), w.change(1+id, place, 60)); err != nil || !d.Applied {
			t.Fatalf("%+v %v", d, err)
		}
	}
	for _, s := range w.waiting() {
		if s.Slot == 12 {
			w.fire(s)
		}
	}
	if misled, err := n.Store.Misled(t.Context(), w.drop.ID, w.drop.OpensAt); err != nil || misled {
		t.Fatalf("before the move: %t %v", misled, err)
	}
	w.lead(20, 10, 0)
	order := reminder.Order{Kind: delivery.KindCorrection}
	if reach, err := n.Staff.Preview(t.Context(), pgtest.Actor, w.drop.ID, order); err != nil || reach.Users != 3 || reach.Messages() != 3 {
		t.Errorf("preview %+v %v", reach, err)
	}
	opening := w.drop.OpensFor(1)
	n.App.Answer = func(m delivery.Message, _ int) delivery.Result {
		if !m.Subject.OpensAt.Equal(opening) {
			t.Errorf("user %d is told %s", m.To.ID, m.Subject.OpensAt)
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	for range 2 { // once for each opening, however often it is ordered
		_, err := n.Staff.Send(t.Context(), pgtest.Actor, w.drop.ID, order)
		w.Must(err)
	}
	list, err := n.Staff.List(t.Context(), pgtest.Actor, w.drop.ID)
	w.Must(err)
	if len(list) != 3 {
		t.Errorf("%d announcements for three openings", len(list))
	}
	for _, a := range list {
		w.Must(n.Worker.Cut(t.Context(), a.ID))
	}
	n.Drain()
	if got := pgtest.Reached(t, n.App, delivery.KindCorrection); !slices.Equal(got, pgtest.Users(1, 3)) {
		t.Errorf("reached %v", got)
	}
}
