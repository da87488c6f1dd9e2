package stack

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of /proc on every Linux there is.
const ticksPerSecond = 100

// CPU returns the processor time the program has used so far.
func (p *Process) CPU() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.child.PID()))
	if err != nil {
		return 0, err
	}
	// The second field, a name in brackets, may hold anything.
	fields := strings.Fields(string(b)[strings.LastIndexByte(string(b), ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", p.child.PID(), len(fields))
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("/proc/%d/stat cannot be read: %q", p.child.PID(), fields[11:13])
	}
	return time.Duration(user+system) * time.Second / ticksPerSecond, nil
}
