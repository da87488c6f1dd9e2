package chaos_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack"
	"dropbell/lab/bench/stack"
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

// killablePrograms are the programs with named points at which they can be made to fail.
var killablePrograms = sync.OnceValues(func() (map[string]string, error) {
	paths := map[string]string{}
	for _, name := range []string{"web", "worker"} {
		paths[name] = filepath.Join(programsDir, "killable-"+name)
		if err := localstack.BuildProgram(context.Background(), paths[name], "dropbell/lab/chaos/killable/"+name); err != nil {
			return nil, err
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
	redis.SetLogger(discardLog{})
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
