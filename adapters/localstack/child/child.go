// Package child runs programs that must not outlive the program that started
// them, however that one ends.
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

// Start runs cmd in a process group of its own, so that Ctrl-C in a terminal
// reaches only its parent, which can then stop things in the right order. When
// the parent dies without stopping it, it receives onOrphan.
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

// run holds on to its thread for the life of the child: Linux sends the death
// signal when the thread that started the child ends, not only when the whole
// parent does.
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

// Err returns how the process ended: nil for exit status 0. It blocks until
// there is an answer.
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

// Stop sends sig and waits for the end. A process still there after grace, or
// when ctx ends, is killed; the error says so.
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

// Forget releases what watches over the process. Call it when the process has
// ended in another way than through Stop.
func (p *Process) Forget() {
	if p.dismiss != nil {
		p.dismiss()
	}
}
