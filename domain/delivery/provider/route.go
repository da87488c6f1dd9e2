package provider

import (
	"cmp"
	"math"
	"slices"

	"dropbell/domain/delivery"
)

// A Route holds the facts on which the choice of a provider depends.
type Route struct {
	Shop int64 // 0 = of no shop
	// Country is the recipient's, an ISO 3166 code; empty = unknown.
	Country string
}

// Candidates returns the providers of one channel that may be handed a message of the
// route, in the order in which they are asked: the shop's own providers if one of
// them serves the country, otherwise the providers of all shops. Providers that name
// the country come before providers for all countries; then the lowest Order comes
// first. An empty result means that the environment's provider is handed the message.
func Candidates(all []Provider, r Route) []Provider {
	for _, shop := range []int64{r.Shop, 0} {
		var fit []Provider
		for _, p := range all {
			if p.Enabled && p.DeletedAt == nil && p.Shop == shop && (len(p.Countries) == 0 || slices.Contains(p.Countries, r.Country)) {
				fit = append(fit, p)
			}
		}
		if len(fit) > 0 {
			slices.SortFunc(fit, before)
			return fit
		}
	}
	return nil
}

func before(a, b Provider) int { return cmp.Or(rank(a, b), cmp.Compare(a.ID, b.ID)) }

// rank is 0 for providers that share their messages by weight.
func rank(a, b Provider) int {
	return cmp.Or(cmp.Compare(min(1, len(b.Countries)), min(1, len(a.Countries))), cmp.Compare(a.Order, b.Order))
}

// Choose returns the candidate that is handed the message with this seed. In the first rank
// with a ready candidate it chooses by weight. The same seed gets the same provider while
// that provider is ready; when a provider is not ready, only its own messages go to other
// providers. Choose calls ready until the first true, since ready may reserve a call.
// False: no candidate is ready.
func Choose(candidates []Provider, seed uint64, ready func(id int64) bool) (Provider, bool) {
	for len(candidates) > 0 {
		n := 1
		for n < len(candidates) && rank(candidates[0], candidates[n]) == 0 {
			n++
		}
		equals := candidates[:n]
		if n > 1 {
			equals = slices.Clone(equals)
			slices.SortStableFunc(equals, func(a, b Provider) int { return cmp.Compare(a.score(seed), b.score(seed)) })
		}
		for _, p := range equals {
			if ready(p.ID) {
				return p, true
			}
		}
		candidates = candidates[n:]
	}
	return Provider{}, false
}

// score has its minimum at the provider chosen for a seed (weighted rendezvous
// hashing). It is -ln(u)/w for a number u in (0, 1) that depends on seed and provider.
func (p Provider) score(seed uint64) float64 {
	u := (float64(mix(seed^mix(uint64(p.ID)))>>11) + 0.5) / (1 << 53)
	return -math.Log(u) / float64(max(1, p.Weight))
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// seedOf returns the part of the seeds that messages about one subject share.
func seedOf(s *delivery.Subject) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(s.Kind) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return mix(mix(mix(h^uint64(s.TemplateID))^uint64(s.OwnerID)) ^ uint64(s.Slot))
}
