package coupons_test

import (
	"testing"

	"dropbell/domain/cell"
)

// TestSerialNumbersNameTheirCell: a further cell gives serial numbers of its own, and home gives all that
// are of no other cell, also of none that was taken out.
func TestSerialNumbersNameTheirCell(t *testing.T) {
	m := newCodeFixture(t)
	d := m.byCode(1000, 1)
	calls := int64(0)
	given := func() map[cell.Number]bool {
		t.Helper()
		seen := map[cell.Number]bool{}
		for _, part := range []int64{0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 63} {
			m.place(func(n int64) int64 {
				calls++ // so that no place is tried twice
				return n/64*part + 1000*calls
			})
			b := m.generate(d, 10)
			if cell.OfSerial(int64(b.First)) != cell.OfSerial(int64(b.First)+b.Count-1) {
				t.Errorf("a batch from %d on is of two cells", b.First)
			}
			seen[cell.OfSerial(int64(b.First))] = true
		}
		return seen
	}
	if seen := given(); !seen[0] || !seen[1] || !seen[63] || len(seen) < 9 {
		t.Errorf("one database gives serial numbers of the cells %v", seen)
	}
	m.Exec(`insert into copying_cells (cell) values (1)`)
	m.Exec(`insert into removed_cells (cell, last_id, last_code) values (2, 1, 1)`)
	if seen := given(); seen[1] || seen[2] || !seen[0] || !seen[63] {
		t.Errorf("home gives serial numbers of the cells %v", seen)
	}
	m.Exec(`delete from removed_cells`)
	m.Exec(`delete from copying_cells`)
	m.Exec(`update cell set number = 1`)
	if seen := given(); !seen[1] || len(seen) != 1 {
		t.Errorf("cell 1 gives serial numbers of the cells %v", seen)
	}
}
