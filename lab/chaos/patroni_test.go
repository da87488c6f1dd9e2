//go:build failover

package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/localstack/child"
)

const (
	patroniStart = 2 * time.Minute
	patroniStop  = 30 * time.Second
)

// patroniPair is two PostgreSQL servers and an etcd. Patroni makes one server the primary and
// the other its standby; etcd stores which.
type patroniPair struct {
	nodes [2]*patroniNode
	place *localstack.Place
	etcd  *child.Process
}

type patroniNode struct {
	name        string
	port, api   int
	data, file  string
	patroni     *child.Process
	place       *localstack.Place
	patroniPath string
	log         string
}

// newPatroniPair returns a pair with the empty database dropbell, which is stopped after the
// test. If synchronous is set, the primary acknowledges no commit that the standby does not
// have. Missing patroni and etcd are installed from Debian.
func newPatroniPair(tb testing.TB, synchronous bool) *patroniPair {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	p, err := startPatroni(ctx, synchronous)
	if p != nil {
		tb.Cleanup(p.stop)
	}
	if err != nil {
		tb.Fatalf("no Patroni for tests: %v", err)
	}
	return p
}

func startPatroni(ctx context.Context, synchronous bool) (*patroniPair, error) {
	folder, err := localstack.PostgresFolder(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	binary, err := filepath.EvalSymlinks(filepath.Join(folder, "postgres"))
	if err != nil {
		return nil, err
	}
	patroni, etcd, err := findPatroni(ctx)
	if err != nil {
		return nil, err
	}
	p := &patroniPair{}
	if p.place, err = localstack.NewPlace("patroni"); err != nil {
		return nil, err
	}
	dcs, err := p.startEtcd(ctx, etcd)
	if err != nil {
		return p, err
	}
	for i := range p.nodes {
		n := &patroniNode{name: fmt.Sprint("node", i+1), place: p.place, patroniPath: patroni}
		n.data, n.file, n.log = filepath.Join(p.place.Data, n.name), filepath.Join(p.place.Data, n.name+".yml"), filepath.Join(p.place.Data, n.name+".log")
		if n.port, err = localstack.FreePort(0); err == nil {
			n.api, err = localstack.FreePort(0, n.port)
		}
		if err == nil {
			err = n.configure(dcs, filepath.Dir(binary), p.place.Data, synchronous)
		}
		if err == nil {
			p.nodes[i] = n
			err = n.start()
		}
		if err != nil {
			return p, err
		}
	}
	return p, p.settle(ctx, synchronous)
}

func findPatroni(ctx context.Context) (patroni, etcd string, err error) {
	look := func() error {
		var err1, err2 error
		patroni, err1 = exec.LookPath("patroni")
		etcd, err2 = exec.LookPath("etcd")
		return errors.Join(err1, err2)
	}
	if look() == nil {
		return patroni, etcd, nil
	}
	if err := localstack.AptInstall(ctx, os.Stderr, "patroni", "etcd-server"); err != nil {
		return "", "", err
	}
	return patroni, etcd, look()
}

func (p *patroniPair) startEtcd(ctx context.Context, path string) (client int, err error) {
	client, err = localstack.FreePort(0)
	if err != nil {
		return 0, err
	}
	peer, err := localstack.FreePort(0, client)
	if err != nil {
		return 0, err
	}
	address, peers := fmt.Sprintf("http://127.0.0.1:%d", client), fmt.Sprintf("http://127.0.0.1:%d", peer)
	log, err := os.Create(p.place.Log)
	if err != nil {
		return 0, err
	}
	defer log.Close() // the child has its own
	cmd := p.place.Command(context.WithoutCancel(ctx), path, "--name", "one", "--data-dir", filepath.Join(p.place.Data, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", address, "--advertise-client-urls", address, "--listen-peer-urls", peers,
		"--initial-advertise-peer-urls", peers, "--initial-cluster", "one="+peers)
	cmd.Stdout, cmd.Stderr = log, log
	if p.etcd, err = child.Start(cmd, syscall.SIGKILL); err != nil {
		return 0, err
	}
	return client, p.await(ctx, func() error { return answers(ctx, address+"/health") })
}

func answers(ctx context.Context, url string) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, a.Status)
	}
	return nil
}

// configure writes the node's settings. The leader counts as dead ten seconds after its last
// sign of life.
func (n *patroniNode) configure(etcd int, binaries, sockets string, synchronous bool) error {
	raw, err := json.MarshalIndent(map[string]any{ // every JSON is YAML
		"scope": "dropbell", "name": n.name,
		"restapi": map[string]any{"listen": fmt.Sprintf("127.0.0.1:%d", n.api), "connect_address": fmt.Sprintf("127.0.0.1:%d", n.api)},
		"etcd3":   map[string]any{"host": fmt.Sprintf("127.0.0.1:%d", etcd)},
		"bootstrap": map[string]any{
			"dcs": map[string]any{"ttl": 10, "loop_wait": 1, "retry_timeout": 3, "maximum_lag_on_failover": 1 << 30, "synchronous_mode": synchronous,
				"postgresql": map[string]any{"use_pg_rewind": true, "parameters": map[string]any{"max_connections": 400, "shared_buffers": "128MB",
					"timezone": "UTC", "max_wal_size": "2GB", "wal_log_hints": "on", "log_min_messages": "warning"}}},
			"initdb": []any{map[string]any{"encoding": "UTF8"}, map[string]any{"locale": "C"}},
		},
		"postgresql": map[string]any{
			"listen": fmt.Sprintf("127.0.0.1:%d", n.port), "connect_address": fmt.Sprintf("127.0.0.1:%d", n.port),
			"data_dir": n.data, "bin_dir": binaries, "pgpass": n.data + ".pgpass",
			"authentication": map[string]any{"superuser": map[string]any{"username": "dropbell", "password": "dropbell"},
				"replication": map[string]any{"username": "replicator", "password": "replicator"}},
			"parameters": map[string]any{"unix_socket_directories": sockets},
			"pg_hba":     []string{"local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"},
		},
	}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(n.file, raw, 0o644)
}

func (n *patroniNode) start() error {
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	cmd := n.place.Command(context.Background(), n.patroniPath, n.file)
	cmd.Stdout, cmd.Stderr = log, log
	n.patroni, err = child.Start(cmd, syscall.SIGTERM)
	return err
}

func (n *patroniNode) url(database string) string {
	return fmt.Sprintf("postgres://dropbell@127.0.0.1:%d/%s?sslmode=disable", n.port, database)
}

// settle waits until one node is the primary and the other its standby, and creates the
// database.
func (p *patroniPair) settle(ctx context.Context, synchronous bool) error {
	ctx, cancel := context.WithTimeout(ctx, patroniStart)
	defer cancel()
	err := p.await(ctx, func() error {
		primary, err := p.leader(ctx)
		if err != nil {
			return err
		}
		c, err := pgx.Connect(ctx, primary.url("postgres"))
		if err != nil {
			return err
		}
		defer c.Close(context.WithoutCancel(ctx))
		var standbys int
		if err := c.QueryRow(ctx, `select count(*) from pg_stat_replication where state = 'streaming' and (sync_state = 'sync' or not $1)`, synchronous).Scan(&standbys); err != nil {
			return err
		}
		if standbys != 1 {
			return errors.New("there is no standby yet")
		}
		_, err = c.Exec(ctx, `create database dropbell`)
		return err
	})
	if err == nil { // the standby has to replay it: the driver gives up at a host without the database
		err = p.await(ctx, func() error {
			c, err := pgx.Connect(ctx, p.URL())
			if err != nil {
				return err
			}
			return c.Close(ctx)
		})
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.said())
	}
	return nil
}

// await repeats a question, so rarely that it does not keep Patroni from its work.
func (p *patroniPair) await(ctx context.Context, ready func() error) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.etcd.Done():
			return fmt.Errorf("etcd ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// said returns the last log lines of the nodes.
func (p *patroniPair) said() (text string) {
	for _, n := range p.nodes {
		if n != nil {
			log, _ := os.ReadFile(n.log)
			text += string(log[max(0, len(log)-2000):]) + "\n"
		}
	}
	return text
}

// leader returns the node that takes writes.
func (p *patroniPair) leader(ctx context.Context) (*patroniNode, error) {
	for _, n := range p.nodes {
		if answers(ctx, fmt.Sprintf("http://127.0.0.1:%d/primary", n.api)) == nil {
			return n, nil
		}
	}
	return nil, errors.New("there is no primary")
}

// URL names the database by both hosts; connections are to the primary.
func (p *patroniPair) URL() string {
	return fmt.Sprintf("postgres://dropbell@127.0.0.1:%d,127.0.0.1:%d/dropbell?sslmode=disable&target_session_attrs=read-write", p.nodes[0].port, p.nodes[1].port)
}

// KillPrimary ends the primary and its Patroni with SIGKILL, as if the machine had died. It
// returns when Patroni has made the other node the primary.
func (p *patroniPair) KillPrimary(ctx context.Context) (took time.Duration, err error) {
	n, err := p.leader(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := n.kill(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, patroniStart)
	defer cancel()
	err = p.await(ctx, func() error {
		now, err := p.leader(ctx)
		if err == nil && now == n {
			err = errors.New("the dead primary answers")
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, p.said())
	}
	return time.Since(began), nil
}

// Rejoin starts the Patroni of the killed node, which makes this node the standby of the other
// node.
func (p *patroniPair) Rejoin() error {
	for _, n := range p.nodes {
		select {
		case <-n.patroni.Done():
			return n.start()
		default:
		}
	}
	return errors.New("no node is dead")
}

func (n *patroniNode) kill(ctx context.Context) error {
	n.patroni.Signal(syscall.SIGKILL)
	n.patroni.Forget()
	server := n.serverPID()
	if server == 0 {
		return nil
	}
	_ = syscall.Kill(server, syscall.SIGSTOP) // so that it starts no new one meanwhile
	pids := append(child.Children(server), server)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // may have ended just now
	}
	return child.Gone(ctx, pids...)
}

// serverPID is the first process of the node's PostgreSQL, 0 if none runs.
func (n *patroniNode) serverPID() int {
	raw, err := os.ReadFile(filepath.Join(n.data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || !strings.Contains(child.CommandLine(pid), "-D "+n.data) {
		return 0
	}
	return pid
}

func (p *patroniPair) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patroniStop)
	defer cancel()
	for _, n := range p.nodes {
		if n != nil && n.patroni != nil {
			_ = n.kill(ctx) // a node that is not there need not end
		}
	}
	if p.etcd != nil {
		_ = p.etcd.Stop(ctx, syscall.SIGKILL, patroniStop)
	}
	p.place.Release()
}
