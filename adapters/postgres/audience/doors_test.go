package audience_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func tier(value string) segment.Rule {
	return segment.Rule{Condition: segment.Condition{Field: segment.Attribute, Name: "tier", Op: segment.Is, Values: []string{value}}}
}

// doored gives the drop three doors: gold members 30 minutes before it, a list 10 minutes before it, and all users.
func (w *fixture) doored(t template.Template, gold, list segment.Segment) template.Template {
	w.Helper()
	t.Doors = []template.Door{{Name: "Gold", Who: template.ToSegment, SegmentID: gold.ID, LeadMinutes: 30, Share: 2},
		{Name: "Guests", Who: template.ToList, SegmentID: list.ID, LeadMinutes: 10}, {Name: "Everybody", Who: template.ToAll}}
	t, err := w.Templates.SaveDoors(w.Context(), t, nil, staff.Entry{Actor: staff.System(), Action: "template.doors", ObjectKind: "template"})
	w.Must(err)
	return t
}

// TestMembersOfDoors: every user comes through the same door before the freeze, by the rules, and after it, by the
// bitmaps, also while two processes freeze at once. Users who were added later are judged by the rules; changes of
// others do not count any more.
func TestMembersOfDoors(t *testing.T) {
	w := newFixture(t)
	doors := audiencedb.NewDoors(w.DB)
	segments := audiencedb.NewSegments(w.DB)
	gold := w.segment("Gold", tier("gold"))
	list, err := segments.CreateSegment(t.Context(), segment.Segment{Name: "Guests", Kind: segment.ByList, Rule: segment.Everybody()}, "", pgtest.AboutSegment("segment.create"))
	w.Must(err)
	want := map[user.ID]int{}
	var guests []user.ID
	for i := range user.ID(300) {
		id := 1 + i*997 // in several chunks
		want[id] = 3
		attributes := map[string]any{"tier": "silver"}
		if i%5 == 0 {
			guests, want[id] = append(guests, id), 2
		}
		if i%3 == 0 {
			attributes["tier"], want[id] = "gold", 1
		}
		w.Upsert(user.Change{ID: id, Attributes: &attributes})
	}
	const unknown, unknownGuest = user.ID(7_000_000), user.ID(8_000_000) // users of whom nothing is stored
	want[unknown], want[unknownGuest] = 3, 2
	_, err = segments.AddMembers(t.Context(), list.ID, append(guests, unknownGuest))
	w.Must(err)
	w.Exec(`update users set created_at = now() - interval '1 day'`)
	drop := w.doored(w.Published(30*time.Minute+30*time.Second), gold, list)
	judge := func(when string) {
		t.Helper()
		for id, place := range want {
			got, err := doors.Judge(t.Context(), drop.ID, id)
			w.Must(err)
			if got != place {
				t.Errorf("%s user %d comes through door %d, want %d", when, id, got, place)
			}
		}
		users := slices.Sorted(maps.Keys(want))
		places, err := doors.Places(t.Context(), drop.ID, users)
		w.Must(err)
		for i, id := range users {
			if int(places[i]) != want[id] {
				t.Errorf("%s user %d among many comes through door %d, want %d", when, id, places[i], want[id])
			}
		}
	}
	judge("before the freeze")
	w.Exec(`insert into draws (template_id, template_version, key, source, cards, opens_at, closes_at) values ($1, 1, '', 'commit', '{card}', now(), now())`, drop.ID)
	for range 2 { // the second time nothing changes
		gold.Name = "Gold members"
		gold, err = segments.SaveSegment(t.Context(), gold, pgtest.AboutSegment("segment.edit"))
		w.Must(err)
	}
	if n := w.Number(`select count(*) from audit where action = 'template.door_members'`); n != 0 {
		t.Errorf("%d changes of members by a new name", n)
	}
	gold.Rule = segment.Rule{Match: segment.Any, Rules: []segment.Rule{gold.Rule, tier("platinum")}}
	gold, err = segments.SaveSegment(t.Context(), gold, pgtest.AboutSegment("segment.edit"))
	w.Must(err)
	if n := w.Number(`select count(*) from audit where action = 'template.door_members' and object_id = $1::bigint::text`, drop.ID); n != 1 {
		t.Errorf("%d changes of members are in the audit log, want 1", n)
	}
	if n := w.Number(`select group_changes from draws where template_id = $1`, drop.ID); n != 1 {
		t.Errorf("the page of the draw counts %d changes, want 1", n)
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for more := true; more; {
				var err error
				if more, err = doors.FreezeNext(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	if frozen := w.Number(`select count(*) from doors where frozen_at is not null`); frozen != 1 {
		t.Fatalf("%d doors are frozen, want the first: the others open later", frozen)
	}
	judge("with one door frozen")
	w.Exec(`update templates set opens_at = date_trunc('second', now()) + interval '20 seconds', issued = 0 where id = $1`, drop.ID)
	for more := true; more; {
		more, err = doors.FreezeNext(t.Context())
		w.Must(err)
	}
	judge("with all doors frozen")
	for place, members := range []int64{100, 61, 0} {
		if n := w.Number(`select members from doors where place = $1`, place+1); n != members {
			t.Errorf("door %d has %d members, want %d", place+1, n, members)
		}
		set, err := doors.Frozen(t.Context(), drop.ID, place+1)
		w.Must(err)
		for id, door := range want {
			if door == place+1 && place < 2 && !set.Contains(id) {
				t.Errorf("user %d is missing in the bitmaps of door %d", id, place+1)
			}
		}
	}
	// Changes after the freeze.
	silver := map[string]any{"tier": "silver"}
	w.Upsert(user.Change{ID: 1, Attributes: &silver})
	w.Upsert(user.Change{ID: 998, Attributes: &map[string]any{"tier": "gold"}})
	const late = user.ID(500_000)
	w.Upsert(user.Change{ID: late, Attributes: &map[string]any{"tier": "gold"}})
	want[late] = 1
	judge("after changes")
	if n := w.Number(`select count(*) from audit where action = 'template.door_frozen'`); n != 3 {
		t.Errorf("%d freezes are in the audit log, want 3", n)
	}
	users := &user.Service{Store: audiencedb.NewUsers(w.DB)}
	w.Must(users.Erase(t.Context(), staff.System(), 2992)) // a gold member
	want[2992] = 3
	judge("after an erasure")
	if n := w.Number(`select members from doors where place = 1`); n != 99 {
		t.Errorf("the door has %d members after an erasure", n)
	}
	if err := segments.DeleteSegment(t.Context(), gold.ID, pgtest.AboutSegment("segment.delete")); err == nil {
		t.Error("a segment was deleted that a door needs")
	}
}

// TestABaseForShares: the shares of doors count from the coupons that were issued when the first door was frozen,
// unless it was frozen too late.
func TestABaseForShares(t *testing.T) {
	for _, c := range []struct {
		opensIn time.Duration // the first door
		base    int64
	}{{30 * time.Second, 7}, {-30 * time.Second, 0}} {
		t.Run(fmt.Sprint(c.opensIn), func(t *testing.T) {
			w := newFixture(t)
			doors := audiencedb.NewDoors(w.DB)
			gold := w.segment("Gold", tier("gold"))
			drop := w.doored(w.Published(30*time.Minute+c.opensIn), gold, gold)
			w.Exec(`update templates set issued = 7 where id = $1`, drop.ID)
			for more := true; more; {
				var err error
				more, err = doors.FreezeNext(t.Context())
				w.Must(err)
			}
			if got := w.Number(`select door_base from templates where id = $1`, drop.ID); got != c.base {
				t.Errorf("base %d, want %d", got, c.base)
			}
			now, err := w.Templates.Template(t.Context(), drop.ID)
			w.Must(err)
			if c.opensIn > 0 { // the members are frozen anew for another opening
				later := now
				later.OpensAt, later.ClosesAt = now.OpensAt.Add(time.Hour), now.ClosesAt.Add(time.Hour)
				_, err = w.Service.Edit(t.Context(), staff.System(), now.ID, template.Edition{Version: now.Version, Spec: later.Spec})
				w.Must(err)
				if n := w.Number(`select (select count(*) from doors where frozen_at is not null or cut_to > 0 or members > 0) + (select count(*) from door_members)`); n != 0 {
					t.Errorf("%d rows are left of the freeze for the former opening", n)
				}
			}
			if len(now.Doors) != 3 || now.Doors[0].FrozenAt == nil || now.Doors[1].FrozenAt != nil || now.Doors[0].Name != "Gold" || now.DoorBase != c.base {
				t.Errorf("read as %s: %+v", strconv.FormatInt(now.ID, 10), now.Doors)
			}
		})
	}
}

// TestADoorForAccessCodes: users with a code come through it, before and after it is frozen, and the parts of reservations
// and coupons that users of each door have are estimated.
func TestADoorForAccessCodes(t *testing.T) {
	w := newFixture(t)
	doors := audiencedb.NewDoors(w.DB)
	drop := w.Published(time.Hour + 30*time.Second)
	drop.Doors = []template.Door{{Name: "Invited", Who: template.ToCodes, LeadMinutes: 60}, {Name: "Everybody", Who: template.ToAll}}
	drop, err := w.Templates.SaveDoors(t.Context(), drop, nil, staff.Entry{Actor: staff.System(), Action: "template.doors", ObjectKind: "template"})
	w.Must(err)
	bind := func(id user.ID) {
		w.Exec(`insert into door_codes (serial, template_id, batch_id, user_id) values ($1, $2, 1, $1)`, id, drop.ID)
	}
	for id := range user.ID(30) {
		bind(1 + id)
		w.Exec(`insert into reservations (template_id, user_id, slots) values ($1, $2, 1)`, drop.ID, 1+2*id)
	}
	check := func(id user.ID, want int) {
		t.Helper()
		one, err := doors.Judge(t.Context(), drop.ID, id)
		w.Must(err)
		many, err := doors.Places(t.Context(), drop.ID, []user.ID{id})
		w.Must(err)
		if one != want || int(many[0]) != want {
			t.Errorf("user %d comes through door %d, among many %d, want %d", id, one, many[0], want)
		}
	}
	check(1, 1)
	check(31, 2)
	for more := true; more; {
		more, err = doors.FreezeNext(t.Context())
		w.Must(err)
	}
	if n := w.Number(`select members from doors where place = 1 and frozen_at is not null`); n != 30 {
		t.Errorf("%d members are frozen", n)
	}
	bind(40)
	check(1, 1)
	check(40, 1)
	check(41, 2)
	for range 2 { // the second time no drop is to be estimated
		for more := true; more; {
			more, err = doors.CountNext(t.Context())
			w.Must(err)
		}
	}
	// 15 of 30 have a code.
	if n := w.Number(`select booked_share * 10000 + coalesce(claimed_share, 7) from doors where place = 1`); n != 500*10000+7 {
		t.Errorf("shares %d", n)
	}
	if n := w.Number(`select booked_by($1, 2::smallint, 101)`, drop.ID); n != 51 {
		t.Errorf("%d of 101 bookings are by users of the second door", n)
	}
}
