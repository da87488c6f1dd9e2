package task_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"dropbell/domain/task"
)

var due = time.Date(2026, 11, 20, 11, 55, 0, 0, time.UTC)

// TestPayloadsKeepTheirMeaning: a queue holds tasks across upgrades, since timers
// are queued days ahead, so payloads must keep their meaning.
func TestPayloadsKeepTheirMeaning(t *testing.T) {
	const id = 9007199254740993 // 2^53+1: as a number it would lose its last digit
	for name, made := range map[string]task.Task{
		task.FireSlot:          task.Fire(id, due),
		task.Watch:             task.WatchSlot(id, due),
		task.WatchMany:         task.WatchSlots([]int64{id, 7}, due),
		task.Announcing:        task.Announce(id),
		task.StartCampaign:     task.Start(id, due),
		task.CutCampaign:       task.Cut(id),
		task.Test:              task.TestChannel(id),
		task.SendCode:          task.SendPhoneCode(id),
		task.Deliver:           task.Run(id, "email", 3, due),
		task.Deliver + ".wake": task.Wake("sms", 2, "b"),
		task.CleanUp:           task.House(task.CleanUp, "2026-11-20"),
		task.Recount:           task.House(task.Recount, "2026-11-20T11"),
		task.WorkJob:           task.RunJob(id),
	} {
		raw, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := json.MarshalIndent(made.Payload, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.TrimSpace(raw), got) {
			t.Errorf("%s is now queued as\n%s\nand was queued as\n%s", name, got, raw)
		}
		back := reflect.New(reflect.TypeOf(made.Payload))
		if err := json.Unmarshal(raw, back.Interface()); err != nil {
			t.Errorf("%s cannot be read any more: %v", name, err)
		}
		if !reflect.DeepEqual(back.Elem().Interface(), made.Payload) {
			t.Errorf("%s is read as %+v, want %+v", name, back.Elem().Interface(), made.Payload)
		}
	}
}

// TestIdentity: two tasks with one id are one task, and only tasks for the same
// work share an id.
func TestIdentity(t *testing.T) {
	same := [][2]task.Task{
		{task.Fire(7, due), task.Fire(7, due.Add(time.Hour))}, // a slot's row has one timer
		{task.WatchSlot(7, due), task.WatchSlot(7, due.Add(999*time.Millisecond))},
		{task.WatchSlots([]int64{7, 8}, due), task.WatchSlots([]int64{7, 8}, due.Add(999*time.Millisecond))},
		{task.Run(7, "email", 1, due), task.Run(7, "email", 1, time.Time{})},
		{task.House(task.CleanUp, "d1"), task.House(task.CleanUp, "d1")},
		{task.Wake("email", 0, "b"), task.Wake("email", 0, "b")},
	}
	for _, p := range same {
		if p[0].ID() != p[1].ID() || p[0].Queue != p[1].Queue {
			t.Errorf("%s and %s are the same work", p[0].ID(), p[1].ID())
		}
	}
	ids := map[string]bool{}
	for _, other := range []task.Task{
		task.Fire(7, due), task.Fire(8, due), task.Fire(7, due).Again("1"), task.Fire(7, due).Again("2"), task.Fire(71, due),
		task.WatchSlot(7, due), task.WatchSlot(7, due.Add(time.Second)), task.WatchSlot(8, due),
		task.Start(7, due), task.Start(8, due), task.Start(7, due).Again("1"), task.Cut(7), task.Cut(8),
		task.Announce(7), task.Announce(8), task.Announce(7).Again("1"),
		task.Run(7, "email", 1, due), task.Run(7, "email", 2, due), task.Run(8, "email", 1, due), task.Run(71, "email", 1, due),
		task.Wake("email", 0, "b"), task.Wake("email", 1, "b"), task.Wake("email", 0, "c"),
		task.RunJob(7), task.RunJob(8), task.RunJob(7).Again("1"),
		task.House(task.CleanUp, "d1"), task.House(task.Recount, "d1"), task.House(task.CleanUp, "d2"),
	} {
		if id := other.Queue + " " + other.ID(); ids[id] {
			t.Errorf("two tasks are called %s", id)
		} else {
			ids[id] = true
		}
	}
}

func TestEveryTaskSaysWhereWhenAndHowLong(t *testing.T) {
	for _, c := range []struct {
		made  task.Task
		queue string
		at    time.Time
	}{
		// The timer wakes a little early and then waits for the database's clock.
		{task.Fire(7, due), "timers", due.Add(-1500 * time.Millisecond)},
		{task.Fire(7, time.Time{}), "timers", time.Time{}},
		{task.Fire(7, time.Time{}).Again("x"), "timers", time.Time{}},
		{task.WatchSlot(7, due), "timers", due},
		{task.Start(7, due), "timers", due.Add(-1500 * time.Millisecond)},
		{task.Cut(7), "timers", time.Time{}},
		{task.Announce(7), "timers", time.Time{}},
		{task.Run(7, "webpush", 1, due), "deliver-webpush", due},
		{task.Run(7, "app", 0, time.Time{}), "deliver-app", time.Time{}},
		{task.Wake("sms", 0, "b"), "deliver-sms", time.Time{}},
		{task.House(task.Recount, "b"), "housekeeping", time.Time{}},
		{task.RunJob(7), "jobs", time.Time{}},
	} {
		if c.made.Queue != c.queue || !c.made.At.Equal(c.at) || c.made.At.IsZero() != c.at.IsZero() {
			t.Errorf("%s: queue %s at %v, want %s at %v", c.made.ID(), c.made.Queue, c.made.At, c.queue, c.at)
		}
		if c.made.Timeout < time.Second {
			t.Errorf("%s: a time-out of %v is none", c.made.ID(), c.made.Timeout)
		}
	}
}
