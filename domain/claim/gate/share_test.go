package gate_test

import (
	"context"
	"testing"
	"time"

	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
	"dropbell/musttest"
)

// TestGatesAreSharedOut: every gate has one keeper, all have about as many, and a
// process that leaves changes the keeper of its own gates only.
func TestGatesAreSharedOut(t *testing.T) {
	members := []string{"worker-a", "worker-b", "worker-c", "worker-d"}
	const gates = 4000
	kept := map[string]int{}
	for id := range int64(gates) {
		keeper := gate.KeeperOf(id, members)
		kept[keeper]++
		if other := gate.KeeperOf(id, []string{"worker-d", "worker-b", "worker-a", "worker-c"}); other != keeper {
			t.Fatalf("gate %d has two keepers: %s and %s", id, keeper, other)
		}
		if after := gate.KeeperOf(id, members[:3]); keeper != "worker-d" && after != keeper {
			t.Fatalf("gate %d went from %s to %s when another one left", id, keeper, after)
		}
	}
	for _, m := range members {
		if kept[m] < gates/8 || kept[m] > gates*3/8 {
			t.Errorf("%s keeps %d of %d", m, kept[m], gates)
		}
	}
	if gate.KeeperOf(1, nil) != "" {
		t.Error("nobody keeps a gate")
	}
}

// looked is a store and shards of gates in perfect order that counts the looks.
type looked struct {
	gate.Store
	gate.Shards
	now    time.Time
	opens  map[int64]time.Time
	stock  map[int64]int64
	looks  map[int64]int
	unread int64 // entries on the streams
}

func (l *looked) Unreconciled(context.Context, int64, int) (ids []int64, err error) {
	for id := range l.opens {
		ids = append(ids, id)
	}
	return ids, nil
}

func (l *looked) Plan(_ context.Context, id int64) (gate.Plan, error) {
	p := gate.Plan{Shards: 1, Epoch: 1, State: gate.Active, Parts: []gate.Part{{Epoch: 1, Allot: 10, Settled: 10 - l.stock[id] - l.unread}}, Now: l.now}
	p.Template = template.Template{ID: id, Stored: template.Published, Issued: 10 - l.stock[id] - l.unread}
	p.Template.Stock, p.Template.ClaimMode, p.Template.OpensAt = 10, template.Gate, l.opens[id]
	return p, nil
}

func (l *looked) Look(_ context.Context, id int64, _ int) ([]gate.Shard, error) {
	l.looks[id]++
	return []gate.Shard{{Epoch: 1, Open: true, Allot: 10, Stock: l.stock[id], Accepted: 10 - l.stock[id], Waiting: l.unread, Still: true, Clock: l.now}}, nil
}

// TestGatesRest: a gate is looked at every second while claims are accepted, every
// few seconds while none is, and every few minutes while its opening is far off. A
// call ends the rest. A gate of another process is not looked at.
func TestGatesRest(t *testing.T) {
	const open, soon, far, elsewhere = 1, 2, 3, 4
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l := &looked{now: start, looks: map[int64]int{}, stock: map[int64]int64{open: 10, soon: 10, far: 10, elsewhere: 10},
		opens: map[int64]time.Time{open: start.Add(-time.Hour), soon: start.Add(3 * time.Minute), far: start.Add(9 * time.Hour), elsewhere: start}}
	var unwritten []int64
	k := &gate.Keeper{Store: l, Shards: l, Now: func() time.Time { return l.now }, Mine: func(id int64) bool { return id != elsewhere },
		Unwritten: func(id int64) { unwritten = append(unwritten, id) }}
	pass := func(seconds int) map[int64]int {
		t.Helper()
		clear(l.looks)
		for range seconds {
			musttest.OK(t, k.Sweep(t.Context()))
			l.now = l.now.Add(time.Second)
		}
		return l.looks
	}
	pass(3)
	if got := pass(100); got[open] != 20 || got[soon] > 2 || got[far] > 1 || got[elsewhere] != 0 {
		t.Errorf("looks in 100 quiet seconds: %v", got)
	}
	pass(20) // the opening of the second gate is a minute away
	if got := pass(100); got[open] != 20 || got[soon] != 20 || got[far] > 1 {
		t.Errorf("looks around an opening: %v", got)
	}
	k.Call(far)
	if got := pass(1); got[far] != 1 {
		t.Errorf("looks after a call: %v", got)
	}
	if err := k.Rescue(t.Context(), far); err != nil || l.looks[far] != 2 {
		t.Errorf("a claim found no shard: %v %v", l.looks, err)
	}
	if err := k.Rescue(t.Context(), elsewhere); err != nil || l.looks[elsewhere] != 0 {
		t.Errorf("a claim found no shard of another process: %v %v", l.looks, err)
	}
	clear(l.looks)
	for range 10 {
		l.stock[open]--
		musttest.OK(t, k.Sweep(t.Context()))
		l.now = l.now.Add(time.Second)
	}
	if l.looks[open] < 5 {
		t.Errorf("%d looks in 10 busy seconds", l.looks[open])
	}
	if len(unwritten) != 0 {
		t.Errorf("the writer was called about %v", unwritten)
	}
	l.unread = 1
	k.CallAll()
	pass(1)
	if len(unwritten) == 0 {
		t.Error("nobody was told of claims that wait to be written")
	}
}
