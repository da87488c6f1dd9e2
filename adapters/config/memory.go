package config

import "runtime/debug"

// What is alive in these programs is small and what passes through is not: at
// the default, collecting garbage takes an eighth of the time of a large
// fan-out, and a tenth of that of a rush.
const (
	garbagePercent = 400
	garbageLimit   = 160 << 20 // bytes in all, from which on it is collected as soon as needed
)

// CollectRarely trades memory for time, unless the operator has decided by
// GOGC or GOMEMLIMIT.
func CollectRarely(getenv func(string) string) {
	if getenv("GOGC") == "" && getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(garbagePercent)
		debug.SetMemoryLimit(garbageLimit)
	}
}
