package chaos_test

import (
	"context"
	"os"
	"sync"
	"testing"

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
