package scenario

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"dropbell/adapters/localstack/child"
	"dropbell/lab/bench/stack"
)

// Self is this command with another scenario, or with another part of the same scenario.
func Self(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Stderr = os.Stderr
	return cmd
}

// A Server is this command as a server that a scenario calls, in a process of its own.
type Server struct {
	Ready   string // the line that it printed when it listened, with its address
	process *child.Process
}

// Serve starts the server with variables for its environment and returns when it listens.
func Serve(ctx context.Context, env []string, args ...string) (*Server, error) {
	cmd := Self(ctx, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if s.process, err = child.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("bench %s did not listen: %w", strings.Join(args, " "), err)
	}
	s.Ready = strings.TrimSpace(line)
	return s, nil
}

// Stop interrupts the server and waits for its end.
func (s *Server) Stop() {
	_ = s.process.Stop(context.Background(), syscall.SIGINT, 10*time.Second) // it has no data to lose
}

// CPU returns the processor time that the server has used so far.
func (s *Server) CPU() (time.Duration, error) { return stack.CPUOf(s.process.PID()) }
