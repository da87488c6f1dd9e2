package delivery

import (
	"slices"

	"dropbell/domain/user"
)

// Handed returns the answers to messages that were handed over, and the number of messages that
// the sender kept back.
func Handed(results []Result) (given []Result, held int) {
	for _, res := range results {
		if res.Held {
			held++
		}
	}
	if held == 0 {
		return results, 0
	}
	return slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Held }), held
}

// paced returns the users whose messages were kept back because of the pace of their mail domain;
// nil if there are none.
func (b *Batch) paced() (held map[user.ID]bool) {
	for id, e := range b.Exceptions {
		if e.Outcome == Failed && e.Reason == ReasonDomain {
			if held == nil {
				held = map[user.ID]bool{}
			}
			held[id] = true
		}
	}
	return held
}
