//go:build !linux

package pg

import "syscall"

// limitUnanswered does nothing on systems where only keepalives detect a failed
// machine.
func limitUnanswered(string, string, syscall.RawConn) error { return nil }
