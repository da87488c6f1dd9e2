//go:build chaos

package chaos_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestHaltsFull is TestHaltsShort with all processes and servers that can halt, for 1 to 60
// seconds each.
func TestHaltsFull(t *testing.T) { standStill(t, fullHalts(), 10*time.Second, true) }

func fullHalts() (list []halting) {
	list = append(list, shortHalts...)
	for i, rows := range []string{"the rows of drop A and its gate", "the gate of drop A", "the shards of the gate of drop A", "the slots of drop A", "the coupons of drop A"} {
		list = append(list, halting{"a session holds " + rows, 10 * time.Second, 0, true, func(r *haltRun) func() {
			_, release := r.hold(r.held[i])
			return release
		}})
	}
	list = append(list,
		halting{"a web process stands in the middle of a group", time.Minute, endedWithin, false, func(r *haltRun) func() { return r.catchWeb(r.fleet.webs[0]) }},
		halting{"a web process loses PostgreSQL in the middle of a group", time.Minute, endedWithin, false, silenceInGroup},
		halting{"PostgreSQL's process of a session that holds rows of drop A stands", time.Minute, 0, true, haltBackend},
		halting{"a worker stands that grants coupons of drop A", 20 * time.Second, 0, false, haltGranting})
	for _, lasts := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		list = append(list,
			halting{"a web process stands", lasts, endedWithin, false, func(r *haltRun) func() { return r.stand(r.fleet.webs[2]) }},
			halting{"a worker stands", lasts, endedWithin, false, func(r *haltRun) func() { return r.stand(r.fleet.workers[1]) }})
	}
	// A process and a server that its network does not reach.
	for _, lost := range []struct {
		kind, server string
		of           func(*haltRun) (*member, *proxy)
	}{
		{"a web process", "PostgreSQL", func(r *haltRun) (*member, *proxy) { m := r.fleet.webs[0]; return m, m.postgres }},
		{"a web process", "Redis", func(r *haltRun) (*member, *proxy) { m := r.fleet.webs[0]; return m, m.redis }},
		{"a worker", "PostgreSQL", func(r *haltRun) (*member, *proxy) { m := r.fleet.workers[0]; return m, m.postgres }},
		{"a worker", "Redis", func(r *haltRun) (*member, *proxy) { m := r.fleet.workers[0]; return m, m.redis }},
	} {
		list = append(list, halting{fmt.Sprintf("%s loses %s without a word", lost.kind, lost.server), 20 * time.Second, endedWithin, false, func(r *haltRun) func() {
			m, p := lost.of(r)
			r.avoid(m)
			return p.silence()
		}})
	}
	return list
}

// haltBackend holds rows of drop A by a session whose process PostgreSQL cannot end.
func haltBackend(r *haltRun) func() {
	pid, release := r.hold(r.held...)
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	return func() {
		_ = syscall.Kill(pid, syscall.SIGCONT)
		release()
	}
}
