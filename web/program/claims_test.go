package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/domain/event"
	"dropbell/musttest"
)

// journal keeps the log of a program; it may be written and read concurrently.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write is part of [io.Writer].
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// node is one running web program.
type node struct {
	address string
	stop    func() error
}

func startNode(t *testing.T, env map[string]string) node {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	log, ended := &journal{}, make(chan error, 1)
	go func() { ended <- run(ctx, patient(env), log) }()
	stop := sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	listening := regexp.MustCompile(`"web is listening","address":"([^"]+)"|"msg":"web is listening"[^\n]*"address":"([^"]+)"`)
	n := node{stop: stop}
	eventually(t, "web listens", func() bool {
		if m := listening.FindStringSubmatch(log.String()); m != nil {
			n.address = m[1] + m[2]
		}
		return n.address != ""
	})
	eventually(t, "web is ready", func() bool {
		answer, err := http.Get("http://" + n.address + "/readyz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return n
}

// patient returns the environment with the longest time limit for requests, because these tests
// must pass on a busy machine. The shutdown delay is zero.
func patient(env map[string]string) func(string) string {
	defaults := map[string]string{"REQUEST_TIMEOUT": "15s", "SHUTDOWN_DELAY": "0s"}
	return func(name string) string { return cmp.Or(env[name], defaults[name]) }
}

var eventually = localstack.Eventually

// call sends one request and returns its status and the answer's fields.
func (n node) call(method, path string, header map[string]string, body string) (int, map[string]any, error) {
	q, err := http.NewRequest(method, "http://"+n.address+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+testKey)
	for k, v := range header {
		q.Header.Set(k, v)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil, err
	}
	var fields map[string]any
	return answer.StatusCode, fields, json.Unmarshal(raw, &fields)
}

const testKey = "dbk_claimstestclaimstestclaims"

// TestARushThroughTwoNodes has two whole programs issue coupons of one drop. One of them is stopped
// in the middle, and its unanswered requests are repeated at the other program.
func TestARushThroughTwoNodes(t *testing.T) {
	const stock, users = 60, 150
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "HTTP_ADDR": "127.0.0.1:0",
		"ADMIN_API_KEY": testKey, "RATE_LIMIT_PER_MINUTE": "0", "RATE_LIMIT_KEY_PER_MINUTE": "0"}
	nodes := []node{startNode(t, env), startNode(t, env)}
	sql, err := pgxpool.New(t.Context(), env["DATABASE_URL"])
	musttest.OK(t, err)
	defer sql.Close()
	id := openDrop(t, nodes[0], sql, stock)
	var won, asked atomic.Int64
	stopped := make(chan struct{})
	var all sync.WaitGroup
	for i := range users {
		all.Go(func() {
			header := map[string]string{"X-User-ID": fmt.Sprint(i + 1), "Idempotency-Key": "one wish"}
			for try := range 10 {
				if asked.Add(1) == users/3 {
					close(stopped)
				}
				status, got, err := nodes[(i+try)%2].call("POST", "/claims", header, `{"template_id":"`+id+`"}`)
				switch {
				case err != nil || status == http.StatusServiceUnavailable: // a node that ends
				case status == http.StatusCreated && got["coupon_id"] != "":
					won.Add(1)
					return
				case status == http.StatusConflict && got["code"] == "sold_out":
					return
				default:
					t.Errorf("user %d: %d %v", i+1, status, got)
					return
				}
			}
			t.Errorf("user %d was never answered", i+1)
		})
	}
	all.Go(func() { <-stopped; _ = nodes[1].stop() })
	all.Wait()
	db, err := postgres.Open(t.Context(), env["DATABASE_URL"], postgres.Options{})
	musttest.OK(t, err)
	defer db.Close()
	var template int64
	if _, err := fmt.Sscan(id, &template); err != nil {
		t.Fatal(err)
	}
	l, err := couponsdb.NewLedgers(db).Ledger(t.Context(), template)
	if err != nil || won.Load() != stock || l.Issued != stock || l.Difference() != 0 {
		t.Errorf("%d were told that they won, %+v, %v; want %d", won.Load(), l, err, stock)
	}
	eventually(t, "everybody sees that it is sold out", func() bool {
		_, got, err := nodes[0].call("GET", "/templates/"+id, nil, "")
		return err == nil && got["state"] == "sold_out" && got["stock_left"] == 0.0
	})
}

// openDrop creates and publishes a drop that is open and returns its id.
func openDrop(t *testing.T, n node, sql *pgxpool.Pool, stock int) string {
	t.Helper()
	opens := time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	status, got, err := n.call("POST", "/admin/templates", nil, fmt.Sprintf(`{"shop_number":"10","name":"20 off","kind":"amount_off","amount_off":2000,
		"currency":"CNY","stock":%d,"opens_at":%q,"closes_at":%q,"valid_hours":48}`, stock, opens.Format(time.RFC3339), opens.Add(time.Hour).Format(time.RFC3339)))
	if err != nil || status != http.StatusCreated {
		t.Fatalf("create: %d %v %v", status, got, err)
	}
	id := got["id"].(string)
	if status, got, err = n.call("POST", "/admin/templates/"+id+"/publish", nil, ""); err != nil || status != http.StatusOK {
		t.Fatalf("publish: %d %v %v", status, got, err)
	}
	if _, err := sql.Exec(t.Context(), `update templates set opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, id); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the drop is open", func() bool {
		_, got, err := n.call("GET", "/templates/"+id, nil, "")
		return err == nil && got["state"] == "open"
	})
	return id
}

// TestErasedUsersGetNothing: an erased user cannot claim a coupon through either gate, redeem a
// code or reserve a reminder, and the answer says why.
func TestErasedUsersGetNothing(t *testing.T) {
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "HTTP_ADDR": "127.0.0.1:0", "ADMIN_API_KEY": testKey}
	n := startNode(t, env)
	sql, err := pgxpool.New(t.Context(), env["DATABASE_URL"])
	musttest.OK(t, err)
	defer sql.Close()
	id := openDrop(t, n, sql, 100)
	erased, other := map[string]string{"X-User-ID": "7"}, map[string]string{"X-User-ID": "8"}
	ask := func(path string, header map[string]string, body string) string {
		t.Helper()
		status, got, err := n.call("POST", path, header, body)
		musttest.OK(t, err)
		return fmt.Sprint(status, " ", got["code"])
	}
	claim, reserve := `{"template_id":"`+id+`"}`, `{"template_id":"`+id+`","shop_number":"10","reminders":[{"channel":"app","minutes":20}]}`
	if _, err := sql.Exec(t.Context(), `insert into erased_users (user_id, erased_by) values (7, 'x')`); err != nil {
		t.Fatal(err)
	}
	// The drop has opened, so that nothing is reserved while the erasure is not known yet.
	eventually(t, "the erasure is known", func() bool { return ask("/reservations", erased, reserve) == "409 user_erased" })
	if got := ask("/claims", erased, claim); got != "409 user_erased" {
		t.Errorf("a claim: %s", got)
	}
	if _, err := sql.Exec(t.Context(), `update templates set claim_mode = 'gate'`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim mode is known", func() bool { return ask("/claims", other, claim) != "201 <nil>" })
	if got := ask("/claims", erased, claim); got != "409 user_erased" {
		t.Errorf("at the gate in Redis: %s", got)
	}
	if got := ask("/redemptions", erased, `{"code":"`+strings.Repeat("A", 16)+`"}`); strings.HasPrefix(got, "2") {
		t.Errorf("a code: %s", got)
	}
	var coupons int
	if err := sql.QueryRow(t.Context(), `select count(*) from coupons where user_id = 7`).Scan(&coupons); err != nil || coupons != 0 {
		t.Errorf("%d coupons, %v", coupons, err)
	}
}

// TestOtherNodesHearThatItIsSoldOut looks a template up, has its last coupon issued by another
// process, and checks that the event updates the look-up.
func TestOtherNodesHearThatItIsSoldOut(t *testing.T) {
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL()}
	cfg, err := config.Load(func(name string) string { return env[name] })
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	t.Cleanup(func() { _ = p.Close() })
	// With a stopped clock a cached template stays unchanged until it is invalidated.
	now := time.Now()
	if p.lookup, err = lookup.New(p.Stores.Templates, func() time.Time { return now }); err != nil {
		t.Fatal(err)
	}
	sql, err := pgxpool.New(t.Context(), env["DATABASE_URL"])
	musttest.OK(t, err)
	defer sql.Close()
	rows.Drop{OpensAt: now}.Add(t, sql)
	left := func() int64 {
		found, err := p.lookup.Template(t.Context(), 1)
		musttest.OK(t, err)
		return found.StockLeft()
	}
	hear := func(total int64) int64 {
		musttest.OK(t, p.soldOut(t.Context(), "", event.Coupons{Issued: []event.Issue{{TemplateID: 1, Issued: 1, Total: total}, {TemplateID: 99, Total: 5}}}))
		return left()
	}
	before := left()
	if _, err := sql.Exec(t.Context(), `update templates set issued = 10`); err != nil {
		t.Fatal(err)
	}
	if quiet, news := hear(9), hear(10); before != 10 || quiet != 10 || news != 0 {
		t.Errorf("%d left before, %d after other news, %d after the last coupon", before, quiet, news)
	}
}
