package config

import (
	"bytes"
	"math"
	"os"
	"runtime/debug"
	"strconv"
)

const (
	// requestMemory is the memory in bytes that is reserved for a waiting request, its
	// connection and its garbage. It is more than the measured bound of 72 KiB
	// (docs/operations.md), since connections without requests take memory, too.
	requestMemory = 128 << 10
	// memoryShare is the part of the memory that such requests may take.
	memoryShare            = 4
	leastInFlight          = 256
	mostInFlight           = 4096
	meminfo                = "/proc/meminfo"
	containerLimit         = "/sys/fs/cgroup/memory.max"
	containerLimitVersion1 = "/sys/fs/cgroup/memory/memory.limit_in_bytes"
)

// InFlight returns how many requests of end users web serves at a time: MAX_IN_FLIGHT, or the
// number that fits into a quarter of the memory.
func (c Config) InFlight() int {
	if c.MaxInFlight > 0 {
		return c.MaxInFlight
	}
	return inFlightFor(memory(os.ReadFile, os.Getenv))
}

func inFlightFor(memory int64) int {
	return int(min(max(memory/memoryShare/requestMemory, leastInFlight), mostInFlight))
}

// memory returns how many bytes this process may use: the least of the machine's
// memory, the limit of its container, and GOMEMLIMIT.
func memory(read func(string) ([]byte, error), getenv func(string) string) int64 {
	least := int64(math.MaxInt64)
	if getenv("GOMEMLIMIT") != "" {
		least = debug.SetMemoryLimit(-1)
	}
	if raw, err := read(meminfo); err == nil {
		_, rest, _ := bytes.Cut(raw, []byte("MemTotal:"))
		least = min(least, amount(rest, 1024))
	}
	for _, limit := range []string{containerLimit, containerLimitVersion1} {
		if raw, err := read(limit); err == nil {
			least = min(least, amount(raw, 1))
		}
	}
	return least
}

// amount reads the first word as a number; anything else, such as "max", is
// no limit.
func amount(raw []byte, unit int64) int64 {
	words := bytes.Fields(raw)
	if len(words) == 0 {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(string(words[0]), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return math.MaxInt64
	}
	return n * unit
}
