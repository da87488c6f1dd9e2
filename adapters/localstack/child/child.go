// Package child runs programs that must not outlive their parent, however the parent ends.
package child

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a started program.
type Process struct {
	cmd     *exec.Cmd
	dismiss func()
	done    chan struct{}
	err     error
}

// Start runs cmd in a process group of its own. Ctrl-C in a terminal then reaches only the
// parent, which can stop its children in the right order. If the parent dies without stopping
// cmd, cmd receives onOrphan.
func Start(cmd *exec.Cmd, onOrphan syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	setDeathSignal(cmd.SysProcAttr, onOrphan)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p.dismiss = guardProcess(cmd.Process.Pid, onOrphan)
	return p, nil
}

// run keeps its thread for the life of the child. Linux sends the death signal already when the
// thread that started the child ends, not only when the parent process ends.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	close(p.done)
}

// PID returns the process id, also after the process has ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end of the process and returns its result; nil = exit status 0.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends sig. A process that has ended is not an error.
func (p *Process) Signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = p.cmd.Process.Signal(sig) // it may end at this very moment
	}
}

// Stop sends sig and waits for the end of the process. After grace, or when ctx ends, Stop kills
// the process and returns an error.
func (p *Process) Stop(ctx context.Context, sig syscall.Signal, grace time.Duration) error {
	defer p.Forget()
	p.Signal(sig)
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-p.done:
		return nil
	default:
	}
	p.Signal(syscall.SIGKILL)
	<-p.done
	return fmt.Errorf("%s did not stop within %v and was killed", p.cmd.Path, grace)
}

// Forget releases the guard of the process. Call Forget if the process has ended without Stop.
func (p *Process) Forget() {
	if p.dismiss != nil {
		p.dismiss()
	}
}
