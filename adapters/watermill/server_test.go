package watermill

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// A redisServer is a redis-server process of one test, without persistence.
type redisServer struct {
	port int
	URL  string
	cmd  *exec.Cmd
}

func startRedis(t *testing.T) *redisServer {
	t.Helper()
	s := &redisServer{port: freePort(t)}
	s.URL = "redis://127.0.0.1:" + strconv.Itoa(s.port)
	s.start(t)
	t.Cleanup(func() { s.kill() })
	return s
}

func (s *redisServer) start(t *testing.T) {
	t.Helper()
	var log bytes.Buffer
	s.cmd = exec.Command("redis-server", "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", t.TempDir())
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client := s.client(t)
	defer client.Close()
	eventually(t, "redis-server answers", func() bool { return client.Ping(context.Background()).Err() == nil })
}

func (s *redisServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *redisServer) client(t *testing.T) *goredis.Client {
	t.Helper()
	options, err := goredis.ParseURL(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return goredis.NewClient(options)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// eventually polls until done holds, for at most twenty seconds.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("still not so after 20s: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}
