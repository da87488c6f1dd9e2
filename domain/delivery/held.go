package delivery

import (
	"slices"

	"dropbell/domain/user"
)

// Handed returns the answers to messages that were handed over, and how many the
// sender kept back.
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

// paced reports whether the message to the user was kept back because of the pace of the
// recipient's mail domain.
func (b *Batch) paced(id user.ID) bool {
	e, ok := b.Exceptions[id]
	return ok && e.Outcome == Failed && e.Reason == ReasonDomain
}
