//go:build unix && !linux

package child

import (
	"os/exec"
	"strconv"
	"strings"
)

type status struct {
	pid, parent int
	zombie      bool
}

func processes() []status {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,state=").Output()
	if err != nil {
		return nil
	}
	var all []status
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		pid, err1 := strconv.Atoi(f[0])
		parent, err2 := strconv.Atoi(f[1])
		if err1 == nil && err2 == nil {
			all = append(all, status{pid, parent, strings.HasPrefix(f[2], "Z")})
		}
	}
	return all
}

func process(pid int) (status, bool) {
	for _, s := range processes() {
		if s.pid == pid {
			return s, true
		}
	}
	return status{}, false
}

// CommandLine returns the command line of pid; "" = pid is not running.
func CommandLine(pid int) string {
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
