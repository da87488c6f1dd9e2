package chaos_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"dropbell/adapters/localstack"
	"dropbell/bench/stack"
)

// programs builds both programs, once for all tests, and returns their paths.
var programs = sync.OnceValues(func() (map[string]string, error) {
	paths := map[string]string{}
	for _, name := range []string{"web", "worker"} {
		path, err := stack.Build(context.Background(), programsDir, name)
		if err != nil {
			return nil, err
		}
		paths[name] = path
	}
	return paths, nil
})

// mortals are the programs with named points at which they can be made to fail.
var mortals = sync.OnceValues(func() (map[string]string, error) {
	paths := map[string]string{}
	for _, name := range []string{"web", "worker"} {
		paths[name] = filepath.Join(programsDir, "mortal-"+name)
		build := localstack.GoBuild(context.Background(), paths[name], "dropbell/"+name, "-tags", "killpoints")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("build %s: %w", name, err)
		}
	}
	return paths, nil
})

var programsDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dropbell-chaos-")
	if err != nil {
		panic(err)
	}
	programsDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
