//go:build !linux

package commands

import "dropbell/domain/doctor"

// room says that the file system of path cannot be measured on this system.
func room(path, holds string, needed int64) doctor.Disk {
	return doctor.Disk{Path: path, Holds: holds, Needed: needed, Error: "room is measured on Linux only"}
}
