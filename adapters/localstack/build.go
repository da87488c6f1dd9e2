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
	args := append([]string{"build", "-o", into}, GoFlags()...)
	return exec.CommandContext(ctx, "go", append(append(args, flags...), pkg)...)
}

// GoFlags are the flags that change what is compiled as this program was compiled, for
// commands such as go test that a test starts itself.
func GoFlags() []string {
	own, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	return compiledWith(own.Settings)
}

func compiledWith(settings []debug.BuildSetting) (flags []string) {
	for _, s := range settings {
		if s.Key == "-race" || s.Key == "-gcflags" {
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}
