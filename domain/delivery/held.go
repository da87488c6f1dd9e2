package delivery

import "slices"

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
