package config

import (
	"errors"
	"testing"
)

// TestInFlightByMemory: the smaller of the machine's memory and its container's limit decides,
// within bounds. Files that do not exist or say "max" set no limit.
func TestInFlightByMemory(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int
	}{
		{"large machine", map[string]string{meminfo: "MemTotal:       24683520 kB\nMemFree: 1 kB\n", containerLimit: "max\n"}, 4096},
		{"small container", map[string]string{meminfo: "MemTotal:       24683520 kB\n", containerLimit: "536870912\n"}, 1024},
		{"small machine", map[string]string{meminfo: "MemTotal:       1048576 kB\n"}, 2048},
		{"old container", map[string]string{meminfo: "MemTotal:       1048576 kB\n", containerLimitVersion1: "67108864\n"}, 256},
		{"old container without a limit", map[string]string{meminfo: "MemTotal: 1048576 kB\n", containerLimitVersion1: "9223372036854771712\n"}, 2048},
		{"another system", nil, 4096},
	} {
		read := func(name string) ([]byte, error) {
			if text, ok := c.files[name]; ok {
				return []byte(text), nil
			}
			return nil, errors.New("no such file")
		}
		if n := inFlightFor(memory(read, func(string) string { return "" })); n != c.want {
			t.Errorf("%s: %d, want %d", c.name, n, c.want)
		}
	}
	if n := (Config{MaxInFlight: 7}).InFlight(); n != 7 {
		t.Errorf("MAX_IN_FLIGHT=7 means %d", n)
	}
}
