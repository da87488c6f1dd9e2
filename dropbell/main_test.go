package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/localstack/child"
)

// environment is a getenv of pairs.
func environment(pairs ...string) func(string) string {
	set := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return set[name] }
}

// TestCommands: each command reaches its program. A mistake ends with exit status 2 and names
// the help.
func TestCommands(t *testing.T) {
	const away, cache = "postgres://nobody:hunter2@127.0.0.1:1/nothing", "redis://127.0.0.1:1"
	for _, c := range []struct {
		args string
		env  []string
		code int
		says string
	}{
		{"", nil, 2, "see dropbell --help"},
		{"serve", nil, 2, `unknown command "serve"; see dropbell --help`},
		{"all web", nil, 2, "dropbell all takes no argument"},
		{"all", nil, 2, "DATABASE_URL is required"},
		{"all", []string{"DATABASE_URL", away, "REDIS_URL", cache, "HTTP_ADDR", "127.0.0.1:8081"}, 2, "HTTP_ADDR and WORKER_HTTP_ADDR must differ"},
		{"all", []string{"DATABASE_URL", away, "REDIS_URL", cache, "METRICS_ADDR", "127.0.0.1:8081"}, 2, "METRICS_ADDR and WORKER_HTTP_ADDR must differ"},
		{"web", nil, 2, "web --help describes each variable"},
		{"web serve", nil, 2, "see web --help"},
		{"web --help", nil, 0, "web serves the console"},
		{"worker", nil, 2, "worker --help describes each variable"},
		{"worker erase", nil, 2, "usage: worker erase USER"},
		{"migrate", nil, 2, "DATABASE_URL is required"},
		{"migrate now", nil, 2, "takes no argument but contract"},
		{"audit 1", []string{"DATABASE_URL", away}, 2, "template 1 was not audited: the database cannot answer"},
		{"audit --help", nil, 0, "worker audit campaign ID"},
		{"doctor now", nil, 2, "usage: dropbell doctor"},
		{"doctor --help", nil, 0, "worker doctor [-json]"},
		{"rush", nil, 2, "usage: dropbell rush"},
		{"listen", nil, 2, "see dropbell listen --help"},
		{"listen --help", nil, 0, "--forward"},
		{"verify-draw nowhere.json", nil, 2, "the draw cannot be read"},
		{"--version", nil, 0, "dropbell 0."},
		{"--help", nil, 0, "dropbell all"},
		{"help", nil, 0, "WORKER_HTTP_ADDR "},
	} {
		var out bytes.Buffer
		err := command(t.Context(), strings.Fields(c.args), environment(c.env...), &out)
		said := out.String()
		if err != nil {
			said = err.Error()
		}
		if code := config.ExitCode(err); code != c.code || !strings.Contains(said, c.says) || strings.Contains(said, "hunter2") {
			t.Errorf("%q ends with %d, want %d: %s", c.args, code, c.code, said)
		}
	}
}

// TestOneFailureEndsBoth: a program whose address is in use fails. The other program stops, and
// the result is the error of the program that failed first.
func TestOneFailureEndsBoth(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	url, redis := localstack.Database(t), localstack.RedisServer(t).URL()
	for _, c := range []struct{ name, other, says string }{
		{"HTTP_ADDR", "WORKER_HTTP_ADDR", "HTTP_ADDR: "},
		{"WORKER_HTTP_ADDR", "HTTP_ADDR", "operations server: WORKER_HTTP_ADDR: "},
	} {
		out := &journal{}
		err := command(t.Context(), []string{"all"}, environment("DATABASE_URL", url, "REDIS_URL", redis,
			c.name, taken.Addr().String(), c.other, "127.0.0.1:0"), out)
		if err == nil || !strings.HasPrefix(err.Error(), c.says) || config.ExitCode(err) != 1 {
			t.Errorf("%s is taken: %v\n%s", c.name, err, out)
		}
	}
}

// TestAllInOneProcess starts dropbell all as a shop does, waits until web and worker are ready,
// and sends SIGTERM. Both programs end in order.
func TestAllInOneProcess(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "dropbell")
	if err := localstack.BuildProgram(t.Context(), bin, "dropbell/dropbell"); err != nil {
		t.Fatal(err)
	}
	var addresses [2]string
	for i := range addresses {
		port, err := localstack.FreePort(0)
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = "127.0.0.1:" + strconv.Itoa(port)
	}
	log, cmd := &journal{}, exec.Command(bin, "all")
	cmd.Env = []string{"DATABASE_URL=" + localstack.Database(t), "REDIS_URL=" + localstack.RedisServer(t).URL(),
		"HTTP_ADDR=" + addresses[0], "WORKER_HTTP_ADDR=" + addresses[1], "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = log, log
	p, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceValue(func() error { return p.Stop(context.Background(), syscall.SIGTERM, 40*time.Second) })
	defer func() { _ = stop() }()
	for _, address := range addresses {
		awaitReady(t, address, func() error {
			select {
			case <-p.Done():
				return fmt.Errorf("dropbell all ended: %w\n%s", p.Err(), log)
			default:
				return nil
			}
		})
	}
	for address, want := range map[string]string{addresses[0]: "dropbell_http_request_duration_seconds", addresses[1]: "dropbell_outbox"} {
		if text := body(t, "http://"+address+"/metrics"); !strings.Contains(text, want) {
			t.Errorf("%s is not among the measurements of %s", want, address)
		}
	}
	if err := errors.Join(stop(), p.Err()); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	for _, last := range []string{"web has stopped", "worker has stopped"} {
		if !strings.Contains(log.String(), last) {
			t.Errorf("the log lacks %q:\n%s", last, log)
		}
	}
}

func body(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// journal keeps a program's log. It may be written and read concurrently.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write is part of [io.Writer].
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}
