package work_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// TestShopsAreToldOfDropsAsTheyAre: the database lacks the newest changes of drops. The shops of
// these drops, and no other shops, get the current state of the drops, once, with numbers above
// all numbers that were drawn.
func TestShopsAreToldOfDropsAsTheyAre(t *testing.T) {
	h := newHooked(t)
	moved, closed, draft := h.Published(time.Hour), h.Published(2*time.Hour), h.Published(3*time.Hour)
	_, err := h.Service.Do(t.Context(), staff.System(), closed.ID, 0, template.Closing, "test")
	h.Must(err)
	h.Exec(`update templates set state = 'draft' where id = $1`, draft.ID)
	h.shop = moved.ShopNumber
	h.endpoint(hook.DropMoved, hook.DropClosed, hook.DropCancelled)
	const gone, other = 1_000_001, 1_000_002 // of the shop, and of another shop
	var lost hook.Lost
	for id, topic := range map[int64]string{moved.ID: event.TemplateMoved, closed.ID: event.TemplatePublished, draft.ID: event.TemplatePublished,
		gone: event.TemplatePublished, other: event.TemplatePublished} {
		e := event.Template{TemplateID: id, ShopNumber: h.shop, Version: 9, OpensAt: time.Now().Add(5 * time.Hour), Sequence: 9}
		if id == other {
			e.ShopNumber = h.shop + 1
		}
		hook.AddDrop(topic)(&lost, e)
	}
	lost.AddIssued(event.IssuedList{TemplateID: gone, Items: []event.OwnedCoupon{{CouponID: 5, UserID: 7}}})
	told := h.Number(`select last_value from hook_sequence`)
	h.Exec(`update event_relay set history = 'the history before'`)
	r, err := workdb.NewOutbox(h.DB).Relayed(t.Context())
	h.Must(err)

	for _, want := range []int{6, 0} { // of other shops, or not chosen, as well
		n, _, err := h.events.Correct(t.Context(), r, r.Mark+1, &lost)
		if err != nil || n != want {
			t.Errorf("%d corrections, want %d; %v", n, want, err)
		}
	}
	list, err := h.store.Listen(t.Context(), hook.Listener{Shop: h.shop, Name: "key:1"}, 0, 100)
	h.Must(err)
	var got []string
	for _, e := range list {
		got = append(got, string(e.Type))
		if !strings.Contains(e.Payload, `"reason":"restored"`) {
			t.Errorf("%s without its reason: %s", e.Type, e.Payload)
		}
	}
	slices.Sort(got)
	if want := []string{"drop.cancelled", "drop.cancelled", "drop.closed", "drop.moved"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if n := h.Number(`select count(*) from hook_events where sequence <= $1`, told+1_000_000); n != 0 {
		t.Errorf("%d numbers are not behind those that shops know", n)
	}
	opens := fmt.Sprintf(`"version":%d,"opens_at":"%s"`, moved.Version, moved.OpensAt.UTC().Format(time.RFC3339))
	if n := h.Number(`select count(*) from hook_events where type = 'drop.moved' and strpos(payload, $1) > 0`, opens); n != 1 {
		t.Errorf("the shop is not told that the drop opens as before: %s", opens)
	}
}
