package chaos_test

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"
)

// A reported value is the answer that a client got to one operation of a history. The zero value
// stands for an operation without an answer.
type reported struct {
	code  string   // "ok", or the code of a refusal; empty = no answer came
	value uint64   // in the answer: a reservation's bits, the beginning of a ticket, or a place
	list  []uint64 // in the answer: the beginnings of the sealed tickets
	// repeated says that the request was sent more than once under its key.
	repeated bool
}

const okay = "ok"

// unanswered is the end time of an operation without an answer: the operation may take effect at
// any time, or never.
const unanswered = math.MaxInt64

// either lists the possible states after an operation: next if the operation took effect, and
// the old state if it did not and was not acknowledged.
func either(told reported, state, next any) []any {
	if told.code == "" {
		return []any{state, next}
	}
	return []any{next}
}

func when(holds bool, states ...any) []any {
	if holds {
		return states
	}
	return nil
}

// A bitmapStep is a request about one user's reservation of one drop.
type bitmapStep struct {
	verb string // reserve, cancel, cancel all, read
	bits uint64
}

// bitmapModel is one user's reservation. Reserving is OR, and is refused if any bit is set.
// Cancelling is AND-NOT, and is refused if any bit is missing (SPEC 3.1).
func bitmapModel() porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init: func() []any { return []any{uint64(0)} },
		Step: func(s, in, out any) []any {
			return stepBitmap(s.(uint64), in.(bitmapStep), out.(reported))
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%#x", s) },
	}
}

func stepBitmap(state uint64, in bitmapStep, told reported) []any {
	next, possible, refusal := state, false, "not_reserved"
	switch in.verb {
	case "reserve":
		next, possible, refusal = state|in.bits, state&in.bits == 0, "already_reserved"
	case "cancel":
		next, possible = state&^in.bits, state&in.bits == in.bits
	case "cancel all":
		next, possible = 0, state != 0
	case "read":
		possible = state != 0
	}
	switch told.code {
	case okay:
		// If the first attempt of a request died with its process, the repeated request is
		// answered that the reminders are reserved, even if another request reserved them.
		if told.repeated && in.verb == "reserve" && !possible {
			return when(state&in.bits == in.bits && told.value == state, state)
		}
		return when(possible && told.value == next, next)
	case "":
		if !possible {
			return []any{state}
		}
		return either(told, state, next)
	case refusal:
		return when(!possible, state)
	}
	return nil
}

// A claimStep is something done to a drop: a claim of one user, or a step of staff.
type claimStep struct {
	verb  string // claim, raise, pause, resume
	user  int
	stock int
}

// buyers is how many users claim in a history.
const buyers = 12

// dropState is the state on which claims of a drop are decided.
type dropState struct {
	stock, issued int
	paused        bool
	of            [buyers]uint8 // coupons of each user
}

// claimModel is an open drop: never more coupons than stock, never more than limit for one user,
// none while the drop is paused (SPEC 5).
func claimModel(stock, limit int) porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init: func() []any { return []any{dropState{stock: stock}} },
		Step: func(s, in, out any) []any {
			return stepClaim(s.(dropState), in.(claimStep), out.(reported), limit)
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %s", in, out.(reported).code) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

func stepClaim(state dropState, in claimStep, told reported, limit int) []any {
	next := state
	switch in.verb {
	case "raise":
		next.stock = in.stock
		return either(told, state, next)
	case "pause", "resume":
		next.paused = in.verb == "pause"
		return either(told, state, next)
	}
	next.issued++
	next.of[in.user]++
	possible := !state.paused && state.issued < state.stock && int(state.of[in.user]) < limit
	switch told.code {
	case okay:
		return when(possible, next)
	case "":
		if !possible {
			return []any{state}
		}
		return either(told, state, next)
	case "sold_out":
		return when(state.issued >= state.stock, state)
	case "limit_reached":
		return when(int(state.of[in.user]) >= limit, state)
	case "template_not_open":
		return when(state.paused, state)
	}
	return nil
}

// A couponStep is a step of payment for one of three orders.
type couponStep struct {
	verb  string // lock, confirm, release, refund
	order int
}

// couponState is the state of a coupon that is valid all the time and whose locks do not time
// out. Orders count from 1.
type couponState struct {
	holder                     int // 0 = unused
	used                       bool
	locked, released, refunded [4]bool // by order
}

// couponModel is Try-Confirm-Cancel of one coupon: idempotent per order, in any order of arrival
// (SPEC 5).
func couponModel() porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init: func() []any { return []any{couponState{}} },
		Step: func(s, in, out any) []any {
			next, possible := s.(couponState).step(in.(couponStep))
			switch told := out.(reported); {
			case told.code == "" && possible:
				return either(told, s, next)
			case told.code == "":
				return []any{s}
			case told.code == okay:
				return when(possible, next)
			default:
				return when(!possible && told.code == "coupon_not_usable", s)
			}
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %s", in, out.(reported).code) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

// step returns the state after the step, and whether it is possible.
func (s couponState) step(in couponStep) (couponState, bool) {
	held, o := s.holder == in.order, in.order
	switch in.verb {
	case "lock":
		if s.locked[o] {
			return s, held
		}
		if s.released[o] || s.holder != 0 {
			return s, false
		}
		s.holder, s.locked[o] = o, true
	case "confirm":
		s.used = s.used || held
		return s, held
	case "release":
		if held && s.used {
			return s, false
		}
		s.released[o] = s.released[o] || !s.locked[o]
		if held {
			s.holder, s.released[o] = 0, true
		}
	case "refund":
		if !held || !s.used {
			return s, s.refunded[o]
		}
		s.holder, s.used, s.refunded[o] = 0, false, true
	}
	return s, true
}
