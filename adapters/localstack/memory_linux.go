package localstack

import (
	"os"
	"syscall"
)

// memoryDir returns a folder in memory with room for a test server; "" = the default folder for
// temporary files. Creating a database is ten times as fast in memory (measured: 10 ms instead
// of 150 ms on ext4). A TMPDIR that is set takes precedence.
func memoryDir() string {
	const dir, room = "/dev/shm", 2 << 30
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(dir, &fs) != nil || int64(fs.Bavail)*fs.Bsize < room {
		return ""
	}
	return dir
}
