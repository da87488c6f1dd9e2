package drops_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/draw"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// members are the doors of users; users who are not named come through none.
type members map[user.ID]int

func (m members) Door(_ context.Context, _ *template.Template, by user.ID) (int, error) {
	if m[by] == 0 {
		return 0, claim.ErrNotEligible
	}
	return m[by], nil
}

// drawOf publishes a draw with the rules that set adds, and doors.
func drawOf(t *testing.T, doors []template.Door, set func(*template.Spec)) *drawing {
	d := aDraw(t)
	d.drop = d.Draft(func(s *template.Spec) {
		s.OpeningMode, s.DrawSource, s.Stock = template.ByDraw, template.SourceCommit, 2
		set(s)
	})
	for i, door := range doors {
		d.Exec(`insert into doors (template_id, place, name, who, segment_id, lead_minutes, share, user_limit, texts, weight) values ($1, $2, $3, $4, nullif($5::bigint, 0), 0, 0, 0, '{}', $6)`,
			d.drop.ID, i+1, door.Name, door.Who, door.SegmentID, door.Weight)
		d.Exec(`update templates set doors = $2 where id = $1`, d.drop.ID, i+1)
	}
	d.drop = d.Do(d.drop, template.Publishing)
	d.Must(d.operator.Sweep(t.Context()))
	return d
}

// Users enter through the door of their group, with its weight, which stays when they change their group. The card names
// the doors, and the draw verifies.
func TestDrawThroughDoors(t *testing.T) {
	d := drawOf(t, []template.Door{{Name: "Members", Who: template.ToList, SegmentID: 3, Weight: 4}, {Name: "Friends", Who: template.ToList, SegmentID: 4, Weight: 1}}, func(*template.Spec) {})
	group := members{1: 1, 2: 1, 3: 2, 4: 2, 5: 2}
	d.service.Members = group
	d.enter(1, 2, 3, 4, 5)
	if _, _, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: 6}); !errors.Is(err, claim.ErrNotEligible) {
		t.Errorf("a user of no door: %v", err)
	}
	before, err := d.service.Mine(t.Context(), 1, d.drop.ID)
	d.Must(err)
	delete(group, 1)
	again, created, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: 1})
	if err != nil || created || again.Receipt != before.Receipt || again.Weight != 4 || again.Door != 1 {
		t.Errorf("a member who left the group has %+v, created %v, %v", again.Record, created, err)
	}
	d.closing()
	end := d.until(draw.Done, d.operator)
	card, err := end.Card()
	d.Must(err)
	if want := []draw.CardDoor{{Weight: 4, Name: "Members"}, {Weight: 1, Name: "Friends"}}; card.MaxWeight != 4 || !slices.Equal(card.Doors, want) {
		t.Errorf("the card is %+v", card)
	}
	for _, by := range []user.ID{1, 5} {
		if r := d.verify(by); !r.Sound() {
			t.Errorf("user %d: %+v", by, r)
		}
	}
	steps, err := d.entries.Timeline(t.Context(), 1, d.drop.ID)
	d.Must(err)
	if len(steps) == 0 || steps[0].Reason != "Members" || steps[0].Detail != "4" {
		t.Errorf("explained as %+v", steps)
	}
	m, err := d.service.Mine(t.Context(), 3, d.drop.ID)
	d.Must(err)
	in, err := d.service.Inclusion(t.Context(), d.drop.ID, m.Ticket)
	d.Must(err)
	shown := end.Published()
	shown.Inclusion = &in
	if r := draw.Verify(shown, nil, draw.Kept{Receipt: m.Receipt, Light: true}, d.operator.Judge); !r.Sound() || in.Weight != 1 {
		t.Errorf("by its path alone: %+v", r)
	}
	if _, err := d.service.Inclusion(t.Context(), d.drop.ID, draw.Ticket{1}); !errors.Is(err, draw.ErrNotListed) {
		t.Errorf("the path of a ticket that is not listed: %v", err)
	}
}

// A protected draw takes entries with a pass alone.
func TestDrawWithPasses(t *testing.T) {
	d := aDraw(t)
	d.service.Admit = func(_ *template.Template, by user.ID, pass string) error {
		if pass != "pass of "+by.String() {
			return errors.New("pass required")
		}
		return nil
	}
	if _, _, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: 1}); err == nil {
		t.Error("an entry without a pass is stored")
	}
	if _, created, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: 1, Pass: "pass of 1"}); err != nil || !created {
		t.Errorf("an entry with a pass: %v", err)
	}
}

// states counts the entries of the draw by their state.
func (d *drawing) states() map[string]int64 {
	d.Helper()
	n := map[string]int64{}
	for _, s := range []string{"entered", "won", "struck", "lapsed"} {
		n[s] = d.Number(`select count(*) from draw_entries where template_id = $1 and state = $2`, d.drop.ID, s)
	}
	return n
}

// expire ends the open offers of the draw.
func (d *drawing) expire() {
	d.Exec(`update draw_entries set offered_until = clock_timestamp() where template_id = $1 and state = 'won' and accepted_at is null`, d.drop.ID)
	d.Exec(`update draws set offers_until = clock_timestamp() where template_id = $1`, d.drop.ID)
}

// Of two winners one accepts, twice, and the other's offer lapses: the next ticket in the order moves up. Two workers take each step at
// once. In the end each coupon has an owner who accepted it, and a stranger computes the same.
func TestOffers(t *testing.T) {
	d := drawOf(t, nil, func(s *template.Spec) { s.AcceptHours = 1 })
	ids := pgtest.Users(1, 9)
	d.enter(ids...)
	d.service.Gate, d.service.Random = d.operator.Gate, d.operator.Random
	if _, err := d.service.Accept(t.Context(), 1, d.drop.ID); !errors.Is(err, draw.ErrNotWon) {
		t.Errorf("accepted before the draw: %v", err)
	}
	d.closing()
	second := *d.operator
	second.Gate = d.Claims()
	first := d.until(draw.Offered, d.operator, &second)
	if n := d.Number(`select count(*) from coupons where template_id = $1`, d.drop.ID); n != 0 || first.OffersUntil == nil || first.Won != 2 {
		t.Fatalf("%d coupons are given without acceptance; %+v", n, first)
	}
	d.Exec(`update templates set closes_at = closes_at + interval '2 days' where id = $1`, d.drop.ID)
	winners := d.winners()
	for range 2 {
		m, err := d.service.Accept(t.Context(), winners[0], d.drop.ID)
		if err != nil || m.CouponID == 0 || m.Offered() {
			t.Fatalf("the winner accepts: %+v, %v", m.Record, err)
		}
	}
	d.expire()
	if _, err := d.service.Accept(t.Context(), winners[1], d.drop.ID); !errors.Is(err, draw.ErrLapsed) {
		t.Errorf("accepted too late: %v", err)
	}
	for moved := false; !moved; { // an operator may be between the strike and the next draw
		for _, err := range pgtest.Together(2, func(i int) error { return []*draw.Operator{d.operator, &second}[i].Sweep(t.Context()) }) {
			d.Must(err)
		}
		now := d.winners()
		moved = len(now) == 2 && now[1] != winners[1]
	}
	d.until(draw.Offered, d.operator, &second)
	next := d.winners()
	if next[0] != winners[0] || d.states()["lapsed"] != 1 {
		t.Errorf("the winners %v became %v, %v", winners, next, d.states())
	}
	if r := d.verify(winners[1]); !r.Sound() {
		t.Errorf("%+v", r)
	}
	d.balanced()
	_, err := d.service.Accept(t.Context(), next[1], d.drop.ID)
	d.Must(err)
	d.expire() // no offer is open
	end := d.until(draw.Done, d.operator, &second)
	if end.Counts != (draw.Counts{Entered: 9, Won: 2, Lapsed: 1}) || end.Waiting() != 6 {
		t.Errorf("%+v", end.Counts)
	}
	if n := d.Number(`select count(*) from coupons c join draw_entries e on e.coupon_id = c.id and e.user_id = c.user_id where c.template_id = $1`, d.drop.ID); n != 2 {
		t.Errorf("%d winners have their coupons", n)
	}
	steps, err := d.entries.Timeline(t.Context(), winners[1], d.drop.ID)
	d.Must(err)
	var kinds []reminder.StepKind
	for _, s := range steps {
		kinds = append(kinds, s.Kind)
	}
	if want := []reminder.StepKind{reminder.StepEntered, reminder.StepDrawn, reminder.StepDrawOffered, reminder.StepDrawLapsed}; !slices.Equal(kinds, want) {
		t.Errorf("explained as %v", kinds)
	}
	a, err := d.entries.DrawAccount(t.Context(), d.drop.ID)
	if d.Must(err); a.Difference() != 0 || a.Coupons != 2 {
		t.Errorf("%+v", a)
	}
	d.Exec(`update draw_entries set coupon_id = null, reason = 'ended' where template_id = $1 and user_id = $2`, d.drop.ID, next[1])
	steps, err = d.entries.Timeline(t.Context(), next[1], d.drop.ID)
	d.Must(err)
	if last := steps[len(steps)-1]; last.Kind != reminder.StepDrawRefused || last.Reason != "ended" {
		t.Errorf("a winner without a coupon is explained as %+v", steps)
	}
}

// winners are the users who won, by rank.
func (d *drawing) winners() (list []user.ID) {
	d.Helper()
	rows, err := d.SQL.Query(d.Context(), `select user_id from draw_entries where template_id = $1 and state = 'won' order by rank`, d.drop.ID)
	d.Must(err)
	defer rows.Close()
	for rows.Next() {
		var id user.ID
		d.Must(rows.Scan(&id))
		list = append(list, id)
	}
	d.Must(rows.Err())
	return list
}

// An acceptance at the instant at which its offer ends is either in time, and then a coupon, or too late, and then the ticket lapsed.
func TestAcceptAtTheEnd(t *testing.T) {
	d := drawOf(t, nil, func(s *template.Spec) { s.AcceptHours, s.Stock = 1, 8 })
	d.service.Gate, d.service.Random = d.operator.Gate, d.operator.Random
	d.enter(pgtest.Users(1, 8)...)
	d.closing()
	d.until(draw.Offered, d.operator)
	d.Exec(`update draw_entries set offered_until = clock_timestamp() + interval '20 milliseconds' where template_id = $1`, d.drop.ID)
	d.Exec(`update draws set offers_until = clock_timestamp() where template_id = $1`, d.drop.ID)
	errs := pgtest.Together(16, func(i int) error {
		if i >= 8 {
			return d.operator.Sweep(d.Context())
		}
		_, err := d.service.Accept(d.Context(), user.ID(i+1), d.drop.ID)
		return err
	})
	for i, err := range errs {
		switch state := d.Number(`select count(*) from draw_entries where template_id = $1 and user_id = $2 and coupon_id is not null`, d.drop.ID, i+1); {
		case i >= 8:
			d.Must(err)
		case (err == nil) != (state == 1) || err != nil && !errors.Is(err, draw.ErrLapsed):
			t.Errorf("user %d: %v with %d coupons", i+1, err, state)
		}
	}
	d.expire()
	d.until(draw.Done, d.operator)
	d.balanced()
	if n, won := d.Number(`select count(*) from coupons where template_id = $1`, d.drop.ID), d.states()["won"]; n != won {
		t.Errorf("%d winners and %d coupons", won, n)
	}
}

// A worker gives the coupon of a winner who accepted in a process that died before the coupon was issued.
func TestAcceptedBeforeDeath(t *testing.T) {
	d := drawOf(t, nil, func(s *template.Spec) { s.AcceptHours, s.Stock = 1, 1 })
	d.enter(1, 2, 3)
	d.closing()
	d.until(draw.Offered, d.operator)
	winner := d.winners()[0]
	_, err := d.entries.Accept(t.Context(), d.drop.ID, winner) // the acceptance alone
	d.Must(err)
	d.until(draw.Done, d.operator)
	if n := d.Number(`select count(*) from coupons where template_id = $1 and user_id = $2`, d.drop.ID, winner); n != 1 {
		t.Errorf("the winner has %d coupons", n)
	}
}

// A winner who is struck while the coupon is being issued loses it, and the next ticket gets one.
func TestStruckWhileIssued(t *testing.T) {
	d := drawOf(t, nil, func(s *template.Spec) { s.Stock = 1 })
	d.enter(1, 2, 3)
	d.closing()
	striking := &striking{Gate: d.operator.Gate, drawing: d}
	operator := *d.operator
	operator.Gate = striking
	operator.Revoke = func(ctx context.Context, couponID int64, _ string) error {
		d.Exec(`update coupons set state = 'revoked', returned = true where id = $1 and state <> 'revoked'`, couponID)
		d.Exec(`update templates set issued = issued - 1, returned = returned + 1 where id = $1 and returned = 0`, d.drop.ID)
		return nil
	}
	d.until(draw.Done, &operator)
	if n := d.Number(`select count(*) from draw_entries e join coupons c on c.id = e.coupon_id and not c.returned where e.template_id = $1 and e.state = 'won'`, d.drop.ID); n != 1 {
		t.Errorf("%d winners have a coupon", n)
	}
	if n := d.Number(`select count(*) from coupons where template_id = $1 and user_id = $2 and not returned`, d.drop.ID, int64(striking.user)); n != 0 {
		t.Error("the struck user kept the coupon")
	}
}

// striking strikes the first winner after the coupon was issued and before the answer arrives.
type striking struct {
	claim.Gate
	*drawing
	once sync.Once
	user user.ID
}

func (s *striking) Claim(ctx context.Context, r claim.Request) (claim.Claim, error) {
	c, err := s.Gate.Claim(ctx, r)
	s.once.Do(func() {
		s.user = r.UserID
		s.Must(s.entries.Strike(ctx, r.TemplateID, r.UserID, "Employee", staff.Entry{Actor: pgtest.Actor, Action: "draw.strike", ObjectKind: "template", ObjectID: "1", ShopNumber: s.drop.ShopNumber}))
	})
	return c, err
}

// Winners and the other entrants are told once each, over the channels that they chose, however often the draw's last step is repeated.
func TestDrawTells(t *testing.T) {
	d := aDraw(t)
	d.service.Channels = delivery.ChannelSetOf(delivery.App) | delivery.ChannelSetOf(delivery.Email)
	for id := user.ID(1); id <= 30; id++ {
		w := draw.Wish{TemplateID: d.drop.ID, UserID: id}
		if id%2 == 0 {
			w.Channels = d.service.Channels.Set()
		}
		_, _, err := d.service.Enter(t.Context(), w)
		d.Must(err)
	}
	if _, _, err := d.service.Enter(t.Context(), draw.Wish{TemplateID: d.drop.ID, UserID: 40, Channels: delivery.ChannelSetOf(delivery.SMS)}); !errors.Is(err, delivery.ErrChannelUnavailable) {
		t.Errorf("a channel that is not there: %v", err)
	}
	d.closing()
	second := *d.operator
	d.until(draw.Done, d.operator, &second)
	announcer := &reminder.Announcer{Store: dropsdb.NewAnnouncements(d.DB), Queue: &pgtest.MemoryQueue{}, Now: pgtest.Clock, LeaseFor: time.Minute}
	for _, kind := range []delivery.Kind{delivery.KindWon, delivery.KindLost} {
		id := d.Number(`select id from announcements where template_id = $1 and kind = $2`, d.drop.ID, kind)
		for range 2 {
			d.Must(announcer.Cut(t.Context(), id))
		}
		state := map[delivery.Kind]string{delivery.KindWon: "won", delivery.KindLost: "entered"}[kind]
		for c, only := range map[delivery.Channel]string{delivery.App: "true", delivery.Email: "user_id % 2 = 0"} {
			told := d.Number(`select coalesce(sum(due_count), 0) from batches where kind = $1 and owner_id = $2 and channel = $3`, kind, id, int(c))
			if want := d.Number(`select count(*) from draw_entries where template_id = $1 and state = $2 and `+only, d.drop.ID, state); told != want {
				t.Errorf("%s by %s: %d are told, want %d", kind, c, told, want)
			}
		}
	}
	d.Exec(`update draws set state = 'drawn' where template_id = $1`, d.drop.ID)
	d.until(draw.Done, d.operator)
	if n := d.Number(`select count(*) from announcements where template_id = $1`, d.drop.ID); n != 2 {
		t.Errorf("%d announcements", n)
	}
}
