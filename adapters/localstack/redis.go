package localstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack/child"
)

const (
	redisStart = 60 * time.Second // reading a long append-only file
	redisStop  = 10 * time.Second
)

// Redis is a running Redis server. It is not safe for concurrent use.
type Redis struct {
	options Options
	program program
	home    home
	port    int
	process *child.Process
}

// StartRedis starts Redis, empty or with the data in o.Dir. If this machine has no Redis, it
// installs one first. If no Redis can be installed, a server with a Dir is replaced by a
// stand-in that loses its data at the end. A temporary server gets no stand-in, because tests
// need a real Redis.
func StartRedis(ctx context.Context, o Options) (*Redis, error) {
	h, err := openHome(ctx, o, "redis")
	if err != nil {
		return nil, err
	}
	r := &Redis{options: o, home: h}
	if err := r.begin(ctx); err != nil {
		h.release()
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	return r, nil
}

func (r *Redis) begin(ctx context.Context) (err error) {
	if r.program, err = findRedis(ctx, r.options.Log, r.options.Dir != ""); err != nil {
		return err
	}
	if r.program.standIn {
		r.options.say("\n*** NO REDIS FOUND: using a stand-in in memory. ITS DATA IS NOT KEPT. ***\n" +
			"*** Reminders are safe (they are in PostgreSQL); install redis-server for real use. ***\n")
	}
	if err := os.MkdirAll(r.home.data, 0o700); err != nil {
		return err
	}
	if err := r.endOrphan(ctx); err != nil {
		return err
	}
	return onFreePort(r.options, "Redis", func(port int) error {
		r.port = port
		return r.serve(ctx)
	})
}

// URL names database 0.
func (r *Redis) URL() string { return fmt.Sprintf("redis://127.0.0.1:%d/0", r.port) }

// Port is where the server listens on 127.0.0.1.
func (r *Redis) Port() int { return r.port }

func (r *Redis) serve(ctx context.Context) error {
	log, err := os.OpenFile(r.home.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	var caller *account
	// The server outlives ctx, which only bounds the start.
	cmd := caller.command(context.Background(), r.program.env, r.program.path, r.arguments()...)
	cmd.Stdout, cmd.Stderr = log, log
	if r.process, err = child.Start(cmd, r.endSignal()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, redisStart)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: r.addr(), MaxRetries: -1, DialerRetries: 1, DialTimeout: time.Second})
	defer client.Close()
	err = until(ctx, r.process.Done(), func(ctx context.Context) error {
		// The client library complains on the terminal about a closed port.
		probe, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.addr())
		if err != nil {
			return err
		}
		_ = probe.Close()
		return client.Ping(ctx).Err()
	})
	if err != nil {
		_ = r.process.Stop(context.WithoutCancel(ctx), syscall.SIGTERM, redisStop) // the start failed already
		return fmt.Errorf("%w\n%s", err, r.home.tail())
	}
	return nil
}

func (r *Redis) addr() string { return "127.0.0.1:" + strconv.Itoa(r.port) }

func (r *Redis) arguments() []string {
	if r.program.standIn {
		return []string{r.addr()}
	}
	// Without "always" a write may be lost when the machine crashes, but not when only the
	// server crashes: the write reaches the operating system before the server answers.
	fsync := "no"
	if r.options.Durable {
		fsync = "always"
	}
	arguments := []string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(r.port), "--dir", r.home.data,
		"--pidfile", r.pidFile(), "--set-proc-title", "no", "--save", "",
		"--appendonly", "yes", "--appendfsync", fsync, "--maxmemory-policy", "noeviction",
	}
	if r.options.Cluster {
		arguments = append(arguments, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000",
			"--cluster-require-full-coverage", "no")
	}
	return arguments
}

func (r *Redis) pidFile() string { return filepath.Join(r.home.data, "redis.pid") }

// Stop ends the server in order, and removes its temporary folder. For a stopped or killed
// server it only removes the folder.
func (r *Redis) Stop(ctx context.Context) error {
	err := r.process.Stop(ctx, r.endSignal(), redisStop)
	r.home.release()
	return err
}

// endSignal is the signal that stops the server. A server whose data is kept ends in order,
// which takes Redis a tenth of a second. A temporary server is killed.
func (r *Redis) endSignal() syscall.Signal {
	if r.options.Dir == "" {
		return syscall.SIGKILL
	}
	return syscall.SIGTERM
}

// Kill ends the server with SIGKILL, as a crash would.
func (r *Redis) Kill() error {
	defer r.process.Forget()
	r.process.Signal(syscall.SIGKILL)
	<-r.process.Done()
	return nil
}

// Restart stops a running server and starts it on the same port, with its data, or without data
// if empty is true.
func (r *Redis) Restart(ctx context.Context, empty bool) error {
	if err := r.process.Stop(ctx, syscall.SIGTERM, redisStop); err != nil {
		return err
	}
	if empty {
		if err := errors.Join(os.RemoveAll(r.home.data), os.MkdirAll(r.home.data, 0o700)); err != nil {
			return err
		}
	}
	if err := r.serve(ctx); err != nil {
		return fmt.Errorf("restart Redis: %w", err)
	}
	return nil
}

// Done is closed when the server has ended.
func (r *Redis) Done() <-chan struct{} { return r.process.Done() }

// endOrphan stops a server that still runs on this data although the program that started it is
// gone.
func (r *Redis) endOrphan(ctx context.Context) error {
	raw, err := os.ReadFile(r.pidFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || !strings.Contains(child.CommandLine(pid), "--dir "+r.home.data) {
		return os.Remove(r.pidFile())
	}
	r.options.say("stopping the Redis that an earlier start left behind (process %d)", pid)
	return child.End(ctx, pid, syscall.SIGTERM, redisStop)
}
