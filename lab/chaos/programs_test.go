package chaos_test

import (
	"context"
	"errors"
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
	return together(func(name string) (string, error) { return stack.Build(context.Background(), programsDir, name) })
})

// killablePrograms are the programs with named points at which they can be made to fail.
var killablePrograms = sync.OnceValues(func() (map[string]string, error) {
	return together(func(name string) (string, error) {
		path := filepath.Join(programsDir, "killable-"+name)
		return path, localstack.BuildProgram(context.Background(), path, "dropbell/lab/chaos/killable/"+name)
	})
})

// together builds both programs at the same time, since linking uses one processor.
func together(build func(name string) (path string, err error)) (map[string]string, error) {
	names, paths, errs := [2]string{"web", "worker"}, [2]string{}, [2]error{}
	var both sync.WaitGroup
	for i, name := range names {
		both.Go(func() { paths[i], errs[i] = build(name) })
	}
	both.Wait()
	return map[string]string{names[0]: paths[0], names[1]: paths[1]}, errors.Join(errs[:]...)
}

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
