package drops_test

import (
	"net/url"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// TestFirstSteps: the first steps follow the stored data, disappear by themselves after the last
// step, and can be hidden and shown again by the member.
func TestFirstSteps(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	b.Get("/").Is(200).Has("First steps", "Add a shop", "Test a channel", "Import customers", "Publish a drop", "Receive a reminder").HasNot("Done")
	g.As(staff.Viewer).Get("/").Is(200).HasNot("Add a shop")

	d := g.Published(10, 30*time.Minute)
	g.Exec(`insert into users (id) values (1001)`)
	g.Exec(`insert into channel_tests (channel, recipient, by_user, due_at, created_by, state, result) values (1, '', false, now(), 'x', 'done', 'permanent')`)
	b.Get("/").Is(200).Has("Add a shop Done", "Import customers Done", "Publish a drop Done").HasNot("Test a channel Done", "Receive a reminder Done")
	g.Exec(`update channel_tests set result = 'delivered'`)
	b.Get("/").Is(200).Has("Test a channel Done")
	// A member of another shop has published nothing.
	g.As(staff.Marketer, 11).Get("/").Is(200).Has("Import customers Done").HasNot("Publish a drop Done")

	b.Post("/preferences", url.Values{"setup": {"hidden"}, "return": {"/"}}).Is(303)
	b.Get("/").Is(200).HasNot("Publish a drop Done")
	b.Post("/preferences", url.Values{"setup": {"shown"}, "return": {"/"}}).Is(303)
	b.Get("/").Is(200).Has("Publish a drop Done")

	other := g.As(staff.Admin)
	g.Exec(`insert into slot_results (slot_id, channel, reserved, sent) select id, 0, 1, 1 from slots where template_id = $1 and slot = 1`, d.ID)
	other.Get("/").Is(200).HasNot("Receive a reminder")
	b.Get("/").Is(200).Has("Receive a reminder Done") // shown at the member's request
}
