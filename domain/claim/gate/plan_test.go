package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
)

// standing returns a gate of two shards in perfect order, and a look at them.
func standing() (gate.Plan, []gate.Shard) {
	plan := gate.Plan{Shards: 2, Epoch: 3, State: gate.Active, Base: 10,
		Parts: []gate.Part{{Epoch: 3, Allot: 45, Settled: 5, Refused: 1}, {Epoch: 3, Allot: 45, Settled: 0}}}
	plan.Template = template.Template{ID: 7, Stored: template.Published, Version: 4, Issued: 14}
	plan.Template.Stock, plan.Template.ClaimMode = 100, template.Gate
	return plan, []gate.Shard{
		{Number: 0, Epoch: 3, Open: true, Version: 4, Allot: 45, Stock: 29, Accepted: 7, Returned: 1, Out: 10, Still: true, Gone: map[int]int64{1: 10}},
		{Number: 1, Epoch: 3, Open: true, Version: 4, Allot: 45, Stock: 55, In: 10, Begun: 1, Done: 1, Still: true},
	}
}

// openDoors gives the plan two doors that are open. The first has all coupons but none is left for the second.
func openDoors(p *gate.Plan) {
	p.Template.Doors = []template.Door{{Share: 100, LeadMinutes: 10}, {}}
	p.Template.OpensAt, p.Now = p.Now, p.Now.Add(time.Minute)
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*gate.Plan, []gate.Shard)
		want   gate.Step
		reason string
		shards string
	}{
		{"in order", func(*gate.Plan, []gate.Shard) {}, gate.Rest, "", ""},
		{"none yet", func(p *gate.Plan, _ []gate.Shard) { *p = gate.Plan{Template: p.Template} }, gate.Build, gate.ReasonNew, ""},
		{"none yet and cancelled", func(p *gate.Plan, _ []gate.Shard) {
			*p = gate.Plan{Template: p.Template}
			p.Template.Stored = template.Cancelled
		}, gate.Rest, "", ""},
		{"none yet and a draft", func(p *gate.Plan, _ []gate.Shard) {
			*p = gate.Plan{Template: p.Template}
			p.Template.Stored = template.Draft
		}, gate.Rest, "", ""},
		{"none needed", func(p *gate.Plan, _ []gate.Shard) {
			*p = gate.Plan{Template: p.Template}
			p.Template.ClaimMode = template.Durable
		}, gate.Rest, "", ""},
		{"being built", func(p *gate.Plan, _ []gate.Shard) { p.State = gate.Building }, gate.Build, gate.ReasonUnfinished, ""},
		{"being built for a restored database", func(p *gate.Plan, _ []gate.Shard) { p.State, p.Reason = gate.Building, gate.ReasonRestored }, gate.Build, gate.ReasonRestored, ""},
		{"a shard that is being built for a restored database", func(p *gate.Plan, s []gate.Shard) {
			p.Reason, p.Parts[1].Epoch, s[1].Epoch, s[1].Open = gate.ReasonRestored, 4, 4, false
		}, gate.BuildShards, gate.ReasonRestored, "[1]"},
		{"a shard is gone, after a restored database", func(p *gate.Plan, s []gate.Shard) { p.Reason, s[1] = gate.ReasonRestored, gate.Shard{Number: 1} }, gate.BuildShards, gate.ReasonLost, "[1]"},
		{"retired", func(p *gate.Plan, s []gate.Shard) { p.State, s[0] = gate.Retired, gate.Shard{} }, gate.Rest, "", ""},
		{"a shard is gone", func(_ *gate.Plan, s []gate.Shard) { s[1] = gate.Shard{Number: 1} }, gate.BuildShards, gate.ReasonLost, "[1]"},
		{"all shards are gone", func(_ *gate.Plan, s []gate.Shard) { s[0], s[1] = gate.Shard{}, gate.Shard{Number: 1} }, gate.Build, gate.ReasonLost, ""},
		{"two of three shards are gone", func(p *gate.Plan, s []gate.Shard) {
			p.Shards, p.Parts = 3, append(p.Parts, gate.Part{Epoch: 3})
			s[0], s[1] = gate.Shard{}, gate.Shard{Number: 1}
		}, gate.BuildShards, gate.ReasonLost, "[0 1]"},
		{"a shard that is being filled", func(_ *gate.Plan, s []gate.Shard) { s[1].Filling = true }, gate.Load, "", ""},
		{"a shard that is being filled, and more stock", func(p *gate.Plan, s []gate.Shard) { s[1].Filling, p.Template.Stock = true, 101 }, gate.Fill, "", ""},
		{"a door opened, and its share is not given", func(p *gate.Plan, s []gate.Shard) { openDoors(p); s[0].Shares = 1 }, gate.Fill, "", ""},
		{"a door opened, and its share was given", func(p *gate.Plan, s []gate.Shard) { openDoors(p); s[0].Shares, s[1].Shares = 1, 1 }, gate.Rest, "", ""},
		{"a shard that lacks its users", func(_ *gate.Plan, s []gate.Shard) { s[1].Broken = true }, gate.BuildShards, gate.ReasonLost, "[1]"},
		{"a shard that was built alone", func(p *gate.Plan, s []gate.Shard) { p.Epoch, p.Parts[1].Epoch, s[1].Epoch = 4, 4, 4 }, gate.Rest, "", ""},
		{"built anew in the meantime", func(_ *gate.Plan, s []gate.Shard) { s[0].Epoch, s[1].Open = 4, false }, gate.Rest, "", ""},
		{"a shard of another epoch", func(_ *gate.Plan, s []gate.Shard) { s[0].Epoch = 2 }, gate.BuildShards, gate.ReasonLost, "[0]"},
		{"a fenced shard", func(_ *gate.Plan, s []gate.Shard) { s[0].Open = false }, gate.BuildShards, gate.ReasonLost, "[0]"},
		{"a shard that was given too much", func(_ *gate.Plan, s []gate.Shard) { s[0].Allot++ }, gate.BuildShards, gate.ReasonExcess, "[0]"},
		{"more on the shards than there is", func(p *gate.Plan, _ []gate.Shard) { p.Base++ }, gate.Build, gate.ReasonExcess, ""},
		{"more on the shards since one was built", func(p *gate.Plan, s []gate.Shard) { p.Base++; p.Parts[1].Epoch++; s[1].Epoch++ }, gate.BuildShards, gate.ReasonExcess, "[1]"},
		{"more although it was built once more", func(p *gate.Plan, s []gate.Shard) {
			p.Base++
			p.Reason = gate.ReasonExcess
			p.Parts[1].Epoch++
			s[1].Epoch++
		}, gate.Build, gate.ReasonExcess, ""},
		{"more on them than there was, in the end", func(p *gate.Plan, _ []gate.Shard) {
			p.Template.Stored, p.Base = template.Closed, p.Base+1
		}, gate.Rest, "", ""},
		{"an older version", func(_ *gate.Plan, s []gate.Shard) { s[1].Version = 3 }, gate.SetTerms, "", ""},
		{"a newer version", func(_ *gate.Plan, s []gate.Shard) { s[1].Version = 5 }, gate.Rest, "", ""},
		{"more stock", func(p *gate.Plan, _ []gate.Shard) { p.Template.Stock++ }, gate.Fill, "", ""},
		{"stock not handed over", func(_ *gate.Plan, s []gate.Shard) { s[0].Allot-- }, gate.Fill, "", ""},
		{"ended, not all written", func(p *gate.Plan, _ []gate.Shard) { p.Template.Stored = template.Closed }, gate.Rest, "", ""},
		{"ended, an entry is left", func(p *gate.Plan, s []gate.Shard) {
			p.Template.Stored, p.Parts[0].Settled, s[0].Waiting = template.Closed, 7, 1
		}, gate.Rest, "", ""},
		{"ended and written", func(p *gate.Plan, _ []gate.Shard) { p.Template.Stored, p.Parts[0].Settled = template.Closed, 7 }, gate.Clear, "", ""},
		{"more stock after the end", func(p *gate.Plan, _ []gate.Shard) {
			p.Template.Stored, p.Template.Stock = template.Closed, 200
		}, gate.Rest, "", ""},
	} {
		plan, list := standing()
		c.change(&plan, list)
		need := plan.Next(list)
		if need.Step != c.want || need.Reason != c.reason || strings.TrimSuffix(fmt.Sprint(need.Shards), "[]") != c.shards {
			t.Errorf("%s: %+v, want %q because %q", c.name, need, c.want, c.reason)
		}
	}
}

func TestAstray(t *testing.T) {
	plan, list := standing()
	plan.Now = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	took := 40 * time.Millisecond
	for off, want := range map[time.Duration]bool{
		0: false, took: false, -200 * time.Millisecond: false, took + 200*time.Millisecond: false,
		-300 * time.Millisecond: true, took + 300*time.Millisecond: true, time.Hour: true,
	} {
		list[0].Clock, list[1].Clock = plan.Now, plan.Now.Add(off)
		if got := plan.ClockSkewed(list, took); got != want {
			t.Errorf("off by %v: astray %v, want %v", off, got, want)
		}
	}
	list[1].Clock, list[1].Moved = plan.Now, true
	if !plan.ClockSkewed(list, took) {
		t.Error("the clock of a server that was never compared is believed")
	}
	list[1].Open = false // which will be told before it opens
	if list[1].Clock = plan.Now.Add(time.Hour); plan.ClockSkewed(list, took) {
		t.Error("a fenced shard is astray")
	}
}

func TestShareHandsOutTheWholeStock(t *testing.T) {
	plan, _ := standing()
	plan.Template.Stock = 103
	if got := fmt.Sprint(plan.Share()); got != "[47 46]" {
		t.Errorf("shares %s", got)
	}
	plan.Template.Stock = 50 // which cannot be; nothing is taken away
	if got := fmt.Sprint(plan.Share()); got != "[45 45]" {
		t.Errorf("shares %s", got)
	}
}

func TestLedgerShowsEveryKindOfDifference(t *testing.T) {
	plan, list := standing()
	want := gate.Ledger{Total: 100, OnSale: 84, Writing: 2, Issued: 14}
	if got := plan.Ledger(list); got != want {
		t.Errorf("in order: %+v, want %+v", got, want)
	}
	for name, change := range map[string]func(*gate.Plan, []gate.Shard){
		"a coupon vanished from a shard":    func(_ *gate.Plan, s []gate.Shard) { s[0].Stock-- },
		"a coupon appeared on a shard":      func(_ *gate.Plan, s []gate.Shard) { s[1].Stock++ },
		"one was issued behind the gate":    func(p *gate.Plan, _ []gate.Shard) { p.Template.Issued++ },
		"one was settled and never issued":  func(p *gate.Plan, _ []gate.Shard) { p.Parts[0].Settled++ },
		"more was settled than accepted":    func(p *gate.Plan, s []gate.Shard) { s[0].Accepted, s[0].Stock = 4, 32 },
		"one was lost on its way":           func(_ *gate.Plan, s []gate.Shard) { s[1].In, s[1].Stock = 9, 54 },
		"one arrived that nobody had taken": func(_ *gate.Plan, s []gate.Shard) { s[1].In, s[1].Stock = 11, 56 },
	} {
		plan, list := standing()
		change(&plan, list)
		if got := plan.Ledger(list); got.Difference == 0 {
			t.Errorf("%s and nobody noticed: %+v", name, got)
		}
	}
}

// fakeGate is a gate whose every step can be stopped between any two others.
type fakeGate struct {
	plan    gate.Plan
	shards  []gate.Shard
	moves   []struct{ from, amount int64 } // per receiver, of the move under way; from < 0: none
	waiting [][]bool                       // accepted, per shard: false = decided by the database, not given back
	refused []int64                        // decided as refused, not given back
}

func newFakeGate(stockLeft int64, shards int) *fakeGate {
	w := &fakeGate{plan: gate.Plan{Shards: shards, Epoch: 1, State: gate.Active, Parts: make([]gate.Part, shards)},
		shards: make([]gate.Shard, shards), moves: make([]struct{ from, amount int64 }, shards),
		waiting: make([][]bool, shards), refused: make([]int64, shards)}
	w.plan.Template.Stored, w.plan.Template.Stock = template.Published, stockLeft
	for i := range shards {
		w.plan.Parts[i].Epoch = 1
		w.shards[i] = gate.Shard{Number: i, Epoch: 1, Open: true, Gone: map[int]int64{}}
		w.moves[i].from = -1
	}
	return w
}

// step does one thing that one machine does by itself at one instant.
func (w *fakeGate) step(t *rapid.T) {
	i := rapid.IntRange(0, w.plan.Shards-1).Draw(t, "shard")
	s := &w.shards[i]
	switch rapid.SampledFrom([]string{"claim", "claim", "claim", "begin", "take", "put", "write", "refuse", "give back", "raise", "allot", "fill"}).Draw(t, "step") {
	case "claim":
		if s.Stock > 0 {
			s.Stock--
			s.Accepted++
			w.waiting[i] = append(w.waiting[i], true)
		}
	case "begin":
		if s.Begun == s.Done {
			s.Begun++
		}
	case "take":
		if from := int64(rapid.IntRange(0, w.plan.Shards-1).Draw(t, "donor")); s.Begun > s.Done && w.moves[i].from < 0 && from != int64(i) {
			amount := (w.shards[from].Stock + 1) / 2
			w.shards[from].Stock -= amount
			w.shards[from].Out += amount
			w.shards[from].Gone[i] += amount
			w.moves[i].from, w.moves[i].amount = from, amount
		}
	case "put":
		if w.moves[i].from >= 0 {
			s.Stock += w.moves[i].amount
			s.In += w.moves[i].amount
			s.Done, w.moves[i].from = s.Begun, -1
		}
	case "write", "refuse":
		if len(w.waiting[i]) == 0 {
			return
		}
		w.waiting[i] = w.waiting[i][1:]
		w.plan.Parts[i].Settled++
		if rapid.Bool().Draw(t, "refused") {
			w.plan.Parts[i].Refused++
			w.refused[i]++
		} else {
			w.plan.Template.Issued++
		}
	case "give back":
		if w.refused[i] > 0 {
			w.refused[i]--
			s.Stock++
			s.Returned++
		}
	case "raise":
		w.plan.Template.Stock += rapid.Int64Range(1, 9).Draw(t, "more")
	case "allot":
		for j, allot := range w.plan.Share() {
			w.plan.Parts[j].Allot = allot
		}
	case "fill":
		if more := w.plan.Parts[i].Allot - s.Allot; more > 0 {
			s.Stock += more
			s.Allot += more
		}
	}
}

// look reads plan and shards one after the other while the world goes on.
func (w *fakeGate) look(t *rapid.T) (gate.Plan, []gate.Shard) {
	pass := func() {
		for range rapid.IntRange(0, 3).Draw(t, "meanwhile") {
			w.step(t)
		}
	}
	plan := w.plan
	plan.Parts = append([]gate.Part(nil), w.plan.Parts...)
	pass()
	before := append([]gate.Shard(nil), w.shards...)
	list := make([]gate.Shard, len(w.shards))
	for i := range w.shards {
		pass()
		list[i] = w.shards[i]
		list[i].Gone = map[int]int64{}
		for to, n := range w.shards[i].Gone {
			list[i].Gone[to] = n
		}
	}
	pass()
	for i := range list {
		list[i].Still = before[i].Begun == before[i].Done && before[i].Begun == w.shards[i].Begun
	}
	return plan, list
}

// TestLedgerIsExactWheneverItIsRead: no coupon is missing or counted twice,
// whatever happens between the reads of the ledger's parts.
func TestLedgerIsExactWheneverItIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newFakeGate(rapid.Int64Range(0, 30).Draw(t, "stock"), rapid.IntRange(1, 4).Draw(t, "shards"))
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			w.step(t)
			plan, list := w.look(t)
			l := plan.Ledger(list)
			if l.Difference != 0 || l.Total != l.OnSale+l.Writing+l.Issued {
				t.Fatalf("%+v\n%+v\n%+v", l, plan, list)
			}
		}
	})
}

// TestSoldOutIsNeverWrong: if two looks call a drop sold out, the drop was sold out
// at one instant between them.
func TestSoldOutIsNeverWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newFakeGate(rapid.Int64Range(0, 6).Draw(t, "stock"), rapid.IntRange(1, 3).Draw(t, "shards"))
		left := func() (n int64) {
			for i, s := range w.shards {
				n += s.Stock
				if w.moves[i].from >= 0 {
					n += w.moves[i].amount
				}
			}
			return n
		}
		least := left()
		observe := func() []gate.Shard {
			list := make([]gate.Shard, len(w.shards))
			for i := range w.shards {
				for range rapid.IntRange(0, 2).Draw(t, "meanwhile") {
					w.step(t)
					least = min(least, left())
				}
				list[i] = w.shards[i]
			}
			return list
		}
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			w.step(t)
			least = left()
			if first := observe(); gate.SoldOut(first, observe()) && least > 0 {
				t.Fatalf("called sold out, and there were never less than %d", least)
			}
		}
	})
}

// TestLeftIsNeverWrong: if a look shows that coupons are left, coupons were left at
// one instant of the look.
func TestLeftIsNeverWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newFakeGate(rapid.Int64Range(0, 6).Draw(t, "stock"), rapid.IntRange(1, 3).Draw(t, "shards"))
		left := func() (n int64) {
			for i, s := range w.shards {
				n += s.Stock
				if w.moves[i].from >= 0 {
					n += w.moves[i].amount
				}
			}
			return n
		}
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			w.step(t)
			most := left()
			seen := make([]gate.Shard, len(w.shards))
			for i := range w.shards {
				for range rapid.IntRange(0, 2).Draw(t, "meanwhile") {
					w.step(t)
					most = max(most, left())
				}
				seen[i] = w.shards[i]
			}
			if gate.Left(seen) && most == 0 {
				t.Fatalf("called left, and there never was anything: %+v", seen)
			}
		}
	})
}

func TestAShardThatIsBeingBuiltTellsNothing(t *testing.T) {
	empty := gate.Shard{Epoch: 1, Open: true, Allot: 1, Accepted: 1}
	building := gate.Shard{Epoch: 2, Allot: 1}
	if seen := []gate.Shard{empty, building}; gate.Left(seen) || gate.SoldOut(seen, seen) {
		t.Error("something is known of a shard that is being built")
	}
	full := gate.Shard{Epoch: 1, Open: true, Allot: 2, Stock: 2}
	if !gate.Left([]gate.Shard{building, full}) {
		t.Error("the stock of an open shard is not seen beside one that is being built")
	}
	if !gate.SoldOut([]gate.Shard{empty}, []gate.Shard{empty}) || gate.Left([]gate.Shard{empty}) {
		t.Error("everything is taken")
	}
}
