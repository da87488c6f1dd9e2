package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/localstack/child"
	"dropbell/musttest"
)

// checkout is a stand-in for this repository, with a web and a worker that only record the
// requests that they get.
type checkout struct{ dir string }

func newCheckout(t *testing.T) checkout {
	t.Helper()
	dir, err := os.MkdirTemp("", "up-test-") // PostgreSQL's account must be able to enter
	musttest.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	musttest.OK(t, os.Chmod(dir, 0o755))
	musttest.OK(t, os.CopyFS(dir, os.DirFS("testdata/fake")))
	musttest.OK(t, localstack.BuildProgram(t.Context(), filepath.Join(dir, binary("up")), "dropbell/lab/tools/dev/up"))
	return checkout{dir}
}

// terminal is a running up and its output.
type terminal struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer
	end chan struct{}
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *terminal) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// start runs a command line in the checkout and waits until all is running.
func (c checkout) start(t *testing.T, line ...string) *terminal {
	t.Helper()
	s := &terminal{cmd: exec.Command(line[0], line[1:]...), end: make(chan struct{})}
	s.cmd.Dir = c.dir
	s.cmd.Stdout, s.cmd.Stderr = s, s
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, name := range []string{"DATABASE_URL", "REDIS_URL", "HTTP_ADDR", "PUBLIC_URL", "DEMO", "ADMIN_PASSWORD"} {
		s.cmd.Env = append(s.cmd.Env, name+"=")
	}
	s.cmd.Env = append(os.Environ(), s.cmd.Env...)
	musttest.OK(t, s.cmd.Start())
	go func() {
		s.cmd.Wait()
		close(s.end)
	}()
	t.Cleanup(func() {
		syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		if t.Failed() {
			t.Logf("up said:\n%s", s.said())
		}
	})
	eventually(t, "the block is printed", func() bool { return strings.Contains(s.said(), "Ctrl-C stops") })
	return s
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(90 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

func (s *terminal) find(t *testing.T, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(s.said())
	if m == nil {
		t.Fatalf("it did not say %s", pattern)
	}
	return m[1]
}

func (c checkout) pid(t *testing.T, file string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(c.dir, local, file))
	musttest.OK(t, err)
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(first)
	musttest.OK(t, err)
	return pid
}

// servers are the four processes besides up itself.
func (c checkout) servers(t *testing.T) []int {
	t.Helper()
	var pids []int
	for _, file := range []string{"web.pid", "worker.pid", "postgres/postmaster.pid", "redis/redis.pid"} {
		pid := c.pid(t, file)
		if !child.Alive(pid) {
			t.Fatalf("%s names %d, which does not run", file, pid)
		}
		pids = append(pids, pid)
	}
	return pids
}

func mustEnd(t *testing.T, pids []int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := child.Gone(ctx, pids...); err != nil {
		t.Error(err)
	}
}

func get(url string) string {
	response, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(response.Body)
	return string(raw)
}

// recorded returns the requests that the stand-in for web got so far.
func (c checkout) recorded(t *testing.T, url string) (r struct {
	Keys      map[string]int
	Users     int
	Templates []struct{ State string }
	Reserved  map[string]int
}) {
	t.Helper()
	response, err := http.Post(url+"/save", "", nil)
	musttest.OK(t, err)
	response.Body.Close()
	raw, err := os.ReadFile(filepath.Join(c.dir, "fake.json"))
	musttest.OK(t, err)
	musttest.OK(t, json.Unmarshal(raw, &r))
	return r
}
