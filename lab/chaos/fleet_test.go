package chaos_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/lab/bench/stack"
)

const (
	adminKey  = "dbk_chaos_0123456789abcdefghij"
	jwtSecret = "chaos-chaos-chaos-chaos-chaos-chaos"
	// linkSecret makes every reader's message their own.
	linkSecret = "chaos-chaos-chaos-chaos-chaos-chaos"
)

// A fleet is the product's processes, each started again when it was killed.
type fleet struct {
	t     *testing.T
	stack *stack.Stack
	sink  *sink // nil = no providers
	// providers are the variables of further providers for a process; may be nil.
	providers func(name string) []string
	env       []string
	// proxied processes reach PostgreSQL and Redis through proxies of their own.
	proxied bool
	shop    *shopServer
	log     *os.File
	bins    map[string]string

	mu      sync.Mutex
	webs    []*member
	workers []*member
	started int
	killed  map[string]time.Time // by process name
	halted  map[string]bool
	ending  bool
	// killable processes can be killed, halted or made to fail at points that the test names.
	// Killed processes are started again.
	killable bool
}

// A member is one place of the fleet; processes come and go in it.
type member struct {
	kind    string
	addr    string
	name    string // of the process that runs here now
	process *stack.Process
	up      bool
	// postgres and redis are the proxies of a proxied process.
	postgres, redis *proxy
}

// launch starts the given numbers of processes of f, and ends them with the test. The shop's
// server listens until then.
func launch(ctx context.Context, f *fleet, webs, workers int) *fleet {
	t := f.t
	build := programs
	if f.killable {
		build = killablePrograms
	}
	var err error
	if f.bins, err = build(); err != nil {
		t.Fatal(err)
	}
	f.shop = openShop(ctx, t, f.stack)
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "programs.log"))
	if err != nil {
		t.Fatal(err)
	}
	f.log, f.killed, f.halted = log, map[string]time.Time{}, map[string]bool{}
	for range webs {
		f.webs = append(f.webs, f.place("web"))
	}
	for range workers {
		f.workers = append(f.workers, f.place("worker"))
	}
	for _, m := range append(f.webs, f.workers...) {
		f.start(m)
		if err := m.process.Ready(ctx, time.Minute); err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
	}
	for _, m := range f.webs {
		f.complete(ctx, m)
	}
	t.Cleanup(f.end)
	return f
}

// complete waits until the web process answers for all databases.
func (f *fleet) complete(ctx context.Context, m *member) {
	for end := time.Now().Add(time.Minute); ; wait(50*time.Millisecond, ctx.Done()) {
		var text []byte
		r, err := http.Get("http://" + m.addr + "/readyz")
		if err == nil {
			text, err = io.ReadAll(r.Body)
			_ = r.Body.Close()
		}
		if err == nil && !bytes.Contains(text, []byte("cell ")) {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("%s: %s %v", m.name, text, err)
		}
	}
}

func (f *fleet) place(kind string) *member {
	port, err := localstack.FreePort(0)
	if err != nil {
		f.t.Fatal(err)
	}
	m := &member{kind: kind, addr: fmt.Sprintf("127.0.0.1:%d", port)}
	if f.proxied {
		m.postgres, m.redis = newProxy(f.t, f.stack.PostgresURL), newProxy(f.t, f.stack.RedisURL)
	}
	return m
}

// start runs a new process in the member's place, under a new name. It does not wait until the
// process is ready, since the process may have to wait for its servers.
func (f *fleet) start(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ending {
		return
	}
	f.started++
	m.name = fmt.Sprintf("%s-%d", m.kind, f.started)
	bin := f.bins[m.kind]
	env := append(slices.Clone(f.env), f.shop.env()...)
	if f.proxied {
		env = append(env, "DATABASE_URL="+m.postgres.url, "REDIS_URL="+m.redis.url)
	}
	if f.sink != nil {
		env = append(env, f.sink.env(m.name)...)
	}
	if f.providers != nil {
		env = append(env, f.providers(m.name)...)
	}
	env = append(env, "AUTH_JWT_SECRET="+jwtSecret, "ADMIN_API_KEY="+adminKey, "RATE_LIMIT_PER_MINUTE=0",
		"LINK_SECRET="+linkSecret)
	p, err := f.stack.Launch(bin, stack.Launch{Addr: m.addr, Log: f.log, Env: env})
	if err != nil {
		f.t.Errorf("start %s: %v", m.name, err)
		return
	}
	m.process, m.up = p, true
	go f.watch(m, m.name, p)
}

// watch fails the test if a process ends that the test has not ended: programs must wait for
// missing servers.
func (f *fleet) watch(m *member, name string, p *stack.Process) {
	<-p.Done()
	f.mu.Lock()
	_, killed := f.killed[name]
	expected := killed || f.ending
	revive := !expected && f.killable && p.Err() != nil && strings.Contains(p.Err().Error(), "killed")
	if revive {
		f.killed[name], m.up = time.Now(), false
	}
	f.mu.Unlock()
	switch {
	case revive:
		f.start(m)
	case !expected:
		f.t.Errorf("%s ended by itself: %v", name, p.Err())
	}
}

// kill ends the process in the member's place with kill -9 and returns the name of the process.
// If no process runs there, kill does nothing.
func (f *fleet) kill(m *member) (name string, ok bool) {
	f.mu.Lock()
	if !m.up {
		f.mu.Unlock()
		return "", false
	}
	name, m.up = m.name, false
	f.killed[name] = time.Now()
	f.mu.Unlock()
	m.process.Kill()
	return name, true
}

// memberOf returns the place in which the process runs or ran last.
func (f *fleet) memberOf(name string) *member {
	m, ok := f.placeOf(name, func(m *member) bool { return true })
	if !ok {
		f.t.Fatalf("no process is called %q", name)
	}
	return m
}

// running returns the place of the process, if it runs.
func (f *fleet) running(name string) (*member, bool) {
	return f.placeOf(name, func(m *member) bool { return m.up })
}

func (f *fleet) placeOf(name string, ok func(*member) bool) (*member, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range append(append([]*member{}, f.webs...), f.workers...) {
		if m.name == name && ok(m) {
			return m, true
		}
	}
	return nil, false
}

// killSenders kills workers, kills times, while messages are sent. Each kill comes after a
// further share of the messages has arrived, and hits the running worker that handed over the
// last message.
func (w *system) killSenders(kills, messages int, arrived func() []arrival) {
	step := messages / (kills + 2)
	for i := range kills {
		for limit := time.Now().Add(time.Minute); len(arrived()) < (i+1)*step; wait(2*time.Millisecond, w.ctx.Done()) {
			if time.Now().After(limit) {
				w.t.Fatalf("only %d messages have arrived", len(arrived()))
			}
		}
		list := arrived()
		m := w.fleet.sender(list)
		if name, ok := w.fleet.kill(m); ok {
			w.say("killed %s after %d messages", name, len(list))
			w.fleet.start(m)
		}
	}
}

// sender is the running worker that handed over a message last.
func (f *fleet) sender(list []arrival) *member {
	for _, a := range slices.Backward(list) {
		if m, ok := f.running(a.worker); ok {
			return m
		}
	}
	return f.workers[0]
}

// beyondLeases is longer than a worker's leases last: other workers take its work over.
const beyondLeases = 13 * time.Second

// halt stops the process in the member's place for as long, and lets it go on.
func (f *fleet) halt(m *member, lasting time.Duration, over <-chan struct{}) (name string, ok bool) {
	f.mu.Lock()
	if !m.up {
		f.mu.Unlock()
		return "", false
	}
	name, m.up = m.name, false
	f.halted[name] = true
	f.mu.Unlock()
	m.process.Pause()
	wait(lasting, over)
	m.process.Resume()
	f.mu.Lock()
	m.up = true
	f.mu.Unlock()
	return name, true
}

// killedAt returns when the process was killed, if it was.
func (f *fleet) killedAt(name string) (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.killed[name]
	return at, ok
}

// wasHalted reports whether the process was halted for a while.
func (f *fleet) wasHalted(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.halted[name]
}

// kills returns how many processes of the kind were killed.
func (f *fleet) kills(kind string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.killed {
		if strings.HasPrefix(name, kind+"-") {
			n++
		}
	}
	return n
}

// end waits until the shop's server was told of all events, and then stops all processes as an
// operator would. This stop must succeed too.
func (f *fleet) end() {
	f.shop.close()
	f.mu.Lock()
	f.ending = true
	var stops sync.WaitGroup
	for _, m := range append(append([]*member{}, f.webs...), f.workers...) {
		name, p := m.name, m.process
		stops.Go(func() {
			p.Stop()
			if err := p.Err(); err != nil {
				f.t.Errorf("%s did not end in order: %v", name, err)
			}
		})
	}
	f.mu.Unlock()
	stops.Wait()
	if f.t.Failed() {
		f.t.Logf("what the programs said last:\n%s", tail(f.log.Name(), 3_000))
	}
	_ = f.log.Close()
}

func tail(path string, n int) []byte {
	raw, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	return raw[max(0, len(raw)-n):]
}
