package audience

import (
	"math/rand/v2"
	"testing"
)

// The true share lies within the margin in at least nine of ten samples, also for small samples
// and for users that are similar within a page.
func TestMarginsHold(t *testing.T) {
	const perPage, pages, times = 60, 3000, 4000
	random := rand.New(rand.NewPCG(7, 11))
	for name, c := range map[string]struct {
		page  func() float64 // members on a page
		share float64
	}{
		"a quarter, page by page": {func() float64 { return perPage * float64(random.IntN(4)/3) }, 0.25},
		"half, page by page":      {func() float64 { return perPage * float64(random.IntN(2)) }, 0.5},
		"most, page by page":      {func() float64 { return perPage * float64(min(1, random.IntN(10))) }, 0.9},
		"a tenth, mixed": {func() (n float64) {
			for range perPage {
				n += float64(random.IntN(10) / 9)
			}
			return n
		}, 0.1},
		"a hundredth, mixed": {func() (n float64) {
			for range perPage {
				n += float64(random.IntN(100) / 99)
			}
			return n
		}, 0.01},
	} {
		for _, size := range []int{4, 8, 32, 128} {
			outside := 0
			for range times {
				s := sample{}
				for page := range int64(size) {
					s[page] = sampledPage{users: perPage, members: c.page()}
				}
				e, err := s.estimate(pages, perPage)
				if err != nil {
					t.Fatal(err)
				}
				if off := float64(e.Members) - c.share*pages*perPage; max(off, -off) > float64(e.Margin) {
					outside++
				}
			}
			if outside > times/10 {
				t.Errorf("%s, %d pages: %d of %d outside of their margin", name, size, outside, times)
			}
		}
	}
}
