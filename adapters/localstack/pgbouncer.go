package localstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack/child"
)

const pgbouncerStop = 5 * time.Second

// TransactionPooler starts a PgBouncer in transaction mode until the end of the test, with at
// most sessions connections to the database at url. It returns the URL by which clients reach the
// database through PgBouncer.
func TransactionPooler(tb testing.TB, url string, sessions int) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	pooled, stop, err := startPgBouncer(ctx, os.Stderr, url, sessions)
	if err != nil {
		tb.Fatalf("no PgBouncer for tests: %v", err)
	}
	tb.Cleanup(func() {
		if err := stop(); err != nil {
			tb.Errorf("stop PgBouncer: %v", err)
		}
	})
	return pooled
}

// findPgBouncer returns a PgBouncer, installing one when it may.
func findPgBouncer(ctx context.Context, log io.Writer) (program, error) {
	m := thisMachine()
	get := func(way) error { return m.aptInstall(ctx, log, pgbouncerPackage) }
	return obtain(systemWays(m), lookPgBouncer, get, "PgBouncer is missing: install pgbouncer")
}

func lookPgBouncer() (program, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} { // PATH may lack sbin
		if path, err := exec.LookPath(name); err == nil {
			return program{path: path}, nil
		}
	}
	return program{}, errNotFound
}

// startPgBouncer runs a PgBouncer for the database at the URL server, whose user needs no
// password.
func startPgBouncer(ctx context.Context, log io.Writer, server string, sessions int) (pooled string, stop func() error, err error) {
	p, err := findPgBouncer(ctx, log)
	if err != nil {
		return "", nil, err
	}
	at, err := url.Parse(server)
	if err != nil {
		return "", nil, err
	}
	home, err := temporaryHome(Options{}, "pgbouncer")
	if err != nil {
		return "", nil, err
	}
	var process *child.Process
	stop = func() error {
		var err error
		if process != nil {
			err = process.Stop(context.Background(), syscall.SIGQUIT, pgbouncerStop)
		}
		home.release()
		return err
	}
	acct, err := serverAccount(home.data) // it does not run as root
	if err == nil {
		err = acct.own(home.data)
	}
	if err == nil {
		err = onFreePort(Options{}, "PgBouncer", func(port int) (err error) {
			to := *at
			to.Host = fmt.Sprintf("127.0.0.1:%d", port)
			pooled = to.String()
			process, err = servePgBouncer(ctx, p, acct, home, at, port, sessions)
			if err != nil {
				return err
			}
			return untilConnected(ctx, process, home, pooled)
		})
	}
	if err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return pooled, stop, nil
}

func servePgBouncer(ctx context.Context, p program, acct *account, h home, at *url.URL, port, sessions int) (*child.Process, error) {
	file := filepath.Join(h.data, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
* = host=%s port=%s user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 1000
`, at.Hostname(), at.Port(), at.User.Username(), port, sessions)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	said, err := os.OpenFile(h.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer said.Close() // the child has its own
	// The process outlives ctx, which only bounds the start.
	cmd := acct.command(context.WithoutCancel(ctx), p.env, p.path, file)
	cmd.Stdout, cmd.Stderr = said, said
	return child.Start(cmd, syscall.SIGQUIT)
}

func untilConnected(ctx context.Context, process *child.Process, h home, pooled string) error {
	err := until(ctx, process.Done(), func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, pooled)
		if err != nil {
			return err
		}
		return c.Close(ctx)
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, h.tail())
	}
	return nil
}
