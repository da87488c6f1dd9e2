package config

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// releaseProgram unmaps the pages of the program's file (code and constants) from this process.
// The process maps the pages that it needs again from the system's page cache, which reads the
// file only if memory was scarce. Two fifths of the file were needed by the start alone.
// Mappings with pages private to this process, such as relocated addresses, are not unmapped.
func releaseProgram() {
	for _, m := range programMappings() {
		// An error leaves the pages where they are.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// programMappings returns the mappings of the program's file that are not writable and have no
// pages that were written to, in memory or swapped out. It returns nothing if the mappings
// cannot be read. See proc(5).
func programMappings() (list []mapping) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil
	}
	defer f.Close()
	var m mapping
	ours, clean := false, 0
	end := func() {
		if ours && clean == 2 {
			list = append(list, m)
		}
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		var next mapping
		var perms string
		if n, _ := fmt.Sscanf(line, "%x-%x %4s", &next.from, &next.to, &perms); n == 3 {
			end()
			m, ours, clean = next, strings.HasSuffix(line, " "+program) && !strings.Contains(perms, "w"), 0
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		if (name == "Anonymous" || name == "Swap") && strings.TrimSpace(value) == "0 kB" {
			clean++
		}
	}
	end()
	return list
}
