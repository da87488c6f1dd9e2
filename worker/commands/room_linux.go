package commands

import (
	"golang.org/x/sys/unix"

	"dropbell/domain/doctor"
)

// room measures the file system of path, of which needed bytes should be free.
func room(path, holds string, needed int64) doctor.Disk {
	d := doctor.Disk{Path: path, Holds: holds, Needed: needed}
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		d.Error = err.Error()
		return d
	}
	d.Free, d.Size = int64(s.Bavail)*s.Bsize, int64(s.Blocks)*s.Bsize
	return d
}
