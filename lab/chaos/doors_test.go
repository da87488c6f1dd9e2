package chaos_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"dropbell/domain/event"
)

// doorLead is how long before its drop the first door opens.
const doorLead = 10 * time.Minute

// A doored drop has a door for members, which opens first and has a share, and a door for everybody.
type doored struct {
	*claims
	mode     string
	template int64
	members  []int64
	others   []int64
	stock    int64
	share    int64
	limit    int // of the first door
}

// publishDoors publishes a drop that opens in an hour. The first members of users come through its first door, and may have one coupon each.
func (c *claims) publishDoors(name, mode string, users []int64, members int, stock, share int64, limit int) *doored {
	c.t.Helper()
	d := &doored{claims: c, mode: mode, members: users[:members], others: users[members:], stock: stock, share: share, limit: 1}
	d.template = c.draftDrop(name, mode, "claim", stock, limit, time.Hour)
	group := fmt.Sprint(users[0]) // drops with the same users have the same members
	var lines strings.Builder
	for _, u := range d.members {
		fmt.Fprintf(&lines, `{"id":"%d","attributes":{"group":%q}}`+"\n", u, group)
	}
	for _, u := range d.others {
		fmt.Fprintf(&lines, `{"id":"%d"}`+"\n", u)
	}
	c.crowd.must(c.ctx, call{method: http.MethodPut, path: "/admin/users", body: lines.String()}, nil)
	var segment struct{ ID string }
	c.crowd.must(c.ctx, call{method: http.MethodPost, path: "/admin/segments", body: map[string]any{"name": fmt.Sprint("Members of ", d.template),
		"rule": map[string]any{"field": "attribute", "name": "group", "op": "is", "values": []string{group}}}}, &segment)
	c.copied(len(users), `select count(*) from users where id = any($1)`, users)
	c.copied(1, `select count(*) from segments where id::text = $1`, segment.ID)
	test := func(user int64, wants int) map[string]any {
		return map[string]any{"user_id": fmt.Sprint(user), "wants": wants}
	}
	path := fmt.Sprintf("/admin/templates/%d", d.template)
	for end := time.Now().Add(time.Minute); ; wait(50*time.Millisecond, c.ctx.Done()) {
		var now templateBody
		c.crowd.must(c.ctx, call{method: http.MethodGet, path: path}, &now)
		r, final := c.crowd.send(c.ctx, call{method: http.MethodPut, path: path + "/doors", ifMatch: fmt.Sprintf("%q", fmt.Sprint(now.Version)), body: map[string]any{
			"doors": []any{map[string]any{"name": "Members", "who": "segment", "segment_id": segment.ID, "lead_minutes": int(doorLead.Minutes()), "share": share, "user_limit": d.limit},
				map[string]any{"name": "Everybody", "who": "all"}},
			"tests": []any{test(d.members[0], 1), test(d.members[1], 1), test(d.others[0], 2)}}})
		if final && r.ok() {
			break
		}
		// A repeated request may have met the effect of its own first attempt, before it was sent again or while it was.
		if !final || r.status != http.StatusPreconditionFailed && r.status != http.StatusConflict || time.Now().After(end) {
			c.t.Fatalf("the doors of drop %d: %d %s", d.template, r.status, r.body)
		}
	}
	c.crowd.must(c.ctx, call{method: http.MethodPost, path: path + "/publish", body: map[string]any{"reason": "chaos"}}, nil)
	return d
}

// sellByDoors opens the first door, whose members are frozen and get its share, and then the drop, where the others get what
// is left. Never more is sold than there is, and the frozen members are complete whatever happens to the worker.
func (k *walk) sellByDoors(d *doored) {
	k.t.Helper()
	template := d.template
	d.opens(doorLead + soon)
	d.frozen()
	wait(soon+knownWithin, k.ctx.Done())
	if a := k.claim("door", template, d.others[0]); a.code != "door_not_open" {
		k.t.Errorf("drop %d: a user of the second door is answered %+v", template, a)
	}
	k.sellTo(d, d.members, d.share)
	d.opens(0)
	wait(knownWithin, k.ctx.Done())
	k.sellTo(d, d.others, d.stock)
	k.c.calm(template)
	if n := d.sold(); n != d.stock {
		k.t.Errorf("drop %d: %d coupons are sold, want %d", template, n, d.stock)
	}
}

// sellTo lets the users claim until so many coupons of the drop are sold. A failed claim gave its coupon back, and a keeper hands a share out within
// seconds, so users ask again.
func (k *walk) sellTo(d *doored, users []int64, until int64) {
	k.t.Helper()
	for end := time.Now().Add(30 * time.Second); d.sold() < until && time.Now().Before(end); wait(200*time.Millisecond, k.ctx.Done()) {
		for _, u := range users {
			k.claim("door", d.template, u)
		}
	}
	if n := d.sold(); n != until {
		k.t.Errorf("drop %d: %d coupons are sold by a door, want %d", d.template, n, until)
	}
}

// frozen waits until the members of the first door are frozen, and compares them with the group.
func (d *doored) frozen() {
	d.t.Helper()
	var frozen, stored int64
	for end := time.Now().Add(time.Minute); ; wait(50*time.Millisecond, d.ctx.Done()) {
		err := d.stack.SQL.QueryRow(d.ctx, `select coalesce(max(members), -1), (select coalesce(sum(count), 0) from door_members where template_id = $1 and place = 1)
			from doors where template_id = $1 and place = 1 and frozen_at is not null`, d.template).Scan(&frozen, &stored)
		if err == nil && frozen >= 0 {
			break
		}
		if time.Now().After(end) {
			d.t.Errorf("the first door of drop %d is not frozen: %v", d.template, err)
			return
		}
	}
	if want := int64(len(d.members)); frozen != want || stored != want {
		d.t.Errorf("the first door of drop %d has %d members, of whom %d are stored, want %d", d.template, frozen, stored, want)
	}
}

// opens lets the drop open so long from now, without the rule that a door must be a minute ahead, and returns its opening.
func (d *doored) opens(in time.Duration) (at time.Time) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); ; wait(50*time.Millisecond, d.ctx.Done()) {
		err := d.stack.SQL.QueryRow(d.ctx, `with t as (update templates set opens_at = date_trunc('second', clock_timestamp()) + $2::interval, version = version + 1 where id = $1
				returning id, shop_number, version, opens_at),
			told as (insert into outbox (topic, payload) select $3, jsonb_build_object('template_id', id::text, 'shop_number', shop_number::text, 'version', version,
				'opens_at', opens_at, 'sequence', nextval('hook_sequence')::text, 'at', clock_timestamp()) from t)
			select opens_at from t`, d.template, in, event.TemplateChanged).Scan(&at)
		if err == nil {
			return at
		}
		if time.Now().After(end) {
			d.t.Fatal(err)
		}
	}
}

func (d *doored) sold() (n int64) {
	d.t.Helper()
	if err := d.stack.SQL.QueryRow(d.ctx, `select count(*) from coupons where template_id = $1`, d.template).Scan(&n); err != nil {
		d.t.Error(err)
	}
	return n
}
