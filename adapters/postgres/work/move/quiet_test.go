package move

import (
	"errors"
	"strings"
	"testing"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/cell"
)

// TestNotMovable: why a shop is not moved.
func TestNotMovable(t *testing.T) {
	s := bothSides(t)
	why := func(want string) {
		t.Helper()
		_, err := s.mover.Move(t.Context(), 10)
		if !errors.Is(err, cell.ErrNotMovable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, c := range []struct{ do, undo, want string }{
		{`update templates set opens_at = opens_at - interval '3 days'`, `update templates set opens_at = opens_at + interval '3 days'`, "drop 1 is open"},
		{`update slots set due_at = due_at - interval '3 days' where state = 'waiting'`, `update slots set due_at = due_at + interval '3 days' where state = 'waiting'`, "reminders of drop 1"},
		{`update announcements set state = 'sending'`, `update announcements set state = 'finished'`, "announcement 1"},
		{`update campaigns set state = 'scheduled'`, `update campaigns set state = 'finished'`, "campaign 1 is scheduled"},
		{`update campaigns set state = 'draft'`, `update campaigns set state = 'finished'`, "draft 1 is for a segment"},
		{`update campaign_requests set state = 'asked'`, `update campaign_requests set state = 'approved'`, "approval of campaign 1"},
		{`update notice_runs set settled_at = null`, `update notice_runs set settled_at = now()`, "notices of drop 1"},
		{`update batches set state = 'ready' where id = 65`, `update batches set state = 'done'`, "batch 65"},
		{`update jobs set state = 'running'`, `update jobs set state = 'done'`, "job 1"},
		{`update doors set who = 'segment', segment_id = 1`, `update doors set who = 'all', segment_id = null`, "door 1 of drop 1 is for a segment"},
		{`with d as (update doors set lead_minutes = 1440) update templates set opens_at = opens_at - interval '2 days' where id = 1`,
			`with d as (update doors set lead_minutes = 0) update templates set opens_at = opens_at + interval '2 days' where id = 1`, "drop 1 is open"},
		{`update draws set state = 'open'`, `update draws set state = 'done'`, "the draw of drop 1"},
		{`update rehearsals set state = 'running'`, `update rehearsals set state = 'done'`, "rehearsal 129 of drop 65 is not over"},
		{`update reviews set state = 'suspending' where id = 65`, `update reviews set state = 'open'`, "group 65 of the review"},
		{`update code_batches set state = 'generating'`, `update code_batches set state = 'ready'`, "codes of drop 65"},
		{`update campaigns set shop_number = null, grant_template_id = 1`, `update campaigns set shop_number = 10, grant_template_id = null`, "campaign 1, which is not of this shop"},
		{`update providers set deleted_at = null`, `update providers set deleted_at = now()`, "provider 1 of its own"},
		{`insert into outbox (topic, payload) values ('x', '{}')`, `delete from outbox`, "the events of this installation are not handled"},
		{`update event_relay set settled = 0`, `update event_relay set settled = 1000`, "the events of this installation are not handled"},
		{`update cell set number = 1`, `update cell set number = 0`, "both databases are cell 1"},
	} {
		s.source.Exec(c.do)
		why(c.want)
		s.source.Exec(c.undo)
	}
	s.target.Exec(`update hook_cursor set planned_to = 1`)
	why("has not passed over the coupons")
	s.target.Exec(`update hook_cursor set planned_to = 1000000`)
	s.target.Shops(30)
	foreign := s.target.Drop(pgtest.Drop{Shop: 30})
	s.target.Exec(`insert into code_batches (template_id, first_serial, count, key_id, created_by) values ($1, 5, 10, 1, '')`, foreign)
	why("serial numbers")
	s.target.Exec(`delete from code_batches where template_id = $1`, foreign)
	s.source.Must(s.mover.Undo(t.Context(), 10))
	s.target.Exec(`insert into coupons (id, template_id, user_id, claim_id, origin, issued_at, expires_at) overriding system value values (65, $1, 1, 1, 'claim', now(), now())`, foreign)
	why("ids of this shop's rows in coupons")
	s.target.Exec(`delete from coupons`)
	if _, err := s.mover.Move(t.Context(), 11); !errors.Is(err, cell.ErrNotMovable) {
		t.Error(err)
	}
	s.target.Exec(`delete from moves`)
	s.target.Drop(pgtest.Drop{Shop: 10})
	why("has rows of a shop 10 already")
}
