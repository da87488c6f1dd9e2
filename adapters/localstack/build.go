package localstack

import (
	"context"
	"os/exec"
	"runtime/debug"
)

// GoBuild returns the command that builds a package into the file or directory
// named. The flags that change what is compiled, such as -race, are those of
// this program, so that a test shares what was compiled for the tests.
func GoBuild(ctx context.Context, into, pkg string, flags ...string) *exec.Cmd {
	args := []string{"build", "-o", into}
	if own, ok := debug.ReadBuildInfo(); ok {
		args = append(args, compiledWith(own.Settings)...)
	}
	return exec.CommandContext(ctx, "go", append(append(args, flags...), pkg)...)
}

func compiledWith(settings []debug.BuildSetting) (flags []string) {
	for _, s := range settings {
		if s.Key == "-race" || s.Key == "-gcflags" {
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}
