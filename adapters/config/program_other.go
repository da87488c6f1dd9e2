//go:build !linux

package config

// releaseProgram does nothing here; see the file for Linux.
func releaseProgram() {}
