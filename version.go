// Package dropbell holds what all programs of a release have in common: its
// version.
package dropbell

import (
	_ "embed"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

//go:embed VERSION
var version string

// Version returns the version of this source tree, from the file VERSION
// (https://semver.org); "-dev" at its end means that it was not released.
func Version() string { return strings.TrimSpace(version) }

// About returns the line with which a program answers --version: its name, the
// version, the commit it was built from where that is known, and the platform.
func About(program string) string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = ", commit " + s.Value
			}
		}
	}
	return fmt.Sprintf("%s %s%s, %s %s/%s", program, Version(), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
