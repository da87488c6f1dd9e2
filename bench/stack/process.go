package stack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A Process is one of the product's programs, built from this checkout.
type Process struct {
	cmd  *exec.Cmd
	Addr string // of its HTTP server
	dir  string
}

// StartProgram builds ./web or ./worker and starts it with the environment
// given; it returns when the program is ready.
func (s *Stack) StartProgram(ctx context.Context, name string, env ...string) (*Process, error) {
	dir, err := os.MkdirTemp("", "dropbell-program-")
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(dir, name)
	build := exec.CommandContext(ctx, "go", "build", "-o", bin, "./"+name)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build %s: %w", name, err)
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(bin), Addr: addr, dir: dir}
	p.cmd.Env = append([]string{"DATABASE_URL=" + s.PostgresURL, "REDIS_URL=" + s.RedisURL, "HTTP_ADDR=" + addr,
		"WORKER_HTTP_ADDR=" + addr, "LOG_LEVEL=warn", "PATH=" + os.Getenv("PATH")}, env...)
	p.cmd.Stdout, p.cmd.Stderr = os.Stderr, os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.waitReady(ctx)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (p *Process) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Addr+"/readyz", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the program did not get ready: %w", ctx.Err())
		}
	}
}

// Memory returns the resident and the peak resident size in MiB.
func (p *Process) Memory() (now, peak float64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "VmRSS:":
			now = kb / 1024
		case "VmHWM:":
			peak = kb / 1024
		}
	}
	return now, peak
}

// Stop ends the program as an operator would.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.dir)
}
