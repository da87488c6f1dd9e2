package chaos_test

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestTheCheckerFindsWrongHistories: a check that cannot fail proves nothing. Each of these
// histories breaks one promise by one operation, and is right without this operation.
func TestTheCheckerFindsWrongHistories(t *testing.T) {
	op := func(in any, call int64, out reported, ret int64) porcupine.Operation {
		return porcupine.Operation{Input: in, Call: call, Output: out, Return: ret}
	}
	ok := reported{code: okay}
	buy := func(user int) claimStep { return claimStep{verb: "claim", user: user} }
	enter := func(user int, ticket uint64, call int64) porcupine.Operation {
		return op(entryStep{"enter", user}, call, reported{code: okay, value: ticket}, call+1)
	}
	sealed := func(call int64, tickets ...uint64) porcupine.Operation {
		return op(entryStep{verb: "close"}, call, reported{code: okay, list: tickets}, call+1)
	}
	wait := func(verb string, user int, now place, call int64) porcupine.Operation {
		return op(waitStep{verb: verb, user: user}, call, reported{code: okay, value: uint64(now)}, call+1)
	}
	raise := func(call int64) porcupine.Operation {
		return op(waitStep{verb: "raise", stock: soldFirst + 1}, call, ok, call+1)
	}
	reserve := func(bits uint64) bitmapStep { return bitmapStep{verb: "reserve", bits: bits} }
	for name, c := range map[string]struct {
		model porcupine.NondeterministicModel
		right []porcupine.Operation
		wrong porcupine.Operation
	}{
		"oversold by one": {claimModel(1, 1), []porcupine.Operation{op(buy(0), 1, ok, 2)}, op(buy(1), 3, ok, 4)},
		"over the limit":  {claimModel(5, 1), []porcupine.Operation{op(buy(0), 1, ok, 2)}, op(buy(0), 3, ok, 4)},
		"sold out too early": {claimModel(2, 1), []porcupine.Operation{op(buy(0), 1, ok, 2)},
			op(buy(1), 3, reported{code: "sold_out"}, 4)},
		"claimed through a pause": {claimModel(5, 1), []porcupine.Operation{op(claimStep{verb: "pause"}, 1, ok, 2)}, op(buy(0), 3, ok, 4)},
		"refused after the pause": {claimModel(5, 1), []porcupine.Operation{op(claimStep{verb: "pause"}, 1, ok, 2),
			op(claimStep{verb: "resume"}, 3, ok, 4)}, op(buy(0), 5, reported{code: "template_not_open"}, 6)},
		"a lost bit": {bitmapModel(), []porcupine.Operation{op(reserve(1), 1, reported{code: okay, value: 1}, 4), op(reserve(2), 2, reported{code: okay, value: 3}, 3)},
			op(bitmapStep{verb: "read"}, 5, reported{code: okay, value: 2}, 6)},
		"reserved twice": {bitmapModel(), []porcupine.Operation{op(reserve(1), 1, reported{code: okay, value: 1}, 2)}, op(reserve(1), 3, reported{code: okay, value: 1}, 4)},
		"an acknowledged reservation that is gone": {bitmapModel(), []porcupine.Operation{op(reserve(1), 1, reported{code: okay, value: 1}, 2)},
			op(bitmapStep{verb: "read"}, 3, reported{code: "not_reserved"}, 4)},
		"used twice": {couponModel(), []porcupine.Operation{op(couponStep{"lock", 1}, 1, ok, 2), op(couponStep{"confirm", 1}, 3, ok, 4)},
			op(couponStep{"lock", 2}, 5, ok, 6)},
		"entered after the close":           {entryModel(), []porcupine.Operation{sealed(1)}, enter(0, 5, 3)},
		"two entries of one user":           {entryModel(), []porcupine.Operation{enter(0, 5, 1)}, enter(0, 6, 3)},
		"an entry that is not sealed":       {entryModel(), []porcupine.Operation{enter(0, 5, 1), enter(1, 6, 3)}, sealed(5, 6)},
		"an entry that was left and sealed": {entryModel(), []porcupine.Operation{enter(0, 5, 1), op(entryStep{"leave", 0}, 3, ok, 4)}, sealed(5, 5)},
		"stock that is kept and claimed":    {waitModel(false, false), []porcupine.Operation{wait("join", 0, waits, 1), raise(3)}, op(waitStep{verb: "tap"}, 5, ok, 6)},
		"filled before an earlier user":     {waitModel(false, true), []porcupine.Operation{wait("join", 0, waits, 1), wait("join", 1, waits, 3), raise(5)}, wait("read", 1, isFilled, 7)},
		"filled without stock":              {waitModel(false, false), []porcupine.Operation{wait("join", 0, waits, 1)}, wait("read", 0, isFilled, 3)},
		"joined while there is stock":       {waitModel(false, false), []porcupine.Operation{raise(1)}, wait("join", 0, waits, 3)},
		"an offer accepted after two had ended": {waitModel(true, false), []porcupine.Operation{wait("join", 0, waits, 1), raise(3), wait("read", 0, holdsOffer, 5), op(waitStep{verb: "end"}, 7, ok, 8),
			wait("read", 0, holdsOffer, 9), op(waitStep{verb: "end"}, 11, ok, 12), wait("read", 0, isOut, 13)}, wait("accept", 0, isFilled, 15)},
		"an offer to a user who let one lapse": {waitModel(true, false), []porcupine.Operation{wait("join", 0, waits, 1), raise(3), wait("read", 0, holdsOffer, 5), op(waitStep{verb: "end"}, 7, ok, 8),
			wait("join", 1, waits, 9), wait("read", 0, waits, 11)}, wait("accept", 0, isFilled, 13)},
		"locked after its release": {couponModel(), []porcupine.Operation{op(couponStep{"release", 1}, 1, ok, 2)}, op(couponStep{"lock", 1}, 3, ok, 4)},
	} {
		model := c.model.ToModel()
		if !porcupine.CheckOperations(model, c.right) {
			t.Errorf("%s: the history is wrong without it", name)
		}
		if porcupine.CheckOperations(model, append(c.right, c.wrong)) {
			t.Errorf("%s: was not found", name)
		}
		// Without an answer, the same operation may not have taken effect.
		c.wrong.Output, c.wrong.Return = reported{}, unanswered
		if !porcupine.CheckOperations(model, append(c.right, c.wrong)) {
			t.Errorf("%s: no answer is no promise", name)
		}
	}
}
