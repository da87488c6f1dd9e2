//go:build unix && !linux

package child

import (
	"strconv"
	"syscall"
)

func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

// guardProcess does with a small shell what a signal of the kernel does on Linux.
func guardProcess(pid int, sig syscall.Signal) (dismiss func()) {
	return guard(`kill -s "$1" "$2"`, strconv.Itoa(int(sig)), strconv.Itoa(pid))
}
