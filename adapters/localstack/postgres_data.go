package localstack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/localstack/child"
)

// dataVersion is the major version that wrote the data, 0 when there is none.
func (p *Postgres) dataVersion() int {
	raw, err := os.ReadFile(filepath.Join(p.home.data, "PG_VERSION"))
	if err != nil {
		return 0
	}
	version, _ := strconv.Atoi(strings.TrimSpace(string(raw))) // damaged: initdb will say so
	return version
}

// initialize makes an empty database cluster in a temporary folder and moves it to its final
// place when it is complete.
func (p *Postgres) initialize(ctx context.Context) error {
	if p.dataVersion() != 0 {
		return nil
	}
	draft := p.home.data + ".new"
	if p.primary != nil {
		if err := p.baseBackup(ctx, draft); err != nil {
			return err
		}
		return os.Rename(draft, p.home.data)
	}
	p.options.say("creating the database files of PostgreSQL %d …", p.program.major)
	if err := os.RemoveAll(draft); err != nil {
		return err
	}
	err := p.initdb(ctx, draft, "C.UTF-8")
	if err != nil { // not every system has that locale
		err = p.initdb(ctx, draft, "C")
	}
	if err != nil {
		return err
	}
	return os.Rename(draft, p.home.data)
}

func (p *Postgres) initdb(ctx context.Context, dir, locale string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := p.account.own(dir); err != nil {
		return err
	}
	args := []string{"-D", dir, "-U", "dropbell", "-A", "trust", "-E", "UTF8", "--locale=" + locale}
	if !p.options.Durable {
		args = append(args, "--no-sync")
	}
	return run(p.account.command(ctx, p.program.env, filepath.Join(p.program.path, "initdb"), args...))
}

// endOrphan stops a server that still runs on this data although the program that started it is
// gone. The lock proves that the program is gone. A pid file of a server that no longer runs is
// removed, because its process id may now belong to an unrelated process.
func (p *Postgres) endOrphan(ctx context.Context) error {
	note := filepath.Join(p.home.data, "postmaster.pid")
	raw, err := os.ReadFile(note)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || !serves(pid, p.home.data) {
		return os.Remove(note)
	}
	p.options.say("stopping the PostgreSQL that an earlier start left behind (process %d)", pid)
	return child.End(ctx, pid, syscall.SIGINT, postgresStop)
}

func errorCode(err error, code string) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == code
}

// withDatabase returns the URL of another database of the same server.
func withDatabase(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		return fmt.Sprintf("invalid:%q", server) // refused when connecting
	}
	u.Path = "/" + name
	return u.String()
}
