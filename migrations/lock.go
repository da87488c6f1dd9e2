package migrations

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// askEvery is the interval at which a process that waits for the migrations of
// another process tries the lock. It polls instead of waiting in the database: a
// waiting statement keeps a snapshot, and a concurrent index build of the other
// process waits for old snapshots.
const askEvery = time.Second

// reportingLock is the lock under which one step is applied. It reports that it
// waits, and the name of the step that begins.
type reportingLock struct {
	files   fs.FS
	sources []*goose.Source
	tell    func(line string)
	waited  bool
}

// SessionLock takes the lock for the session of conn. While another process holds
// the lock it waits, until ctx ends.
func (t *reportingLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	for {
		var mine bool
		if err := conn.QueryRowContext(ctx, `select pg_try_advisory_lock($1)`, int64(lock.DefaultLockID)).Scan(&mine); err != nil {
			return fmt.Errorf("lock for migrations: %w", err)
		}
		if mine {
			return t.begins(ctx, conn)
		}
		if !t.waited {
			t.waited = true
			t.tell(t.waiting(ctx, conn))
		}
		again := time.NewTimer(askEvery)
		select {
		case <-ctx.Done():
			again.Stop()
			return fmt.Errorf("wait for another process' migrations: %w", ctx.Err())
		case <-again.C:
		}
	}
}

// waiting says for whom.
func (t *reportingLock) waiting(ctx context.Context, conn *sql.Conn) string {
	var pid int
	err := conn.QueryRowContext(ctx, `select pid from pg_locks where locktype = 'advisory' and granted and objsubid = 1
		and database = (select oid from pg_database where datname = current_database())
		and (classid::bigint << 32) | objid::bigint = $1`, int64(lock.DefaultLockID)).Scan(&pid)
	if err != nil { // it has just gone, or its identity may not be seen
		return "another process is migrating this database; waiting until it is done"
	}
	return fmt.Sprintf("another process is migrating this database (pid %d of pg_stat_activity); waiting until it is done", pid)
}

// begins reports the next step, unless the last holder of the lock has applied all
// steps.
func (t *reportingLock) begins(ctx context.Context, conn *sql.Conn) error {
	t.waited = false
	var have int64
	if err := conn.QueryRowContext(ctx, `select coalesce(max(version_id), 0) from goose_db_version`).Scan(&have); err != nil {
		return errors.Join(err, t.SessionUnlock(context.WithoutCancel(ctx), conn))
	}
	for _, s := range t.sources {
		if s.Version > have {
			t.tell("migration " + path.Base(s.Path) + " begins")
			return limitLocks(ctx, conn, t.files, s)
		}
	}
	return nil
}

// lockTimeout is how long a step waits for a table. Every other statement that
// needs the table queues behind a waiting step.
const lockTimeout = 2 * time.Second

// limitLocks makes the step give up waiting for locks after [lockTimeout]. Steps
// outside a transaction are not limited: a concurrent index build waits for old
// snapshots, blocks no other statement meanwhile, and would leave an invalid index.
func limitLocks(ctx context.Context, conn *sql.Conn, files fs.FS, s *goose.Source) error {
	text, err := fs.ReadFile(files, s.Path)
	if err != nil {
		return err
	}
	limit := lockTimeout
	if bytes.Contains(text, []byte("+goose NO TRANSACTION")) {
		limit = 0
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf(`set lock_timeout = %d`, limit.Milliseconds()))
	return err
}

// SessionUnlock gives the lock back.
func (t *reportingLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, `set lock_timeout = 0`); err != nil {
		return fmt.Errorf("unlock after migrations: %w", err)
	}
	if _, err := conn.ExecContext(ctx, `select pg_advisory_unlock($1)`, int64(lock.DefaultLockID)); err != nil {
		return fmt.Errorf("unlock after migrations: %w", err)
	}
	return nil
}
