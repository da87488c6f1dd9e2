package chaos_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// waiters is how many users wait in a history.
const waiters = 5

// A waitStep is something done to a sold-out drop with a waitlist.
type waitStep struct {
	// verb is join, leave, accept or read of a user; tap of a user who does not wait; raise or return of stock; or end, after which
	// the offers that are open cannot be accepted.
	verb  string
	user  int
	stock int // after a raise
}

// A place is what became of a user of a waitlist.
type place uint8

const (
	nowhere place = iota
	waits
	holdsOffer
	overdue // the offer has ended, and no worker has noted that
	isFilled
	isOut // after two offers that were not accepted
	hasLeft
)

// placeOf are the places by the state that the API names.
var placeOf = map[string]place{"waiting": waits, "offered": holdsOffer, "filled": isFilled, "lapsed": isOut, "left": hasLeft}

// shown is the place as the API names it.
func (p place) shown() place {
	if p == overdue {
		return holdsOffer
	}
	return p
}

// listState is the state of a drop with a waitlist.
type listState struct {
	offers, gate        bool
	stock, issued, held int
	of                  [waiters]place
	lapses              [waiters]uint8
	// line has the users who wait and never let an offer lapse, in the order of joining, as digits. last has the users who did,
	// in the order of their lapses; they are behind the others, also after they left and joined again.
	line, last string
}

// waitModel is a drop of which soldFirst coupons are sold. Stock that comes back while users wait is kept for them, in their order, and
// no tap gets it. With offers it is kept for one user until the user accepts or the offer ends.
func waitModel(offers, gate bool) porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init:              func() []any { return []any{listState{offers: offers, gate: gate, stock: soldFirst, issued: soldFirst}} },
		Step:              func(s, in, out any) []any { return stepWaits(s.(listState), in.(waitStep), out.(reported)) },
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

// stepWaits returns the states after an operation. Before it a worker may have given or offered any part of the stock that is kept.
func stepWaits(s listState, in waitStep, told reported) (list []any) {
	for _, before := range s.worked() {
		for _, after := range before.step(in, told) {
			if !slices.Contains(list, after) {
				list = append(list, after)
			}
		}
	}
	return list
}

// worked returns s and the states to which workers may bring it.
func (s listState) worked() []listState {
	list := []listState{s}
	for i := 0; i < len(list); i++ {
		for _, next := range list[i].work() {
			if !slices.Contains(list, next) {
				list = append(list, next)
			}
		}
	}
	return list
}

// work returns the states after one step of a worker.
func (s listState) work() (list []listState) {
	for user, p := range s.of {
		if p == overdue {
			list = append(list, s.lapse(user))
		}
	}
	free := s.held - s.count(holdsOffer, overdue)
	if free <= 0 {
		return list
	}
	next, found := s.next()
	switch {
	case !found:
		s.held -= free // goes back on sale
	case s.offers:
		s.of[next] = holdsOffer
		s.line = strings.ReplaceAll(s.line, digit(next), "")
	default:
		s = s.fill(next)
	}
	return append(list, s)
}

func digit(user int) string { return string(rune('0' + user)) }

// count counts the users at the places.
func (s listState) count(places ...place) (n int) {
	for _, p := range s.of {
		if slices.Contains(places, p) {
			n++
		}
	}
	return n
}

// next returns the user who gets the next coupon.
func (s listState) next() (user int, found bool) {
	for _, r := range s.line + s.last {
		if user = int(r - '0'); s.of[user] == waits {
			return user, true
		}
	}
	return 0, false
}

func (s listState) fill(user int) listState {
	s.of[user], s.held, s.issued = isFilled, s.held-1, s.issued+1
	return s.without(user)
}

// without takes the user out of the line.
func (s listState) without(user int) listState {
	s.line = strings.ReplaceAll(s.line, digit(user), "")
	return s
}

func (s listState) lapse(user int) listState {
	s.lapses[user]++
	s.last = strings.ReplaceAll(s.last, digit(user), "")
	if s.of[user] = waits; s.lapses[user] >= 2 {
		s.of[user] = isOut
		return s
	}
	s.last += digit(user)
	return s
}

// step returns the states after an operation, at a moment at which no worker does anything.
func (s listState) step(in waitStep, told reported) []any {
	mine, left, next := s.of[in.user], s.stock-s.issued-s.held, s
	possible, refused := false, false // refused: the code that was told is the right one
	switch in.verb {
	case "tap":
		next.issued++
		possible, refused = left > 0, told.code == "sold_out" && left <= 0
	case "raise", "return":
		n := 1
		if in.verb == "return" {
			next.issued--
		} else {
			n, next.stock = in.stock-s.stock, in.stock
		}
		if s.count(waits, holdsOffer, overdue) > 0 {
			next.held += n
		}
		return either(told, s, next)
	case "end":
		for user, p := range s.of {
			if p == holdsOffer {
				next.of[user] = overdue
			}
		}
		return either(told, s, next)
	case "join":
		outside := mine == nowhere || mine == hasLeft
		if told.code == found {
			return when(!outside && told.value == uint64(mine.shown()), s)
		}
		if next.of[in.user] = waits; s.lapses[in.user] == 0 {
			next.line += digit(in.user)
		}
		possible = outside && (s.gate || left <= 0)
		refused = told.code == "stock_left" && outside && !s.gate && left > 0
	case "leave":
		if possible = mine == waits || mine == holdsOffer || mine == overdue; !possible && mine != nowhere { // stays as it is
			return when(told.code == "" || told.code == okay && told.value == uint64(mine.shown()), s)
		}
		next = s.without(in.user)
		next.of[in.user] = hasLeft
		refused = told.code == "not_waiting" && mine == nowhere
	case "accept":
		if mine == isFilled {
			return when(told.code == "" || told.code == okay && told.value == uint64(isFilled), s)
		}
		next = s.fill(in.user)
		possible = mine == holdsOffer
		refused = told.code == map[place]string{nowhere: "not_waiting", overdue: "offer_lapsed", waits: "no_offer", isOut: "no_offer", hasLeft: "no_offer"}[mine]
	case "read":
		return when(told.code == "" || told.code == okay && mine != nowhere && told.value == uint64(mine.shown()) || told.code == "not_waiting" && mine == nowhere, s)
	}
	switch {
	case told.code == "" && possible:
		return []any{s, next}
	case told.code == "":
		return []any{s}
	case told.code == okay:
		return when(possible && (in.verb == "tap" || told.value == uint64(next.of[in.user])), next)
	}
	return when(refused, s)
}
