package stack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/localstack/child"
)

// stopFor is how long a program may take to end in order.
const stopFor = 40 * time.Second

// A Process is one of the product's programs, built from this checkout. It ends when the program
// that started it ends.
type Process struct {
	Addr  string // of its HTTP server
	child *child.Process
	built func() // removes the program, if it was built for this process alone
}

// Launch says how to start a program.
type Launch struct {
	Addr string    // of its HTTP server; empty = any
	Log  io.Writer // nil = standard error
	Args []string
	Env  []string
}

// Build builds ./web, ./worker or ./dropbell into dir and returns its path.
func Build(ctx context.Context, dir, name string) (string, error) {
	bin := filepath.Join(dir, name)
	return bin, localstack.BuildProgram(ctx, bin, "dropbell/"+name)
}

// Programs returns the folder with web and worker: bin, or, if bin is empty, a temporary folder
// in which it builds both. remove removes the temporary folder.
func Programs(ctx context.Context, bin string) (folder string, remove func(), err error) {
	if bin != "" {
		return bin, func() {}, nil
	}
	if folder, err = os.MkdirTemp("", "dropbell-programs-"); err != nil {
		return "", nil, err
	}
	dismiss := child.RemoveOrphaned(folder)
	remove = func() {
		_ = os.RemoveAll(folder)
		dismiss()
	}
	for _, name := range []string{"web", "worker"} {
		if _, err := Build(ctx, folder, name); err != nil {
			remove()
			return "", nil, err
		}
	}
	return folder, remove, nil
}

// StartProgram builds ./web or ./worker and starts it with the environment env. It returns when
// the program is ready.
func (s *Stack) StartProgram(ctx context.Context, name string, env ...string) (*Process, error) {
	dir, err := os.MkdirTemp("", "dropbell-program-")
	if err != nil {
		return nil, err
	}
	dismiss := child.RemoveOrphaned(dir)
	remove := func() {
		_ = os.RemoveAll(dir)
		dismiss()
	}
	bin, err := Build(ctx, dir, name)
	if err != nil {
		remove()
		return nil, err
	}
	p, err := s.Launch(bin, Launch{Env: env})
	if err != nil {
		remove()
		return nil, err
	}
	p.built = remove
	return p, p.Ready(ctx, 30*time.Second)
}

// StartBuilt is StartProgram with the program in the folder bin, unless bin is empty.
func (s *Stack) StartBuilt(ctx context.Context, bin, name string, env ...string) (*Process, error) {
	if bin == "" {
		return s.StartProgram(ctx, name, env...)
	}
	p, err := s.Launch(filepath.Join(bin, name), Launch{Env: env})
	if err != nil {
		return nil, err
	}
	return p, p.Ready(ctx, 30*time.Second)
}

// Launch starts a built program and does not wait until it is ready.
func (s *Stack) Launch(bin string, l Launch) (*Process, error) {
	if l.Addr == "" {
		port, err := localstack.FreePort(0)
		if err != nil {
			return nil, err
		}
		l.Addr = "127.0.0.1:" + strconv.Itoa(port)
	}
	if l.Log == nil {
		l.Log = os.Stderr
	}
	cmd := exec.Command(bin, l.Args...)
	cmd.Env = append([]string{"DATABASE_URL=" + s.PostgresURL, "REDIS_URL=" + s.RedisURL, "HTTP_ADDR=" + l.Addr,
		"WORKER_HTTP_ADDR=" + l.Addr, "LOG_LEVEL=warn", "PATH=" + os.Getenv("PATH")}, l.Env...)
	cmd.Stdout, cmd.Stderr = l.Log, l.Log
	c, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	return &Process{Addr: l.Addr, child: c}, nil
}

// Ready returns once the program reports that it is ready. It returns an error if the program
// ends or is not ready in time.
func (p *Process) Ready(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if p.answers(ctx) {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.child.Done():
			return fmt.Errorf("the program ended at once: %w", p.child.Err())
		case <-ctx.Done():
			return fmt.Errorf("the program did not get ready: %w", ctx.Err())
		}
	}
}

func (p *Process) answers(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Addr+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Memory returns the resident and the peak resident size in MiB.
func (p *Process) Memory() (now, peak float64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.child.PID()))
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

// ForgetPeak restarts the peak of [Process.Memory] from the memory in use now.
func (p *Process) ForgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.child.PID()), []byte("5"), 0o200)
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.child.Done() }

// Err returns how the program ended; it waits for the end.
func (p *Process) Err() error { return p.child.Err() }

// Pause halts the program, as a virtual machine that is moved does.
func (p *Process) Pause() { p.child.Signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (p *Process) Resume() { p.child.Signal(syscall.SIGCONT) }

// Kill ends the program with SIGKILL and returns when it is gone.
func (p *Process) Kill() {
	defer p.child.Forget()
	p.child.Signal(syscall.SIGKILL)
	<-p.child.Done()
}

// Stop ends the program as an operator would. [Process.Err] tells whether the program ended
// without an error.
func (p *Process) Stop() {
	_ = p.child.Stop(context.Background(), syscall.SIGTERM, stopFor)
	if p.built != nil {
		p.built()
	}
}
