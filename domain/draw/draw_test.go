package draw_test

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"dropbell/domain/draw"
)

// entry is entry i of a draw: its ticket and its salt follow from i.
func entry(i, weight int) draw.Entry {
	h := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i)))
	return draw.Entry{UserID: int64(i + 1), Ticket: draw.Ticket(h[:16]), Salt: draw.Salt(h[16:]), Weight: weight}
}

// rows are n sorted rows with the weights in turn.
func rows(t testing.TB, n int, weights ...int) []draw.Row {
	t.Helper()
	list := make([]draw.Row, n)
	for i := range list {
		list[i] = entry(i, weights[i%len(weights)]).Row()
	}
	if err := draw.SortRows(list); err != nil {
		t.Fatal(err)
	}
	return list
}

// The tree's roots and paths are compared with golang.org/x/mod/sumdb/tlog, which appends one leaf
// after another instead of hashing level by level.
func TestTreeIsThatOfRFC6962(t *testing.T) {
	list := rows(t, 131, 1)
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(at []int64) ([]tlog.Hash, error) {
		var out []tlog.Hash
		for _, i := range at {
			out = append(out, stored[i])
		}
		return out, nil
	})
	for n := range list {
		want, err := tlog.TreeHash(int64(n), read)
		tree := draw.NewTree(7, list[:n])
		got, err2 := tree.Root()
		if err != nil || err2 != nil || got != draw.Hash(want) {
			t.Fatalf("%d leaves have the root %v %v, want %v %v", n, got, err2, draw.Hash(want), err)
		}
		for i := range n {
			path, err := tree.Path(i)
			if err != nil || !draw.Included(path, n, i, got, list[i].Leaf(7)) || draw.Included(path, n, i, got, list[i].Leaf(8)) {
				t.Fatalf("the path of leaf %d of %d: %v %v", i, n, path, err)
			}
		}
		leaf := list[n].Leaf(7)
		more, err := tlog.StoredHashesForRecordHash(int64(n), tlog.Hash(leaf), read)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, more...)
	}
}

func TestOrderIsByScoreAndStrikingMovesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, stock := rapid.IntRange(0, 300).Draw(t, "entries"), rapid.IntRange(0, 320).Draw(t, "stock")
		list := make([]draw.Row, n)
		for i := range list {
			list[i] = entry(i, rapid.IntRange(1, draw.MaxWeight).Draw(t, "weight")).Row()
		}
		if err := draw.SortRows(list); err != nil {
			t.Fatal(err)
		}
		seed := draw.Seed(draw.Hash{1}, []byte(rapid.String().Draw(t, "random")))
		order := draw.Order(list, seed)
		want := make([]uint32, n)
		for i := range want {
			want[i] = uint32(i)
		}
		slices.SortFunc(want, func(a, b uint32) int {
			x, y := draw.Score(seed, list[a].Ticket(), list[a].Weight()), draw.Score(seed, list[b].Ticket(), list[b].Weight())
			return slices.Compare(x[:], y[:])
		})
		if !slices.Equal(order, want) {
			t.Fatalf("the order is %v, want %v", order, want)
		}
		all := draw.Pick(list, order, seed, stock, func(draw.Ticket) bool { return false })
		if len(all.Winners) != min(n, stock) {
			t.Fatalf("%d of %d win %d", len(all.Winners), n, stock)
		}
		if len(all.Winners) == 0 {
			return
		}
		out := list[rapid.SampledFrom(all.Winners).Draw(t, "struck")].Ticket()
		without := draw.Pick(list, order, seed, stock, func(t draw.Ticket) bool { return t == out })
		for _, w := range all.Winners {
			if list[w].Ticket() != out && !slices.Contains(without.Winners, w) {
				t.Fatalf("the winner %d lost when another was struck", w)
			}
		}
		if len(without.Winners) != min(n-1, stock) {
			t.Fatalf("%d win after a strike", len(without.Winners))
		}
	})
}

// Of a million tickets ten thousand win. The winners are counted in 256 groups by the first byte of
// their ticket, and chi-square of the groups must be plausible: with 255 degrees of freedom it exceeds
// 346 in one of 10,000 draws. The seed is fixed, so the test gives the same answer each time.
func TestWinnersAreUniform(t *testing.T) {
	const n, stock = 1_000_000, 10_000
	list := rows(t, n, 1)
	seed := draw.Seed(draw.Hash{2}, []byte("uniform"))
	o := draw.Pick(list, draw.Order(list, seed), seed, stock, func(draw.Ticket) bool { return false })
	var entered, won [256]float64
	for i := range list {
		entered[list[i][0]]++
	}
	for _, w := range o.Winners {
		won[list[w][0]]++
	}
	var chi float64
	for g := range won {
		expected := entered[g] * stock / n
		chi += (won[g] - expected) * (won[g] - expected) / expected
	}
	if chi > 346 || chi < 170 {
		t.Errorf("chi-square is %.1f with 255 degrees of freedom", chi)
	}
}

// With the cutoff at the fraction c of all scores, an entry of weight w wins with 1 - (1-c)^w.
func TestWeightsWinAsInTheory(t *testing.T) {
	const n, stock = 200_000, 20_000
	list := rows(t, n, 1, 2, 5, 10)
	seed := draw.Seed(draw.Hash{3}, []byte("weights"))
	o := draw.Pick(list, draw.Order(list, seed), seed, stock, func(draw.Ticket) bool { return false })
	won := map[int]float64{}
	for _, w := range o.Winners {
		won[list[w].Weight()]++
	}
	c := float64(binary.BigEndian.Uint64(o.Cutoff[:8])) / math.Pow(2, 64)
	for _, weight := range []int{1, 2, 5, 10} {
		p := 1 - math.Pow(1-c, float64(weight))
		mean, deviation := n/4*p, math.Sqrt(n/4*p*(1-p))
		if math.Abs(won[weight]-mean) > 4*deviation {
			t.Errorf("%v entries of weight %d won, want %.0f ± %.0f", won[weight], weight, mean, deviation)
		}
	}
}

func TestListsThatAreNotValid(t *testing.T) {
	twice := []draw.Row{entry(1, 1).Row(), entry(2, 1).Row(), entry(1, 1).Row()}
	if err := draw.SortRows(twice); err == nil {
		t.Error("two entries with one ticket are sorted")
	}
	for _, weight := range []int{0, 3} {
		if err := draw.Valid([]draw.Row{entry(1, weight).Row()}, 2); err == nil {
			t.Errorf("the weight %d is valid", weight)
		}
	}
	if _, err := draw.Rows(make([]byte, draw.RowSize+1)); err == nil {
		t.Error("a part of a row is read")
	}
	if _, err := draw.Rows(make([]byte, draw.RowSize), make([]byte, draw.RowSize)); err == nil {
		t.Error("a chunk that is not full has a successor")
	}
	list := rows(t, draw.ChunkRows+3, 1)
	again, err := draw.Rows(draw.Chunk(list, 0), draw.Chunk(list, 1))
	if err != nil || draw.Chunks(len(list)) != 2 || !slices.Equal(again, list) {
		t.Errorf("%d rows in chunks become %d, %v", len(list), len(again), err)
	}
}
