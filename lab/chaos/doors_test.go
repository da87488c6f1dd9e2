package chaos_test

import (
	"fmt"
	"strconv"
	"time"
)

// doorLead is how long before its drop the first door opens.
const doorLead = 10 * time.Minute

// membersOf is how many users of an evening come through the first door, and firstShare is the share of that door.
const (
	membersOf  = 4
	firstShare = 2
)

// addDoors gives a published drop two doors: the first users of an evening are members, who come first.
func (k *walk) addDoors(template int64, users []int64) {
	k.t.Helper()
	group := strconv.FormatInt(template, 10)
	_, err := k.stack.SQL.Exec(k.ctx, `with u as (update users set attributes = attributes || jsonb_build_object('evening', $2::text) where id = any($3)),
		s as (insert into segments (name, kind, rule, created_by) values ('Members ' || $2, 'rules', jsonb_build_object('field', 'attribute', 'name', 'evening', 'op', 'is', 'values', jsonb_build_array($2::text)), 'chaos') returning id),
		d as (insert into doors (template_id, place, name, who, segment_id, lead_minutes, share, user_limit, texts)
			select $1::bigint, 1, 'Members', 'segment', id, $4::int, $5::bigint, 0, '{}'::jsonb from s union all select $1::bigint, 2, 'All', 'all', null, 0, 0, 0, '{}')
		update templates set doors = 2, version = version + 1 where id = $1::bigint`, template, group, users[:membersOf], int(doorLead.Minutes()), firstShare)
	if err != nil {
		k.t.Fatal(err)
	}
}

// sellByDoors opens the first door, whose members are frozen and get its share, and then the drop, where the others get what
// is left. Nobody gets more than there is, and the frozen members are complete whatever happens to the worker.
func (k *walk) sellByDoors(template int64, users []int64) {
	k.t.Helper()
	k.opens(template, doorLead+soon)
	var frozen int64
	for end := time.Now().Add(time.Minute); ; wait(50*time.Millisecond, k.ctx.Done()) {
		err := k.stack.SQL.QueryRow(k.ctx, `select coalesce(max(members), -1) from doors where template_id = $1 and place = 1 and frozen_at is not null`, template).Scan(&frozen)
		if err != nil || time.Now().After(end) {
			k.t.Errorf("the first door of drop %d is not frozen: %v", template, err)
			return
		}
		if frozen >= 0 {
			break
		}
	}
	var stored int64
	if err := k.stack.SQL.QueryRow(k.ctx, `select coalesce(sum(count), 0) from door_members where template_id = $1 and place = 1`, template).Scan(&stored); err != nil || frozen != membersOf || stored != membersOf {
		k.t.Errorf("the first door of drop %d has %d members, of whom %d are stored, want %d: %v", template, frozen, stored, membersOf, err)
	}
	wait(soon+knownWithin, k.ctx.Done())
	if a := k.claim("door", template, users[membersOf]); a.code != "door_not_open" {
		k.t.Errorf("drop %d: a user of the second door is answered %+v", template, a)
	}
	// A failed claim gave its coupon back, so members ask again.
	for round := 0; round < 3 && k.sold(template) < firstShare; round++ {
		for _, u := range users[:membersOf] {
			k.claim("door", template, u)
		}
	}
	if n := k.sold(template); n != firstShare {
		k.t.Errorf("drop %d: the first door sold %d coupons, want %d", template, n, firstShare)
	}
	k.opens(template, 0)
	wait(knownWithin, k.ctx.Done())
	for round := 0; round < 3 && k.sold(template) < forSale; round++ {
		for _, u := range users[membersOf:] {
			k.claim("door", template, u)
		}
	}
	k.c.calm(template)
	for _, r := range k.c.rows(template) {
		if r.user == 0 {
			k.t.Errorf("drop %d: coupon %+v has no owner", template, r)
		}
	}
	if n := k.sold(template); n != forSale {
		k.t.Errorf("drop %d: %d coupons are sold, want %d", template, n, forSale)
	}
}

// opens lets the drop open so long from now, without the rule that a door must be a minute ahead.
func (k *walk) opens(template int64, in time.Duration) {
	k.t.Helper()
	if _, err := k.stack.SQL.Exec(k.ctx, fmt.Sprintf(`update templates set opens_at = date_trunc('second', now()) + interval '%d seconds', version = version + 1 where id = $1`, int(in.Seconds())), template); err != nil {
		k.t.Fatal(err)
	}
}

func (k *walk) sold(template int64) (n int64) {
	k.t.Helper()
	if err := k.stack.SQL.QueryRow(k.ctx, `select count(*) from coupons where template_id = $1`, template).Scan(&n); err != nil {
		k.t.Error(err)
	}
	return n
}
