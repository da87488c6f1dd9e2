package cart

import (
	"cmp"
	"math/bits"
	"slices"

	"dropbell/domain/money"
	"dropbell/domain/template"
)

// MaxSteps is the most combinations that [Best] examines. It is a number, not a time, so that all
// machines give the same answer. The benchmark of this package took less than 5 ms for them.
const MaxSteps = 4_000

// Best returns the combination of the coupons that takes the most off the cart; without a usable
// coupon it has no uses. Of combinations with the same discount it returns the one with fewer
// coupons, then with the earlier expiry, then with the lower ids.
//
// Coupons that cannot be told apart collapse to the coupons that expire first. The search visits
// the cliques of the graph of coupons that go together, of at most [MaxCoupons] members. A coupon takes at most
// as much off in a combination as alone, which is the bound. A coupon that cannot be used in a combination
// cannot be used in a larger one either. If there are more than [MaxCandidates]
// different coupons, or the search needs more than [MaxSteps] steps, the best combination that was found is
// returned, which is at least as good as the greedy one, and Exact is false.
func Best(c Cart, list []Terms) Combination {
	s := newSearch(c, list)
	s.greedy()
	s.extend(0, 0, ^uint32(0), 0, 0)
	var chosen []Terms
	for m := s.best; m != 0; m &= m - 1 {
		chosen = append(chosen, s.list[bits.TrailingZeros32(m)].Terms)
	}
	best, _ := Combine(c, chosen)
	best.Exact = s.exact
	return best
}

// candidate is a coupon in a search.
type candidate struct {
	Terms
	// slot is the place of the coupon's product in search.sums; -1 = the whole cart.
	slot int
	// alone is what the coupon takes off alone.
	alone money.Amount
	// with are the candidates that go together with it, as bits.
	with uint32
}

// search is one search for the best combination. Sets of candidates are bits; bit i is list[i].
type search struct {
	// list is in the order of effect, so that the bits of a set are, too.
	list []candidate
	// order are the places in list by alone, the largest first.
	order []int
	sums  []money.Amount // of the cart, by slot
	total money.Amount
	steps int
	exact bool
	best  uint32
	most  money.Amount // what best takes off
}

func newSearch(c Cart, list []Terms) *search {
	list = collapse(list)
	s := &search{exact: true, total: c.Amount(), list: make([]candidate, 0, len(list)), order: make([]int, 0, len(list))}
	slots := map[string]int{}
	for _, t := range list {
		off, no := Alone(c, t)
		if no != nil {
			continue
		}
		slot := -1
		if t.Rule.Target == template.Product {
			var known bool
			if slot, known = slots[t.Rule.Product]; !known {
				slot = len(s.sums)
				slots[t.Rule.Product] = slot
				s.sums = append(s.sums, sumOf(c, t.Rule.Product))
			}
		}
		s.list = append(s.list, candidate{Terms: t, slot: slot, alone: off})
	}
	if len(s.list) > MaxCandidates {
		slices.SortFunc(s.list, byAlone)
		s.list, s.exact = s.list[:MaxCandidates], false
	}
	slices.SortFunc(s.list, func(a, b candidate) int { return inEffect(a.Terms, b.Terms) })
	for i := range s.list {
		s.order = append(s.order, i)
		for j := range i {
			if s.list[i].together(&s.list[j].Terms) {
				s.list[i].with |= 1 << j
				s.list[j].with |= 1 << i
			}
		}
	}
	slices.SortFunc(s.order, func(a, b int) int { return byAlone(s.list[a], s.list[b]) })
	return s
}

func sumOf(c Cart, product string) (sum money.Amount) {
	for _, l := range c.Lines {
		if l.Product == product {
			sum += l.Amount
		}
	}
	return sum
}

func byAlone(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.alone, a.alone), byExpiry(a.Terms, b.Terms))
}

func byExpiry(a, b Terms) int {
	return cmp.Or(cmp.Compare(a.ExpiresAt, b.ExpiresAt), cmp.Compare(a.ID, b.ID))
}

// collapse removes coupons in whose place another coupon with the same terms can be used that
// expires earlier. Of a template it keeps as many coupons as an order can use. Of
// templates with equal terms that do not go together it keeps one coupon.
func collapse(list []Terms) []Terms {
	list = slices.Clone(list)
	slices.SortFunc(list, byExpiry)
	ofTemplate := make(map[int64]int, len(list))
	kept := list[:0]
	for i := range list {
		t := &list[i]
		ofTemplate[t.TemplateID]++
		alone := t.perOrder() == 1 && !t.Together(t.Stacking)
		if ofTemplate[t.TemplateID] <= min(MaxCoupons, t.perOrder()) && !(alone && slices.ContainsFunc(kept, t.equal)) {
			kept = append(kept, *t)
		}
	}
	return kept
}

// equal reports whether the coupons differ in nothing but their template and their expiry.
func (t *Terms) equal(o Terms) bool {
	names := func(a, b []string) bool {
		return !slices.ContainsFunc(a, func(g string) bool { return !slices.Contains(b, g) })
	}
	return t.Shop == o.Shop && t.Group == o.Group && t.Rule == o.Rule && t.perOrder() == o.perOrder() && names(t.With, o.With) && names(o.With, t.With)
}

// value returns what the set takes off. It reports false if a coupon of the set cannot be used
// beside the others.
func (s *search) value(set uint32) (sum money.Amount, ok bool) {
	s.steps++
	var slots [MaxCoupons]int
	var offs [MaxCoupons]money.Amount
	n := 0
	for m := set; m != 0; m &= m - 1 {
		c := &s.list[bits.TrailingZeros32(m)]
		eligible := s.total - sum
		if c.slot >= 0 {
			eligible = s.sums[c.slot]
			for i := range n {
				if slots[i] == c.slot {
					eligible -= offs[i]
				}
			}
		}
		off := c.Rule.Off(eligible)
		if off < 1 {
			return 0, false
		}
		slots[n], offs[n] = c.slot, off
		n++
		sum += off
	}
	return sum, true
}

// offer keeps the set if it is better than the best set so far.
func (s *search) offer(set uint32, off money.Amount) {
	if s.best == 0 || cmp.Or(cmp.Compare(s.most, off), cmp.Compare(bits.OnesCount32(set), bits.OnesCount32(s.best)), s.compare(set, s.best)) < 0 {
		s.best, s.most = set, off
	}
}

// compare compares two sets of the same size by the expiries of their coupons, and then by their ids.
func (s *search) compare(a, b uint32) int {
	x, y := s.ordered(a, expiryOf), s.ordered(b, expiryOf)
	if x == y {
		x, y = s.ordered(a, idOf), s.ordered(b, idOf)
	}
	return slices.Compare(x[:], y[:])
}

func expiryOf(t *Terms) int64 { return t.ExpiresAt }
func idOf(t *Terms) int64     { return t.ID }

// ordered returns a number of each coupon of the set, the least first.
func (s *search) ordered(set uint32, number func(*Terms) int64) (list [MaxCoupons]int64) {
	n := 0
	for m := set; m != 0; m &= m - 1 {
		list[n] = number(&s.list[bits.TrailingZeros32(m)].Terms)
		n++
	}
	slices.Sort(list[:n])
	return list
}

// greedy offers the set that takes the coupon with the largest discount first, and then each coupon
// that goes together with the coupons taken.
func (s *search) greedy() {
	allowed, set := ^uint32(0), uint32(0)
	for _, i := range s.order {
		if allowed&(1<<i) == 0 || bits.OnesCount32(set) == MaxCoupons {
			continue
		}
		if off, ok := s.value(set | 1<<i); ok {
			set |= 1 << i
			allowed &= s.list[i].with
			s.offer(set, off)
		}
	}
}

// extend offers all sets that contain set, which takes off, and coupons of allowed from the place
// from of the order on.
func (s *search) extend(from int, set, allowed uint32, size int, off money.Amount) {
	for at := from; at < len(s.order) && size < MaxCoupons; at++ {
		i := s.order[at]
		if allowed&(1<<i) == 0 {
			continue
		}
		if bound := s.bound(at, allowed, size, off); bound < s.most || bound == s.most && size+1 > bits.OnesCount32(s.best) {
			return
		}
		if s.steps >= MaxSteps {
			s.exact = false
			return
		}
		if sum, ok := s.value(set | 1<<i); ok {
			s.offer(set|1<<i, sum)
			s.extend(at+1, set|1<<i, allowed&s.list[i].with, size+1, sum)
		}
	}
}

// bound is the most that set can take off with coupons of allowed from the place at on.
func (s *search) bound(at int, allowed uint32, size int, off money.Amount) money.Amount {
	for ; at < len(s.order) && size < MaxCoupons; at++ {
		if i := s.order[at]; allowed&(1<<i) != 0 {
			off += s.list[i].alone
			size++
		}
	}
	return min(off, s.total)
}
