package drops_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// traces counts the audit entries and events that changes leave.
func (w *fixture) traces() [2]int64 {
	w.Helper()
	return [2]int64{w.Number(`select count(*) from audit`), w.Number(`select count(*) from outbox`)}
}

// TestStockIsLoweredWhileClaimsGoOn: the stock never falls below the number of
// issued coupons, even if coupons were issued since the template was read.
func TestStockIsLoweredWhileClaimsGoOn(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	w.Exec(`update templates set issued = 3 where id = $1`, tpl.ID)
	for stock := int64(2); stock <= 3; stock++ {
		want := map[int64]error{2: template.ErrStockBelow}[stock]
		lowered := tpl
		lowered.Stock = stock
		saved, err := w.Templates.Save(t.Context(), template.Change{Template: lowered, Event: event.TemplateChanged,
			Entry: staff.Entry{Actor: pgtest.Actor, Action: "template.edit", ObjectKind: "template"}})
		if !errors.Is(err, want) || want == nil && saved.Stock != stock {
			t.Errorf("to %d: %v", stock, err)
		}
	}
}

func TestOfConcurrentEditsOneWins(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	before := w.traces()
	errs := pgtest.Together(16, func(i int) error {
		s := tpl.Spec
		s.Name = fmt.Sprintf("by %d", i)
		_, err := w.Service.Edit(context.Background(), pgtest.Actor, tpl.ID, template.Edition{Version: tpl.Version, Spec: s})
		return err
	})
	winner := slices.Index(errs, nil)
	for i, err := range errs {
		if i != winner && !errors.Is(err, fault.ErrStale) {
			t.Errorf("caller %d: %v", i, err)
		}
	}
	got, err := w.Templates.Template(t.Context(), tpl.ID)
	if err != nil || winner < 0 || got.Name != fmt.Sprintf("by %d", winner) || got.Version != tpl.Version+1 {
		t.Errorf("winner %d, stored %q version %d (%v)", winner, got.Name, got.Version, err)
	}
	if after := w.traces(); after != [2]int64{before[0] + 1, before[1] + 1} {
		t.Errorf("one edit left %v, before %v", after, before)
	}
}

// TestWhatIsNotSavedLeavesNoTrace: the audit entry and the event are stored in
// the transaction of the change.
func TestWhatIsNotSavedLeavesNoTrace(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	before, slots := w.traces(), w.Number(`select count(*) from slots where state = 'waiting'`)
	change := func(t template.Template) template.Change {
		return template.Change{Template: t, Schedule: template.CancelSlots, Event: event.TemplateCancelled,
			Entry: staff.Entry{Actor: pgtest.Actor, Action: "template.cancel", ObjectKind: "template", ObjectID: "1"}}
	}
	stale := tpl
	stale.Version--
	unknown := tpl
	unknown.ID = 1 << 40
	impossible := tpl
	impossible.Stored = "vanished"
	unwritable := change(tpl)
	unwritable.Entry.After = func() {} // no JSON
	for name, c := range map[string]template.Change{"stale": change(stale), "unknown": change(unknown), "impossible": change(impossible), "no entry": unwritable} {
		if _, err := w.Templates.Save(t.Context(), c); err == nil {
			t.Errorf("%s: saved", name)
		}
		if after := w.traces(); after != before {
			t.Errorf("%s: left %v, before %v", name, after, before)
		}
		if n := w.Number(`select count(*) from slots where state = 'waiting'`); n != slots {
			t.Errorf("%s: %d of %d slots wait", name, n, slots)
		}
	}
	s := pgtest.Spec(time.Hour)
	s.ShopNumber = 4711
	if _, err := w.Templates.Insert(t.Context(), template.Change{Template: template.Template{Spec: s}, Event: event.TemplateChanged,
		Entry: staff.Entry{Actor: pgtest.Actor, After: func() {}}}); err == nil {
		t.Error("inserted without an entry")
	}
	if n := w.Number(`select count(*) from templates where shop_number = 4711`) + w.Number(`select count(*) from shops where number = 4711`); n != 0 || w.traces() != before {
		t.Errorf("%d rows stay, traces %v", n, w.traces())
	}
}

func TestEveryChangeLeavesAnEntryAndAnEvent(t *testing.T) {
	w := newFixture(t)
	tpl := w.Draft(nil)
	w.Do(tpl, template.Publishing)
	moved, _ := w.Templates.Template(t.Context(), tpl.ID)
	moved.OpensAt, moved.ClosesAt = moved.OpensAt.Add(time.Minute), moved.ClosesAt.Add(time.Minute)
	_, err := w.Service.Edit(t.Context(), pgtest.Actor, tpl.ID, template.Edition{Version: moved.Version, Spec: moved.Spec})
	w.Must(err)
	w.Do(tpl, template.Pausing)
	w.Do(tpl, template.Resuming)
	w.Do(tpl, template.Closing)
	var actions, topics []string
	w.Must(w.SQL.QueryRow(t.Context(), `select array_agg(action order by id) from audit where object_kind = 'template' and object_id = $1::text`, fmt.Sprint(tpl.ID)).Scan(&actions))
	w.Must(w.SQL.QueryRow(t.Context(), `select array_agg(topic || ' ' || (payload->>'version') order by id) from outbox where payload->>'template_id' = $1::text`, fmt.Sprint(tpl.ID)).Scan(&topics))
	if want := []string{"template.create", "template.publish", "template.move", "template.pause", "template.resume", "template.close"}; !slices.Equal(actions, want) {
		t.Errorf("recorded %v", actions)
	}
	if want := []string{"template.changed.v1 1", "template.published.v1 2", "template.moved.v1 3", "template.changed.v1 4", "template.changed.v1 5",
		"template.closed.v1 6"}; !slices.Equal(topics, want) {
		t.Errorf("announced %v", topics)
	}
}

func TestCreatingTwiceWithOneKey(t *testing.T) {
	w := newFixture(t)
	ids := make([]int64, 16)
	for i, err := range pgtest.Together(len(ids), func(i int) error {
		tpl, err := w.Service.Create(context.Background(), pgtest.Actor, pgtest.Spec(time.Hour), "the key")
		ids[i] = tpl.ID
		return err
	}) {
		if err != nil {
			t.Errorf("caller %d: %v", i, err)
		}
	}
	if ids[0] == 0 || slices.Max(ids) != slices.Min(ids) || w.traces() != [2]int64{1, 1} || w.Number(`select count(*) from templates`) != 1 {
		t.Errorf("ids %v, traces %v", ids, w.traces())
	}
	changed := pgtest.Spec(3 * time.Hour)
	changed.Name = "Another"
	again, err := w.Service.Create(t.Context(), pgtest.Actor, changed, "the key")
	if err != nil || again.ID != ids[0] || again.Name != "Half price" {
		t.Errorf("a later call: %d %q %v", again.ID, again.Name, err)
	}
	for _, key := range []string{"another key", "", ""} {
		if other, err := w.Service.Create(t.Context(), pgtest.Actor, pgtest.Spec(time.Hour), key); err != nil || other.ID == ids[0] {
			t.Errorf("key %q: %d %v", key, other.ID, err)
		}
	}
}

func TestAnEditToAnUnknownShop(t *testing.T) {
	w := newFixture(t)
	tpl := w.Draft(nil)
	s := tpl.Spec
	s.ShopNumber = 4711
	_, err := w.Service.Edit(t.Context(), pgtest.Actor, tpl.ID, template.Edition{Version: tpl.Version, Spec: s})
	if f, ok := errors.AsType[*fault.Fields](err); !ok || f.List[0].Name != "shop_number" {
		t.Errorf("%v", err)
	}
	w.Must(w.Templates.ChangeShop(t.Context(), template.Shop{Number: 4711, Name: "Corner shop", Timezone: "Asia/Shanghai"}, staff.Entry{Actor: staff.System(), Action: "shop.save"}))
	got, err := w.Service.Edit(t.Context(), pgtest.Actor, tpl.ID, template.Edition{Version: tpl.Version, Spec: s})
	if err != nil || got.ShopName != "Corner shop" || got.ShopTimezone != "Asia/Shanghai" {
		t.Errorf("%+v %v", got, err)
	}
	w.Must(w.Templates.ChangeShop(t.Context(), template.Shop{Number: 4711, Name: "Corner shop 2", Timezone: "UTC"}, staff.Entry{Actor: staff.System(), Action: "shop.save"}))
	shops, err := w.Templates.Shops(t.Context())
	if want := []template.Shop{{Number: 10, Name: "Shop 10", Timezone: "UTC"}, {Number: 4711, Name: "Corner shop 2", Timezone: "UTC"}}; err != nil || !slices.Equal(shops, want) {
		t.Errorf("%v %v", shops, err)
	}
}

func TestNewestTemplate(t *testing.T) {
	w := newFixture(t)
	if id, err := w.Templates.NewestTemplate(t.Context()); id != 0 || err != nil {
		t.Errorf("%d %v", id, err)
	}
	tpl := w.Draft(nil)
	if id, err := w.Templates.NewestTemplate(t.Context()); id != tpl.ID || err != nil {
		t.Errorf("%d %v", id, err)
	}
	if _, err := w.Templates.Template(t.Context(), tpl.ID+1+rand.Int64N(1000)); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
