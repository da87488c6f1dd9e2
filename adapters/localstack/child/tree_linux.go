package child

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

type status struct {
	pid, parent int
	zombie      bool
}

// processes reads /proc, because ps is not on every machine.
func processes() []status {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []status
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, ok := process(pid); ok { // else it ended meanwhile
			all = append(all, s)
		}
	}
	return all
}

func process(pid int) (status, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return status{}, false
	}
	return parseStat(pid, raw)
}

// parseStat reads "pid (name) state ppid …". The name may contain spaces and parentheses.
func parseStat(pid int, raw []byte) (status, bool) {
	end := bytes.LastIndexByte(raw, ')')
	if end < 0 {
		return status{}, false
	}
	fields := strings.Fields(string(raw[end+1:]))
	if len(fields) < 2 {
		return status{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return status{pid: pid, parent: parent, zombie: fields[0] == "Z" || fields[0] == "X"}, err == nil
}

// CommandLine returns the command line of pid; "" = pid is not running.
func CommandLine(pid int) string {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(bytes.ReplaceAll(raw, []byte{0}, []byte{' '})))
}
