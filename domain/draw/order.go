package draw

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
)

// Seed is SHA-256("dropbell-draw/1" ‖ root ‖ randomness).
func Seed(root Hash, randomness []byte) Hash {
	in := append([]byte(Protocol), root[:]...)
	return sha256.Sum256(append(in, randomness...))
}

// Score is the least of SHA-256(seed ‖ ticket ‖ k), with k = 0 … weight-1 as one byte.
func Score(seed Hash, ticket Ticket, weight int) Hash {
	var in [32 + 16 + 1]byte
	copy(in[:], seed[:])
	copy(in[32:], ticket[:])
	var least Hash
	for k := range weight {
		in[48] = byte(k)
		if h := Hash(sha256.Sum256(in[:])); k == 0 || bytes.Compare(h[:], least[:]) < 0 {
			least = h
		}
	}
	return least
}

// Order returns the positions of rows in the order of their scores under seed, least score first.
// It is the order in which tickets win, and the order of the tickets that wait. Equal scores, which
// only equal tickets can have, are ordered by position.
func Order(rows []Row, seed Hash) []uint32 {
	score := func(i uint32) Hash { return Score(seed, rows[i].Ticket(), rows[i].Weight()) }
	return sorted(len(rows), func(i uint32) uint64 { h := score(i); return binary.BigEndian.Uint64(h[:8]) },
		func(a, b uint32) int {
			x, y := score(a), score(b)
			if c := bytes.Compare(x[:], y[:]); c != 0 {
				return c
			}
			return int(a) - int(b)
		})
}

// Outcome is the result of a draw.
type Outcome struct {
	// Winners are the positions of the winning rows, least score first.
	Winners []uint32
	// Cutoff is the score of the last winner. Without winners it is zero.
	Cutoff Hash
}

// Pick returns the outcome of a draw: the first stock tickets of order that are not struck win.
// Striking a ticket moves no ticket in the order.
func Pick(rows []Row, order []uint32, seed Hash, stock int, struck func(Ticket) bool) Outcome {
	var o Outcome
	for _, i := range order {
		if len(o.Winners) >= stock {
			break
		}
		if !struck(rows[i].Ticket()) {
			o.Winners = append(o.Winners, i)
		}
	}
	if n := len(o.Winners); n > 0 {
		last := &rows[o.Winners[n-1]]
		o.Cutoff = Score(seed, last.Ticket(), last.Weight())
	}
	return o
}

// parallel is the number of goroutines that share a list. It is above the number of processors of
// most machines, so that a part that is scheduled late delays the whole by little.
const parallel = 16

// share calls do with the parts of 0…n at the same time and returns once all are done.
func share(n int, do func(from, to int)) {
	var group sync.WaitGroup
	for part := range parallel {
		from, to := n*part/parallel, n*(part+1)/parallel
		if from < to {
			group.Go(func() { do(from, to) })
		}
	}
	group.Wait()
}

// prefixBits is the number of leading bits by which keys are distributed to buckets. A bucket of
// five million random keys has about 76 keys.
const prefixBits = 16

// keyed is the beginning of a key and the position of its row.
type keyed struct {
	prefix uint64
	at     uint32
}

// sorted returns 0…n-1 in the order of keys. prefix returns the first 8 bytes of a key, and compare
// decides between keys whose prefixes are equal. Keys are expected to be random: they are
// distributed by their first bits, and the buckets are sorted at the same time.
func sorted(n int, prefix func(i uint32) uint64, compare func(a, b uint32) int) []uint32 {
	keys := make([]keyed, n)
	share(n, func(from, to int) {
		for i := from; i < to; i++ {
			keys[i] = keyed{prefix(uint32(i)), uint32(i)}
		}
	})
	var ends [1<<prefixBits + 1]uint32
	for _, k := range keys {
		ends[k.prefix>>(64-prefixBits)+1]++
	}
	for b := range 1 << prefixBits {
		ends[b+1] += ends[b]
	}
	starts := ends
	placed := make([]keyed, n)
	for _, k := range keys {
		b := k.prefix >> (64 - prefixBits)
		placed[ends[b]] = k
		ends[b]++
	}
	out := make([]uint32, n)
	share(1<<prefixBits, func(from, to int) {
		for b := from; b < to; b++ {
			bucket := placed[starts[b]:starts[b+1]]
			slices.SortFunc(bucket, func(a, b keyed) int {
				switch {
				case a.prefix < b.prefix:
					return -1
				case a.prefix > b.prefix:
					return 1
				}
				return compare(a.at, b.at)
			})
			for i, k := range bucket {
				out[int(starts[b])+i] = k.at
			}
		}
	})
	return out
}
