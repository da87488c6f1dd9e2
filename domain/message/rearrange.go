package message

import (
	"strconv"
	"strings"
)

// Rearranged applies a button to the blocks: add, up-1, down-1, drop-1.
func Rearranged(blocks []Block, do, added string) []Block {
	if do == "add" {
		return append(blocks, Block{Type: BlockType(added)})
	}
	what, number, _ := strings.Cut(do, "-")
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(blocks) {
		return blocks
	}
	switch {
	case what == "up" && i > 0:
		blocks[i-1], blocks[i] = blocks[i], blocks[i-1]
	case what == "down" && i < len(blocks)-1:
		blocks[i+1], blocks[i] = blocks[i], blocks[i+1]
	case what == "drop":
		return append(blocks[:i:i], blocks[i+1:]...)
	}
	return blocks
}
