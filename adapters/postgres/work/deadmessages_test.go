package work_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

const someID = "0b6f2c1e-8f0a-4c59-9d61-2f4f4d0f7a11"

func poisoned(id, handler string, payload []byte) staff.DeadMessage {
	return staff.DeadMessage{MessageID: id, Topic: event.TemplateChanged, Handler: handler, Reason: "no such column", Payload: payload}
}

// open returns the messages that were neither replayed nor discarded.
func open(t *testing.T, dead workdb.DeadMessages) []staff.DeadMessage {
	t.Helper()
	list, err := dead.Open(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestKeepADeadMessageOncePerHandler(t *testing.T) {
	w := newFixture(t)
	dead := workdb.NewDeadMessages(w.DB)
	again := poisoned(someID, "timers", []byte(`{"template_id": "1"}`))
	for range 3 {
		w.Must(dead.Keep(t.Context(), again))
	}
	again.Reason = "still no such column"
	w.Must(dead.Keep(t.Context(), again))
	w.Must(dead.Keep(t.Context(), poisoned(someID, "counters", []byte(`{}`))))
	list := open(t, dead)
	if len(list) != 2 || list[0].Handler != "counters" || list[1].Reason != "still no such column" || list[1].At.IsZero() ||
		list[1].Topic != event.TemplateChanged || list[1].MessageID != someID || !bytes.Equal(list[1].Payload, again.Payload) {
		t.Fatalf("%+v", list)
	}
	page, err := dead.Open(t.Context(), 0, 1)
	if err != nil || len(page) != 1 || page[0].ID != list[0].ID {
		t.Errorf("the first page: %+v %v", page, err)
	}
	page, err = dead.Open(t.Context(), page[0].ID, 1)
	if err != nil || len(page) != 1 || page[0].ID != list[1].ID {
		t.Errorf("the second page: %+v %v", page, err)
	}
}

// TestAnythingCanBeKept: a message that cannot be kept would be delivered for ever.
func TestAnythingCanBeKept(t *testing.T) {
	w := newFixture(t)
	dead := workdb.NewDeadMessages(w.DB)
	m := poisoned("not a uuid \x00\xff", "timers", []byte{0, 0xff, 1})
	m.Reason, m.Topic = strings.Repeat("cannot read \x00\xff 券", 10_000), "foreign\x00topic"
	w.Must(dead.Keep(t.Context(), m))
	list := open(t, dead)
	if len(list) != 1 || !bytes.Equal(list[0].Payload, m.Payload) || !strings.HasPrefix(list[0].Reason, "cannot read ") ||
		utf8.RuneCountInString(list[0].Reason) > 4000 || !strings.HasPrefix(list[0].MessageID, "not a uuid") {
		t.Errorf("%+v", list)
	}
}

func TestRequeue(t *testing.T) {
	w := newFixture(t)
	dead := workdb.NewDeadMessages(w.DB)
	w.Must(dead.Keep(t.Context(), poisoned(someID, "timers", []byte(`{"template_id": "1"}`))))
	w.Must(dead.Keep(t.Context(), poisoned("1700-0", "timers", []byte(`{"template_id": "2"}`))))
	for _, m := range open(t, dead) {
		w.Must(dead.Requeue(t.Context(), pgtest.Operator, m.ID))
		for name, err := range map[string]error{"requeue": dead.Requeue(t.Context(), pgtest.Operator, m.ID), "discard": dead.Discard(t.Context(), pgtest.Operator, m.ID)} {
			if !errors.Is(err, staff.ErrNoDeadMessage) || fault.KindOf(err) != fault.NotFound {
				t.Errorf("%s afterwards: %v", name, err)
			}
		}
	}
	if n := w.Number(`select count(*) from outbox where topic = $1 and (event_id = $2) = (payload->>'template_id' = '1')`, event.TemplateChanged, someID); n != 2 || len(open(t, dead)) != 0 {
		t.Errorf("%d announced, %d open", n, len(open(t, dead)))
	}
	if n := w.Number(`select count(*) from audit where action = 'dead_message.requeue' and object_kind = 'dead_message' and actor = 'staff:3 Olga'`); n != 2 {
		t.Errorf("%d entries", n)
	}
	// It fails again, and is there again.
	w.Must(dead.Keep(t.Context(), poisoned(someID, "timers", []byte(`{}`))))
	if list := open(t, dead); len(list) != 1 || list[0].MessageID != someID {
		t.Errorf("%+v", list)
	}
}

func TestDiscard(t *testing.T) {
	w := newFixture(t)
	dead := workdb.NewDeadMessages(w.DB)
	w.Must(dead.Keep(t.Context(), poisoned(someID, "timers", []byte(`{}`))))
	id := open(t, dead)[0].ID
	w.Must(dead.Discard(t.Context(), pgtest.Operator, id))
	for name, err := range map[string]error{"requeue": dead.Requeue(t.Context(), pgtest.Operator, id), "discard": dead.Discard(t.Context(), pgtest.Operator, id),
		"unknown": dead.Discard(t.Context(), pgtest.Operator, id+1)} {
		if !errors.Is(err, staff.ErrNoDeadMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := w.Number(`select count(*) from outbox`); n != 0 || len(open(t, dead)) != 0 || w.Number(`select count(*) from audit`) != 1 {
		t.Errorf("%d announced, %d open", n, len(open(t, dead)))
	}
}

// TestWhatIsNoEventCannotBeSentAgain, stays where it is and can be discarded.
func TestWhatIsNoEventCannotBeSentAgain(t *testing.T) {
	w := newFixture(t)
	dead := workdb.NewDeadMessages(w.DB)
	for name, payload := range map[string]string{"no JSON": "{", "no text": "\xff\x00", "NUL in text": `{"a": "\u0000"}`, "nothing": ""} {
		w.Must(dead.Keep(t.Context(), poisoned(name, "timers", []byte(payload))))
	}
	// The form of a UUID and none.
	w.Must(dead.Keep(t.Context(), poisoned(strings.Repeat("-", 36), "timers", []byte(`{}`))))
	for _, m := range open(t, dead) {
		if err := dead.Requeue(t.Context(), pgtest.Operator, m.ID); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", m.MessageID, err)
		}
	}
	if n := len(open(t, dead)); n != 5 || w.Number(`select count(*) from outbox`)+w.Number(`select count(*) from audit`) != 0 {
		t.Errorf("%d stay", n)
	}
	for _, m := range open(t, dead) {
		w.Must(dead.Discard(t.Context(), pgtest.Operator, m.ID))
	}
}

func TestOneOfSeveralRequeues(t *testing.T) {
	w := newFixture(t)
	dead := workdb.NewDeadMessages(w.DB)
	w.Must(dead.Keep(t.Context(), poisoned(someID, "timers", []byte(`{}`))))
	id := open(t, dead)[0].ID
	won := 0
	for _, err := range pgtest.Together(8, func(int) error { return dead.Requeue(context.Background(), pgtest.Operator, id) }) {
		if err == nil {
			won++
		} else if !errors.Is(err, staff.ErrNoDeadMessage) {
			t.Errorf("%v", err)
		}
	}
	if n := w.Number(`select count(*) from outbox`); won != 1 || n != 1 {
		t.Errorf("%d won, %d announced", won, n)
	}
}
