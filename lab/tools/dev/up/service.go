package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"dropbell/adapters/localstack/child"
)

// stopGrace is how long web and worker may take to finish their work at a stop. It is a little
// above the limit that they set themselves.
const stopGrace = 12 * time.Second

// service is web or worker: restarted whenever it ends without being stopped.
type service struct {
	name string
	env  []string
	log  *lineLog
	stop context.CancelFunc
}

// run returns when ctx has ended and the service too.
func (v *service) run(ctx context.Context) {
	defer v.log.Close()
	var b backoff
	for ctx.Err() == nil {
		began := time.Now()
		err := v.once(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := b.next(time.Since(began))
		say("%s ended by itself (%v); its last lines:\n%sstarting it again in %v", v.name, err, v.log.Last(), wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (v *service) once(ctx context.Context) error {
	cmd := exec.Command(binary(program), v.name)
	cmd.Env = v.env
	cmd.Stdout, cmd.Stderr = v.log, v.log
	cmd.WaitDelay = time.Second
	// When this command is killed, no process remains that could wait for an orderly end.
	// Killing the program loses no acknowledged work.
	p, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	defer p.Forget()
	if err := os.WriteFile(pidFile(v.name), []byte(strconv.Itoa(p.PID())), 0o644); err != nil {
		say("cannot note the process id of %s: %v", v.name, err)
	}
	defer os.Remove(pidFile(v.name))
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
	}
	if err := p.Stop(context.Background(), syscall.SIGTERM, stopGrace); err != nil {
		say("%v", err)
	}
	return nil
}

func pidFile(name string) string { return filepath.Join(local, name+".pid") }

// backoff doubles the pause as long as a program keeps ending soon.
type backoff struct{ pause time.Duration }

func (b *backoff) next(ran time.Duration) time.Duration {
	if ran > time.Minute {
		b.pause = 0
	}
	b.pause = min(max(2*b.pause, 500*time.Millisecond), 30*time.Second)
	return b.pause
}

// keepAlive restarts a server that ended without being stopped, and stops it at the end. The
// stop waits until a restart is over, because two goroutines must not use a server at once.
func (s *stack) keepAlive(name string, done func() <-chan struct{}, restart, stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		var b backoff
		for began := time.Now(); ; began = time.Now() {
			select {
			case <-ctx.Done():
				return
			case <-done():
			}
			wait := b.next(time.Since(began))
			say("%s ended by itself; starting it again in %v", name, wait)
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			if err := restart(ctx); err != nil && ctx.Err() == nil {
				say("%v", err)
			}
		}
	}()
	s.stops = append(s.stops, func(ctx context.Context) error {
		cancel()
		<-over
		return stop(ctx)
	})
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }
