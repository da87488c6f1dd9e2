package program

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/musttest"
)

// TestBehindATransactionPooler: two whole programs take reservations and claims with two database
// sessions between them.
func TestBehindATransactionPooler(t *testing.T) {
	const users, stock = 40, 25
	direct := localstack.Database(t)
	env := map[string]string{"DATABASE_URL": localstack.TransactionPooler(t, direct, 2), "DATABASE_POOL_MODE": "transaction",
		"REDIS_URL": localstack.RedisServer(t).URL(), "HTTP_ADDR": "127.0.0.1:0", "ADMIN_API_KEY": testKey, "RATE_LIMIT_PER_MINUTE": "0"}
	nodes := []node{startNode(t, env), startNode(t, env)}
	sql, err := pgxpool.New(t.Context(), direct)
	musttest.OK(t, err)
	defer sql.Close()
	number := func(statement string, args ...any) (n int) {
		t.Helper()
		musttest.OK(t, sql.QueryRow(t.Context(), statement, args...).Scan(&n))
		return n
	}
	sale := openDrop(t, nodes[0], sql, stock)
	coming := openDrop(t, nodes[0], sql, stock)
	if _, err := sql.Exec(t.Context(), `update templates set opens_at = date_trunc('second', now()) + interval '1 hour' where id = $1`, coming); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second drop is to come", func() bool {
		for _, n := range nodes {
			if _, got, err := n.call("GET", "/templates/"+coming, nil, ""); err != nil || got["state"] != "scheduled" {
				return false
			}
		}
		return true
	})
	var all sync.WaitGroup
	for u := 1; u <= users; u++ {
		all.Go(func() {
			as := map[string]string{"X-User-ID": fmt.Sprint(u), "Idempotency-Key": fmt.Sprint("k", u)}
			if status, got, err := nodes[u%2].call("POST", "/claims", as, fmt.Sprintf(`{"template_id":%q}`, sale)); err != nil || status != 201 && got["code"] != "sold_out" {
				t.Errorf("claim: %d %v %v", status, got, err)
			}
			delete(as, "Idempotency-Key")
			for _, minutes := range []int{5, 10} {
				body := fmt.Sprintf(`{"template_id":%q,"shop_number":"10","reminders":[{"channel":"app","minutes":%d}]}`, coming, minutes)
				if status, got, err := nodes[(u+minutes)%2].call("POST", "/reservations", as, body); err != nil || status != 201 && status != 200 {
					t.Errorf("reserve: %d %v %v", status, got, err)
				}
			}
		})
	}
	all.Wait()
	if n := number(`select count(*) from coupons where template_id = $1`, sale); n != stock {
		t.Errorf("%d coupons, want %d", n, stock)
	}
	if n := number(`select count(*) from reservations where template_id = $1 and slots = 3`, coming); n != users {
		t.Errorf("%d reservations, want %d", n, users)
	}
}

// TestReadinessNamesATransactionPooler: readiness names a pooler that the environment does not
// configure.
func TestReadinessNamesATransactionPooler(t *testing.T) {
	url := localstack.TransactionPooler(t, localstack.Database(t), 2)
	for mode, named := range map[string]bool{"": true, "transaction": false} {
		cfg, err := config.Load(environment("DATABASE_URL", url, "REDIS_URL", "redis://127.0.0.1:1", "DATABASE_POOL_MODE", mode))
		musttest.OK(t, err)
		p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
		musttest.OK(t, err)
		defer p.Close()
		w := httptest.NewRecorder()
		p.ready(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "set DATABASE_POOL_MODE=transaction") != named {
			t.Errorf("with %q: %d %s", mode, w.Code, w.Body)
		}
	}
}
