package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/killpoint"
)

// hold opens a session that locks the rows of the statements and then idles in its transaction,
// like the session of an operator that was called away. It returns the session's process id.
func (r *haltRun) hold(statements ...string) (pid int, release func()) {
	conn, err := pgx.Connect(r.ctx, r.stack.PostgresURL)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, sql := range append([]string{`set idle_in_transaction_session_timeout = 0`, `begin`}, statements...) {
		if _, err := conn.Exec(r.ctx, sql); err != nil {
			r.t.Fatalf("%s: %v", sql, err)
		}
	}
	if err := conn.QueryRow(r.ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
		r.t.Fatal(err)
	}
	return pid, func() { _ = conn.Close(context.WithoutCancel(r.ctx)) }
}

func holdAll(r *haltRun) func() {
	_, release := r.hold(r.held...)
	return release
}

// catch halts the first of the processes that decides a group of claims on the locked path,
// while the group has the rows of its drops locked. provoke makes the processes decide such a
// group.
func (r *haltRun) catch(among []*member, provoke func()) (goOn func()) {
	at := func(m *member, file func(string, killpoint.Phase, killpoint.Failure) string) string {
		return filepath.Join(r.dir, m.name, file("claims.decided", killpoint.BeforeIt, killpoint.Halt))
	}
	for _, m := range among {
		if err := os.WriteFile(at(m, killpoint.Armed), nil, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	provoke()
	var caught *member
	for end := time.Now().Add(20 * time.Second); caught == nil; wait(5*time.Millisecond, r.ctx.Done()) {
		if time.Now().After(end) {
			r.t.Fatal("no process decides claims with locked rows")
		}
		for _, m := range among {
			if _, err := os.Stat(at(m, killpoint.Hit)); err == nil {
				caught = m
			}
		}
	}
	for _, m := range among {
		_ = os.Remove(at(m, killpoint.Armed))
	}
	hit := at(caught, killpoint.Hit)
	pid := haltedAt(hit, r.ctx.Done())
	return func() {
		_ = syscall.Kill(pid, syscall.SIGCONT)
		_ = os.Remove(hit)
	}
}

// haltGranting gives coupons of drop A to a list of users, and halts the worker that grants them
// before its transaction ends.
func haltGranting(r *haltRun) func() {
	return r.catch(r.fleet.workers, func() {
		var users []int64
		var ids []string
		for range 50 {
			r.newcomer++
			users, ids = append(users, r.newcomer), append(ids, strconv.FormatInt(r.newcomer, 10))
		}
		r.crowd.tell(r.ctx, users)
		path := fmt.Sprintf("/admin/templates/%d/grants", r.flows[0].template)
		r.crowd.must(r.ctx, call{method: "POST", path: path, body: map[string]any{"user_ids": ids}}, nil)
	})
}

// catchWeb halts the web process while it decides claims of several drops in one group on the
// locked path. A group with a redeem code takes this path; the groups also have claims of users
// that have a coupon of the drop already.
func (r *haltRun) catchWeb(m *member) (goOn func()) {
	ask := func(path string, user int64, body map[string]any) {
		payload, _ := json.Marshal(body)
		go func() { // the process stands: there may be no answer
			_, _ = r.crowd.once(r.ctx, call{method: "POST", path: path, user: user, at: "http://" + m.addr, body: body}, uuid.NewString(), payload)
		}()
	}
	goOn = r.catch([]*member{m}, func() {
		for n := range int64(4) {
			for _, f := range r.flows {
				if f.mode == "durable" && f.drop != few {
					ask("/claims", owners+n, map[string]any{"template_id": strconv.FormatInt(f.template, 10)})
				}
			}
			r.newcomer++
			ask("/redemptions", r.newcomer, map[string]any{"code": r.codes.codes[0]})
			r.codes.codes = r.codes.codes[1:]
		}
	})
	r.avoid(m)
	return goOn
}

// haltWebAndSilence halts one web process, and silences the network between a second web process
// and PostgreSQL in the middle of a group. Requests go to the third web process.
func haltWebAndSilence(r *haltRun) func() {
	goOn, resume := r.stand(r.fleet.webs[0]), silenceInGroup(r)
	return func() {
		goOn()
		resume()
	}
}

// silenceInGroup silences the network between a web process and PostgreSQL while a group of
// claims holds its locks.
func silenceInGroup(r *haltRun) (resume func()) {
	m := r.fleet.webs[1]
	goOn := r.catchWeb(m)
	resume = m.postgres.silence()
	goOn()
	return resume
}

// stand halts the process in the member's place.
func (r *haltRun) stand(m *member) (goOn func()) {
	m.process.Pause()
	r.avoid(m)
	return m.process.Resume
}

// avoid takes the process out of the processes that get requests, as a load balancer would.
func (r *haltRun) avoid(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reachable = slices.DeleteFunc(slices.Clone(r.reachable), func(web string) bool { return web == "http://"+m.addr })
}
