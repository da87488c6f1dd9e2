package localstack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// TestProgramsVariable names the environment variable with the folder for programs that the
// tests of several packages share. The folder belongs to one test run, during which no source
// changes. Without the variable each test builds its own programs.
const TestProgramsVariable = "DROPBELL_TEST_PROGRAMS"

// BuildProgram builds package pkg into the file into. It uses the compiler flags of this
// program, such as -race, so that a test reuses packages that were compiled for the tests. In a
// test run with [TestProgramsVariable] each program is linked once.
func BuildProgram(ctx context.Context, into, pkg string) error {
	folder := os.Getenv(TestProgramsVariable)
	if folder == "" {
		return goBuild(ctx, into, pkg)
	}
	shared, err := sharedProgram(ctx, folder, pkg)
	if err != nil {
		return err
	}
	if err := os.Remove(into); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(into), 0o755); err != nil { // as the go command does
		return err
	}
	if os.Link(shared, into) == nil {
		return nil
	}
	program, err := os.ReadFile(shared) // into is on another file system
	if err != nil {
		return err
	}
	return os.WriteFile(into, program, 0o755)
}

// sharedProgram returns the path of the program in the folder. The first process that needs the
// program builds it there; other processes wait.
func sharedProgram(ctx context.Context, folder, pkg string) (path string, err error) {
	key := sha256.Sum256([]byte(strings.Join(append(GoFlags(), pkg), "\x00")))
	path = filepath.Join(folder, hex.EncodeToString(key[:8]))
	release, err := waitFor(ctx, path+".lock")
	if err != nil {
		return "", err
	}
	defer release()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	draft := path + ".new"
	if err := goBuild(ctx, draft, pkg); err != nil {
		return "", err
	}
	return path, os.Rename(draft, path)
}

func goBuild(ctx context.Context, into, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", into}, GoFlags()...), pkg)...)
	// The compiler and the linker collect garbage only beyond 1 GiB each.
	cmd.Env = append(os.Environ(), "GOGC=off", "GOMEMLIMIT=1GiB")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, said.Bytes())
	}
	return nil
}

// GoFlags returns the flags with which this program was compiled and linked. Tests pass them to
// commands that they start, such as go test.
func GoFlags() []string {
	own, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	return compiledWith(own.Settings)
}

func compiledWith(settings []debug.BuildSetting) (flags []string) {
	for _, s := range settings {
		if s.Key == "-race" || s.Key == "-gcflags" || s.Key == "-ldflags" {
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}
