package work_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/event/hook"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

var operator = staff.Actor{Label: "staff:1", Name: "Ada", Role: staff.Operator}

// hooked is a fixture with one shop's endpoint.
type hooked struct {
	*fixture
	store  workdb.Hooks
	events *workdb.HookEvents
	shop   int64
}

func newHooked(t *testing.T) *hooked {
	t.Helper()
	w := newFixture(t)
	h := &hooked{fixture: w, store: workdb.NewHooks(w.DB), events: workdb.NewHookEvents(w.DB), shop: 10}
	t.Cleanup(h.events.Close)
	w.Exec(`insert into shops (number, name, timezone) values (10, 'Tea House', 'UTC'), (11, 'Coffee House', 'UTC') on conflict do nothing`)
	return h
}

func (h *hooked) endpoint(types ...hook.Type) hook.Endpoint {
	h.Helper()
	e, err := h.create(hook.Endpoint{Shop: h.shop, Input: hook.Input{URL: "https://shop.example/hooks", Types: types, Enabled: true}}, "")
	h.Must(err)
	return e
}

// create stores an endpoint under a new id, with a secret.
func (h *hooked) create(n hook.Endpoint, requestKey string) (hook.Endpoint, error) {
	id, err := h.store.NewEndpointID(h.Context())
	h.Must(err)
	n.ID, n.Secrets = id, [][]byte{{0, 1}}
	return h.store.CreateEndpoint(h.Context(), n, requestKey, operator)
}

// happen stores an event of a drop of the shop and returns the woken endpoints.
func (h *hooked) happen(events ...hook.Event) []int64 {
	h.Helper()
	woken, err := h.events.Handle(h.Context(), uuid.Must(uuid.NewV7()).String(), events)
	h.Must(err)
	return woken
}

func (h *hooked) opened(shop int64) hook.Event {
	return hook.Event{Type: hook.DropOpened, Subject: "drop/1", Shop: shop, At: time.Now(), Items: 1, Data: hook.DropData{TemplateID: 1}}
}

func (h *hooked) lease(e hook.Endpoint, limit int) hook.Lease {
	h.Helper()
	l, err := h.store.Lease(h.Context(), e.ID, limit, time.Minute)
	h.Must(err)
	return l
}

// answered records the answer for all of the lease.
func (h *hooked) answered(l hook.Lease, a hook.Answer) bool {
	h.Helper()
	var results []hook.Result
	for _, d := range l.Due {
		r := hook.Result{DeliveryID: d.ID, Attempt: d.Attempts + 1, At: time.Now(), Answer: a}
		if pause, again := hook.Next(r.Attempt, a, 0); !a.OK() && again {
			r.Again = &pause
		}
		results = append(results, r)
	}
	on, err := h.store.Record(h.Context(), l, results, hook.Hold)
	h.Must(err)
	return on
}

func (h *hooked) state(e hook.Endpoint) hook.Endpoint {
	h.Helper()
	e, err := h.store.Endpoint(h.Context(), e.ID)
	h.Must(err)
	return e
}

// soon makes waiting deliveries due and closes pauses.
func (h *hooked) soon() {
	h.Helper()
	h.Exec(`update hook_deliveries set next_at = now(), lease_until = least(lease_until, now()) where state = 'waiting'`)
	h.Exec(`update hook_endpoints set held_until = null`)
}

// TestOnlyWantedEventsAreStored: nothing is written for shops without an endpoint, or for types
// that no endpoint chose. A disabled endpoint gets no deliveries. If failures disabled the
// endpoint, its events can be replayed later.
func TestOnlyWantedEventsAreStored(t *testing.T) {
	h := newHooked(t)
	if woken := h.happen(h.opened(h.shop)); woken != nil || h.Number(`select count(*) from hook_events`) != 0 {
		t.Errorf("stored without an endpoint, woken %v", woken)
	}
	e := h.endpoint(hook.DropOpened)
	if woken := h.happen(h.opened(h.shop), h.opened(11), hook.Event{Type: hook.DropClosed, Subject: "drop/1", Shop: h.shop, At: time.Now(), Data: hook.DropData{}}); !slices.Equal(woken, []int64{e.ID}) {
		t.Errorf("woken %v", woken)
	}
	if n, d := h.Number(`select count(*) from hook_events`), h.Number(`select count(*) from hook_deliveries`); n != 1 || d != 1 {
		t.Errorf("%d events, %d deliveries", n, d)
	}
	h.Exec(`update hook_endpoints set enabled = false, disabled_reason = 'staff'`)
	h.happen(h.opened(h.shop))
	if n := h.Number(`select count(*) from hook_events`); n != 1 {
		t.Errorf("%d events for a shop whose only endpoint staff disabled", n)
	}
	h.Exec(`update hook_endpoints set disabled_reason = 'failing'`)
	h.happen(h.opened(h.shop))
	if n, d := h.Number(`select count(*) from hook_events`), h.Number(`select count(*) from hook_deliveries`); n != 2 || d != 1 {
		t.Errorf("%d events, %d deliveries", n, d)
	}
	h.Exec(`update hook_endpoints set enabled = true, disabled_reason = ''`)
	n, err := h.store.ReplaySince(t.Context(), h.state(e), time.Now().Add(-time.Hour), 100, e.Entry(operator, "replay_since", nil, nil))
	if n != 1 || err != nil { // the other delivery waits already
		t.Errorf("%d replayed, %v", n, err)
	}
}

// TestAnEventIsStoredOnce however often and by however many workers it is handled.
func TestAnEventIsStoredOnce(t *testing.T) {
	h := newHooked(t)
	h.endpoint()
	ids := make([]string, 40)
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7()).String()
	}
	other := workdb.NewHookEvents(h.DB)
	t.Cleanup(other.Close)
	var all sync.WaitGroup
	for _, s := range []*workdb.HookEvents{h.events, other} {
		for _, id := range ids {
			all.Go(func() {
				if _, err := s.Handle(t.Context(), id, []hook.Event{h.opened(h.shop)}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if n, d := h.Number(`select count(*) from hook_events`), h.Number(`select count(*) from hook_deliveries`); n != 40 || d != 40 {
		t.Errorf("%d events, %d deliveries of 40", n, d)
	}
	if n := h.Number(`select count(distinct sequence) from hook_events`); n != 40 {
		t.Errorf("%d numbers for 40 events", n)
	}
}

// TestTwoWorkersShareAnEndpoint: an event leased by one worker is not given to the other. An
// event that a dead worker had leased is sent again, with the same event id.
func TestTwoWorkersShareAnEndpoint(t *testing.T) {
	h := newHooked(t)
	e := h.endpoint()
	for range 6 {
		h.happen(h.opened(h.shop))
	}
	first, second := h.lease(e, 4), h.lease(e, 6)
	if len(first.Due) != 4 || len(second.Due) != 2 {
		t.Fatalf("%d and %d leased", len(first.Due), len(second.Due))
	}
	if third := h.lease(e, 6); len(third.Due) != 0 {
		t.Errorf("%d leased twice", len(third.Due))
	}
	h.answered(second, hook.Answer{Status: 200})
	h.soon() // the first worker has died after sending
	again := h.lease(e, 10)
	if len(again.Due) != 4 || again.Due[0].EventID != first.Due[0].EventID {
		t.Fatalf("%d leased again", len(again.Due))
	}
	h.answered(first, hook.Answer{Status: 500}) // it was only slow: its lease is over
	if n := h.Number(`select count(*) from hook_attempts where status = 500`); n != 0 {
		t.Errorf("%d attempts recorded without a lease", n)
	}
	h.answered(again, hook.Answer{Status: 204})
	if n := h.Number(`select count(*) from hook_deliveries where state = 'delivered'`); n != 6 {
		t.Errorf("%d of 6 delivered", n)
	}
	h.answered(again, hook.Answer{Status: 204}) // recorded again after the answer was lost
	if n := h.Number(`select sum(delivered) from hook_hours`); n != 6 {
		t.Errorf("%d counted", n)
	}
}

// TestRetriesEnd: after ten attempts the delivery has failed. It can be replayed with the same
// event.
func TestRetriesEnd(t *testing.T) {
	h := newHooked(t)
	e := h.endpoint()
	h.happen(h.opened(h.shop))
	var ids []int64
	for i := range len(hook.Schedule) + 1 {
		h.soon()
		l := h.lease(e, 10)
		if len(l.Due) != 1 {
			t.Fatalf("attempt %d: %d due", i+1, len(l.Due))
		}
		ids = append(ids, l.Due[0].EventID)
		h.answered(l, hook.Answer{Status: 500, Response: "oh\x00 no"})
	}
	h.soon()
	if l := h.lease(e, 10); len(l.Due) != 0 {
		t.Error("tried again after the last attempt")
	}
	list, err := h.store.Deliveries(t.Context(), hook.DeliveryQuery{EndpointID: e.ID, State: "failed", Limit: 10})
	if err != nil || len(list) != 1 || list[0].Attempts != 10 || list[0].Status != 500 {
		t.Fatalf("%+v, %v", list, err)
	}
	h.Must(h.store.Replay(t.Context(), e.ID, list[0].ID, e.Entry(operator, "replay", nil, nil)))
	l := h.lease(e, 10)
	if len(l.Due) != 1 || l.Due[0].EventID != ids[0] || len(slices.Compact(ids)) != 1 {
		t.Fatalf("replayed %+v", l.Due)
	}
	h.answered(l, hook.Answer{Status: 200, Response: "thanks"})
	d, err := h.store.Delivery(t.Context(), e.ID, l.Due[0].ID)
	if err != nil || len(d.Tries) != 1 || d.Tries[0].Response != "thanks" || !json.Valid([]byte(d.Payload)) || d.State != "delivered" {
		t.Errorf("%+v, %v", d, err)
	}
	if e := h.state(e); e.FailingSince != nil || e.Failures != 0 || e.State() != hook.Working {
		t.Errorf("after a success: %+v", e)
	}
}

// TestACircuitOpens after failures in a row. Then one delivery is sent as a probe. If the probe
// succeeds, all other deliveries are sent.
func TestACircuitOpens(t *testing.T) {
	h := newHooked(t)
	e := h.endpoint()
	for range 20 {
		h.happen(h.opened(h.shop))
	}
	if on := h.answered(h.lease(e, hook.Tolerated), hook.Answer{Error: "timed out"}); on {
		t.Error("it goes on after failures in a row")
	}
	if l := h.lease(e, 10); len(l.Due) != 0 {
		t.Errorf("%d leased while the circuit is open", len(l.Due))
	}
	if due, err := h.store.DueEndpoints(t.Context(), 10); len(due) != 0 || err != nil {
		t.Errorf("woken while the circuit is open: %v, %v", due, err)
	}
	h.Exec(`update hook_endpoints set held_until = now()`)
	probe := h.lease(e, 10)
	if len(probe.Due) != 1 {
		t.Fatalf("%d leased as a probe", len(probe.Due))
	}
	h.soon()
	h.Exec(`update hook_endpoints set held_until = now() + interval '1 minute'`)
	if l := h.lease(e, 10); len(l.Due) != 0 {
		t.Errorf("%d leased beside a probe", len(l.Due))
	}
	h.Exec(`update hook_deliveries set lease_token = $1, lease_until = now() + interval '1 minute' where id = $2`, probe.Token, probe.Due[0].ID)
	if on := h.answered(probe, hook.Answer{Status: 200}); !on {
		t.Error("it does not go on after a success")
	}
	if l := h.lease(e, 100); len(l.Due) != 19 {
		t.Errorf("%d of 19 leased after the circuit closed", len(l.Due))
	}
}

// TestEndpointsAreDisabled: an endpoint that is gone is disabled at once. An endpoint that fails
// is disabled after days, unless other deliveries succeed. Both get a record in the audit log.
func TestEndpointsAreDisabled(t *testing.T) {
	h := newHooked(t)
	gone, failing := h.endpoint(), h.endpoint()
	for range 2 {
		h.happen(h.opened(h.shop))
	}
	h.answered(h.lease(gone, 1), hook.Answer{Status: 410})
	if e := h.state(gone); e.Enabled || e.Why != hook.ByGone || e.State() != hook.Disabled {
		t.Errorf("gone: %+v", e)
	}
	h.answered(h.lease(failing, 1), hook.Answer{Status: 500})
	if e := h.state(failing); !e.Enabled || e.State() != hook.Failing {
		t.Errorf("failed once: %+v", e)
	}
	h.Exec(`update hook_endpoints set failing_since = now() - interval '121 hours' where id = $1`, failing.ID)
	h.soon()
	h.answered(h.lease(failing, 10), hook.Answer{Status: 500})
	if e := h.state(failing); e.Enabled || e.Why != hook.ByFailing || e.DisabledAt == nil {
		t.Errorf("failing for five days: %+v", e)
	}
	if n := h.Number(`select count(*) from audit where action = 'webhook.disable' and actor like 'system%' and reason in ('webhook_gone', 'webhook_failing') and shop_number = 10`); n != 2 {
		t.Errorf("%d lines in the audit log", n)
	}
	list, err := h.store.Attention(t.Context(), []int64{10})
	if others, _ := h.store.Attention(t.Context(), []int64{11}); len(list) != 2 || len(others) != 0 || err != nil {
		t.Errorf("%d want attention, %d in another shop, %v", len(list), len(others), err)
	}
	e, err := h.store.SaveEndpoint(t.Context(), h.state(failing), hook.Input{URL: failing.URL, Enabled: true}, failing.Entry(operator, "change", nil, nil))
	if err != nil || !e.Enabled || e.Why != "" || e.FailingSince != nil {
		t.Errorf("enabled again: %+v, %v", e, err)
	}
	if l := h.lease(e, 10); len(l.Due) != 0 { // the schedule goes on
		t.Errorf("%d are due at once", len(l.Due))
	}
}

// TestEndpointsOfAShop: a shop can have a limited number of endpoints. A request key creates one
// endpoint. A change must name the current version.
func TestEndpointsOfAShop(t *testing.T) {
	h := newHooked(t)
	var all sync.WaitGroup
	errs := make([]error, hook.MaxEndpoints+5)
	for i := range errs {
		all.Go(func() {
			_, errs[i] = h.create(hook.Endpoint{Shop: h.shop, Input: hook.Input{URL: "https://a.example", Enabled: true}}, fmt.Sprintf("k%d", i/2))
		})
	}
	all.Wait()
	made, repeated := 0, 0
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case errors.Is(err, hook.ErrRepeated):
			repeated++
		default:
			t.Error(err)
		}
	}
	if n := h.Number(`select count(*) from hook_endpoints`); made != 8 || repeated != 7 || n != 8 {
		t.Errorf("%d made, %d repeated, %d stored", made, repeated, n)
	}
	for range hook.MaxEndpoints - made {
		h.endpoint()
	}
	if _, err := h.create(hook.Endpoint{Shop: h.shop, Input: hook.Input{URL: "https://a.example"}}, ""); !errors.Is(err, hook.ErrTooMany) {
		t.Errorf("one too many: %v", err)
	}
	if _, err := h.create(hook.Endpoint{Shop: 99, Input: hook.Input{URL: "https://a.example"}}, ""); fault.KindOf(err) != fault.Invalid {
		t.Errorf("unknown shop: %v", err)
	}
	list, err := h.store.Endpoints(t.Context(), []int64{h.shop})
	if err != nil || len(list) != hook.MaxEndpoints {
		t.Fatalf("%d, %v", len(list), err)
	}
	e := list[0]
	rotated, err := h.store.RotateSecret(t.Context(), e, []byte{0, 2}, time.Hour, e.Entry(operator, "rotate", nil, nil))
	if err != nil || len(rotated.Secrets) != 2 || rotated.Secrets[0][1] != 2 || rotated.Secrets[1][1] != 1 || rotated.OldUntil == nil {
		t.Errorf("%+v, %v", rotated, err)
	}
	if _, err := h.store.SaveEndpoint(t.Context(), e, hook.Input{URL: e.URL}, e.Entry(operator, "change", nil, nil)); !errors.Is(err, fault.ErrStale) {
		t.Errorf("an old version: %v", err)
	}
	h.Exec(`update hook_endpoints set old_until = now() - interval '1 second'`)
	if e := h.state(e); len(e.Secrets) != 1 || e.OldUntil != nil {
		t.Errorf("the old secret signs after its time: %+v", e)
	}
	h.happen(h.opened(h.shop))
	h.Must(h.store.RemoveEndpoint(t.Context(), e.ID, e.Entry(operator, "remove", nil, nil)))
	if _, err := h.store.Endpoint(t.Context(), e.ID); !errors.Is(err, hook.ErrNotFound) {
		t.Error(err)
	}
}

// TestListening returns a shop's events after a position in order, only of the requested types.
// Events are kept for the listener while no endpoint wants them.
func TestListening(t *testing.T) {
	h := newHooked(t)
	l := hook.Listener{Shop: h.shop, Name: "key:1"}
	if list, err := h.store.Listen(t.Context(), l, 0, 10); len(list) != 0 || err != nil {
		t.Fatalf("%v, %v", list, err)
	}
	for range 3 {
		h.happen(h.opened(h.shop), h.opened(11))
	}
	list, err := h.store.Listen(t.Context(), l, 0, 2)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	rest, err := h.store.Listen(t.Context(), l, list[1].ID, 10)
	if latest, _ := h.store.Latest(t.Context(), h.shop); err != nil || len(rest) != 1 || rest[0].ID != latest || !strings.Contains(rest[0].Payload, `"drop.opened"`) {
		t.Errorf("%v, %v", rest, err)
	}
	h.Exec(`update hook_listeners set until = now()`)
	h.happen(h.opened(h.shop))
	if n := h.Number(`select count(*) from hook_events where shop_number = $1`, h.shop); n != 3 {
		t.Errorf("%d events after the listener left", n)
	}
	if _, err := h.store.Listen(t.Context(), hook.Listener{Shop: 99, Name: "key:1"}, 0, 1); fault.KindOf(err) != fault.Invalid {
		t.Errorf("unknown shop: %v", err)
	}
}

// TestHooksAreRemoved after their retention, with everything that belongs to them.
func TestHooksAreRemoved(t *testing.T) {
	h := newHooked(t)
	e := h.endpoint()
	h.happen(h.opened(h.shop))
	h.answered(h.lease(e, 1), hook.Answer{Status: 500})
	h.happen(h.opened(h.shop))
	h.Exec(`update hook_deliveries set created_at = now() - interval '8 days' where id = (select min(id) from hook_deliveries)`)
	h.Exec(`update hook_events set stored_at = now() - interval '8 days' where id = (select min(id) from hook_events)`)
	h.Exec(`update hook_hours set hour = hour - interval '8 days'`)
	_, err := workdb.NewHousekeeping(h.DB).Clean(t.Context(), workdb.Retention{Hooks: 7 * 24 * time.Hour}, 0)
	h.Must(err)
	for table, want := range map[string]int64{"hook_events": 1, "hook_deliveries": 1, "hook_attempts": 0, "hook_hours": 0, "hook_endpoints": 1} {
		if n := h.Number(`select count(*) from ` + table); n != want {
			t.Errorf("%s: %d rows, want %d", table, n, want)
		}
	}
}
