package draw

import (
	"golang.org/x/mod/sumdb/tlog"
)

// Tree is the Merkle tree of RFC 6962 over the leaves of a list.
type Tree struct {
	// levels are the hashes of complete subtrees: levels[l][n] is the hash of leaves n·2^l … (n+1)·2^l-1.
	levels [][]tlog.Hash
	size   int64
}

// NewTree returns the tree of the sorted rows of a drop.
func NewTree(drop int64, rows []Row) *Tree {
	leaves := make([]tlog.Hash, len(rows))
	share(len(rows), func(from, to int) {
		for i := from; i < to; i++ {
			leaves[i] = tlog.Hash(rows[i].Leaf(drop))
		}
	})
	return treeOf(leaves)
}

// treeOf returns the tree over hashes of leaves, or of subtrees that have the same size but for the last one.
func treeOf(leaves []tlog.Hash) *Tree {
	t := &Tree{levels: [][]tlog.Hash{leaves}, size: int64(len(leaves))}
	for below := leaves; len(below) > 1; {
		above := make([]tlog.Hash, len(below)/2)
		share(len(above), func(from, to int) {
			for i := from; i < to; i++ {
				above[i] = tlog.NodeHash(below[2*i], below[2*i+1])
			}
		})
		t.levels = append(t.levels, above)
		below = above
	}
	return t
}

// ReadHashes is part of [tlog.HashReader].
func (t *Tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		out[i] = t.levels[level][n]
	}
	return out, nil
}

// Root is the hash of the whole tree. Without leaves it is the hash of nothing, as in RFC 6962.
func (t *Tree) Root() (Hash, error) {
	root, err := tlog.TreeHash(t.size, t)
	return Hash(root), err
}

// ChunkRoots returns the root of each chunk's rows. The root of the whole tree is the root of the tree over them, since a
// chunk has a power of two of rows.
func (t *Tree) ChunkRoots() ([]Hash, error) {
	leaves := t.levels[0]
	roots := make([]Hash, Chunks(len(leaves)))
	for i := range roots {
		if (i+1)*ChunkRows <= len(leaves) {
			roots[i] = Hash(t.levels[chunkLevel][i])
			continue
		}
		last, err := treeOf(leaves[i*ChunkRows:]).Root()
		if err != nil {
			return nil, err
		}
		roots[i] = last
	}
	return roots, nil
}

// chunkLevel is the level of the roots of full chunks: 2^chunkLevel is [ChunkRows].
const chunkLevel = 16

// Path returns the hashes that lead from the leaf at position to the root.
func (t *Tree) Path(position int) ([]Hash, error) {
	proof, err := tlog.ProveRecord(t.size, int64(position), t)
	path := make([]Hash, len(proof))
	for i, h := range proof {
		path[i] = Hash(h)
	}
	return path, err
}

// Included reports whether path leads from leaf at position to the root of a tree of size leaves.
func Included(path []Hash, size, position int, root, leaf Hash) bool {
	proof := make(tlog.RecordProof, len(path))
	for i, h := range path {
		proof[i] = tlog.Hash(h)
	}
	return tlog.CheckRecord(proof, int64(size), tlog.Hash(root), int64(position), tlog.Hash(leaf)) == nil
}
