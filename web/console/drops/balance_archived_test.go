package drops_test

import (
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// The pages of a drop whose rows were removed after their retention show the figures that were
// kept, and say plainly which rows are gone.
func TestPagesOfAnArchivedDrop(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Exec(`update slots set state = 'finished', fired_at = due_at, finished_at = due_at where template_id = $1`, d.ID)
	g.Exec(`insert into slot_results (slot_id, channel, reserved, sent, skipped, archived) select id, 0, 10, 9, 1, true from slots where template_id = $1 and slot = 1`, d.ID)
	g.Exec(`insert into drop_archives (template_id, counted_at, booked, reminded, opened, claimed, used, others, partial, packed_at, slots, results) select $1, '2027-01-05 12:00Z', 10, 9, 4, 3, 1, 2, false, now(),
		(select jsonb_agg(to_jsonb(s)) from slots s where template_id = $1), (select jsonb_agg(to_jsonb(r)) from slots s join slot_results r on r.slot_id = s.id where template_id = $1)`, d.ID)
	g.Exec(`delete from slots where template_id = $1`, d.ID)
	b := g.As(staff.Viewer)
	b.Get("/templates/1/balance").Is(200).Has("Kept figures", "receipts are gone").HasNot("The balance sheet begins with", "receipt-link", "Counted from the rows")
	b.Get("/templates/1/report").Is(200).Has("before their reservations were removed", "From stored totals")
	b.Get("/templates/1/users/1001").Is(404).Has("The details are removed")
}
