package localstack

import (
	"os"
	"syscall"
)

// memoryDir returns a directory in memory with room for a test server, or ""
// for the usual place. Making a database is ten times as fast there (measured:
// 10 ms instead of 150 ms on ext4). A TMPDIR that was set is obeyed.
func memoryDir() string {
	const dir, room = "/dev/shm", 2 << 30
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(dir, &fs) != nil || int64(fs.Bavail)*fs.Bsize < room {
		return ""
	}
	return dir
}
