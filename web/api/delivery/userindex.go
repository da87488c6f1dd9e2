package delivery

import (
	"slices"

	"dropbell/domain/user"
)

// blockSize bounds the ids of one block of a [userIndex], and so the ids that an insertion moves.
const blockSize = 512

// userIndex is a sorted set of user ids in blocks. The zero value is empty.
type userIndex struct {
	blocks [][]user.ID // none is empty
}

// block returns the index of the last block whose first id is id or lower; 0 if there is none.
func (x *userIndex) block(id user.ID) int {
	i, found := slices.BinarySearchFunc(x.blocks, id, func(b []user.ID, id user.ID) int {
		switch {
		case b[0] < id:
			return -1
		case b[0] > id:
			return 1
		}
		return 0
	})
	if found {
		return i
	}
	return max(0, i-1)
}

func (x *userIndex) insert(id user.ID) {
	if len(x.blocks) == 0 {
		x.blocks = [][]user.ID{{id}}
		return
	}
	i := x.block(id)
	at, found := slices.BinarySearch(x.blocks[i], id)
	if found {
		return
	}
	b := slices.Insert(x.blocks[i], at, id)
	x.blocks[i] = b
	if len(b) > blockSize {
		half := len(b) / 2
		x.blocks[i] = b[:half:half]
		x.blocks = slices.Insert(x.blocks, i+1, slices.Clone(b[half:]))
	}
}

func (x *userIndex) remove(id user.ID) {
	if len(x.blocks) == 0 {
		return
	}
	i := x.block(id)
	at, found := slices.BinarySearch(x.blocks[i], id)
	if !found {
		return
	}
	x.blocks[i] = slices.Delete(x.blocks[i], at, at+1)
	if len(x.blocks[i]) == 0 {
		x.blocks = slices.Delete(x.blocks, i, i+1)
	}
}

// within calls visit for the ids between from and to in ascending order until visit returns false.
func (x *userIndex) within(from, to user.ID, visit func(user.ID) bool) {
	if len(x.blocks) == 0 {
		return
	}
	for _, b := range x.blocks[x.block(from):] {
		at, _ := slices.BinarySearch(b, from)
		for _, id := range b[at:] {
			if id > to || !visit(id) {
				return
			}
		}
	}
}

// count returns how many ids lie between from and to, at most limit.
func (x *userIndex) count(from, to user.ID, limit int) (n int) {
	if len(x.blocks) == 0 {
		return 0
	}
	for _, b := range x.blocks[x.block(from):] {
		if b[0] > to || n >= limit {
			break
		}
		first, _ := slices.BinarySearch(b, from)
		end, found := slices.BinarySearch(b, to)
		if found {
			end++
		}
		n += end - first
	}
	return min(n, limit)
}
