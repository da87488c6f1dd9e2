package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/redisgate"
	"dropbell/app"
	"dropbell/domain/claim/gate"
	"dropbell/musttest"
)

// gateNode is one web process, as far as its handler goes.
type gateNode struct {
	*testing.T
	program *program
	url     string
}

const nodeKey = "dbk_0123456789abcdefghijklmnopqrstuvwxyzABCDEF"

func newGateNode(t *testing.T, env map[string]string) gateNode {
	t.Helper()
	cfg, err := config.Load(patient(env))
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	t.Cleanup(func() { _ = p.Close() })
	musttest.OK(t, p.ensureAccess(t.Context()))
	h, err := p.handler(t.Context())
	musttest.OK(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return gateNode{t, p, server.URL + "/api/v1"}
}

// call sends a request for a user (0 = staff) and returns status and answer.
func (n gateNode) call(method, path string, by int, key string, body any) (int, map[string]any) {
	n.Helper()
	return n.send(method, path, by, map[string]string{"Idempotency-Key": key}, body)
}

func (n gateNode) send(method, path string, by int, header map[string]string, body any) (int, map[string]any) {
	n.Helper()
	raw, _ := json.Marshal(body)
	r, err := http.NewRequestWithContext(n.Context(), method, n.url+path, bytes.NewReader(raw))
	if err != nil {
		n.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+nodeKey)
	r.Header.Set("Content-Type", "application/json")
	if by > 0 {
		r.Header.Set("X-User-ID", fmt.Sprint(by))
	}
	for name, value := range header {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		n.Fatal(err)
	}
	defer answer.Body.Close()
	var got map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		n.Fatalf("%s %s: %d, %v", method, path, answer.StatusCode, err)
	}
	return answer.StatusCode, got
}

func (n gateNode) eventually(what string, done func() bool) {
	n.Helper()
	eventually(n.T, what, done)
}

// startGateWorker runs the worker's part of the gate.
func startGateWorker(t *testing.T, p *program) {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	store := p.Stores.Gates
	w := &gate.Writer{Stream: redisgate.NewStream(p.Redis, "worker"), Recorder: p.Stores.GateRecorder}
	k := &gate.Keeper{Store: store, Shards: redisgate.NewShards(p.Redis), Writer: w, Now: app.Clock, Divide: func(int64, int) int { return 2 }}
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			_ = k.Sweep(ctx)
			drops, _ := store.Active(ctx)
			for id, shards := range drops {
				for shard := range shards {
					_, _ = w.Step(ctx, id, shard)
				}
			}
			tick := time.NewTimer(10 * time.Millisecond)
			<-tick.C
		}
	})
	t.Cleanup(func() { stop(); all.Wait() })
}

// TestClaimsBehindTheGateOverHTTP takes a drop of claim mode "gate" through two web processes:
// accepted first, issued moments later, sold out, paused at once, refilled, and every coupon
// accounted for.
func TestClaimsBehindTheGateOverHTTP(t *testing.T) {
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "ADMIN_API_KEY": nodeKey,
		"AUTH_JWT_SECRET": "0123456789abcdef0123456789abcdef"}
	a, b := newGateNode(t, env), newGateNode(t, env)
	startGateWorker(t, a.program)
	opens := time.Now().UTC().Truncate(time.Second).Add(6 * time.Second)
	status, made := a.call("POST", "/admin/templates", 0, "", map[string]any{"shop_number": "10", "name": "Rush", "kind": "amount_off", "amount_off": 100,
		"currency": "CNY", "target": "shop", "stock": 3, "per_user_limit": 1, "opens_at": opens, "closes_at": opens.Add(time.Hour), "valid_hours": 1,
		"obtain": "claim", "claim_mode": "gate"})
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, made)
	}
	id := made["id"].(string)
	wish := map[string]string{"template_id": id}
	if status, got := a.call("POST", "/claims", 1, "", wish); status != http.StatusNotFound {
		t.Errorf("of a draft: %d %v", status, got)
	}
	if status, got := a.call("POST", "/admin/templates/"+id+"/publish", 0, "", map[string]string{}); status != http.StatusOK {
		t.Fatalf("%d %v", status, got)
	}
	a.eventually("the gate stands and says that it is too early", func() bool {
		status, got := b.call("POST", "/claims", 1, "", wish)
		return status == http.StatusConflict && got["code"] == "not_started"
	})
	var first map[string]any
	a.eventually("the drop opens", func() bool {
		status, first = a.call("POST", "/claims", 1, "mine", wish)
		return status == http.StatusAccepted
	})
	if first["state"] != "accepted" || first["coupon_id"] != nil {
		t.Errorf("accepted: %v", first)
	}
	claim := "/claims/" + first["claim_id"].(string)
	b.eventually("the other node sees it issued", func() bool {
		status, got := b.call("GET", claim, 1, "", nil)
		return status == http.StatusOK && got["state"] == "issued" && got["coupon_id"] != nil
	})
	if status, got := b.call("GET", claim, 2, "", nil); status != http.StatusNotFound {
		t.Errorf("somebody else's claim: %d %v", status, got)
	}
	if status, got := b.call("POST", "/claims", 1, "mine", wish); got["claim_id"] != first["claim_id"] || status > 299 {
		t.Errorf("repeated: %d %v", status, got)
	}
	want := func(n gateNode, by int, status int, code string) {
		t.Helper()
		if got, answer := n.call("POST", "/claims", by, "", wish); got != status || code != "" && answer["code"] != code {
			t.Errorf("user %d: %d %v, want %d %s", by, got, answer, status, code)
		}
	}
	want(a, 1, http.StatusConflict, "limit_reached")
	want(a, 2, http.StatusAccepted, "")
	if status, got := b.call("POST", "/admin/templates/"+id+"/pause", 0, "", map[string]string{"reason": "test"}); status != http.StatusOK {
		t.Fatalf("%d %v", status, got)
	}
	want(a, 3, http.StatusConflict, "template_not_open") // at once, on every node
	b.call("POST", "/admin/templates/"+id+"/resume", 0, "", map[string]string{"reason": "test"})
	want(b, 3, http.StatusAccepted, "")
	want(a, 4, http.StatusConflict, "sold_out")
	_, shown := b.call("GET", "/admin/templates/"+id, 0, "", nil)
	if l := shown["stock_ledger"].(map[string]any); l["total"] != 3.0 || l["shelf"] != 0.0 || l["writing"].(float64)+l["issued"].(float64) != 3 {
		t.Errorf("the ledger says %v", l)
	}
	a.eventually("the stock adds up", func() bool {
		_, sheet := a.call("GET", "/admin/templates/"+id+"/balance", 0, "", nil)
		account := fmt.Sprint(sheet["stock"])
		return sheet["balanced"] == true && account == "map[difference:0 held:0 issued:3 over_limit:0 per_user:3 returned:0 shelf:0 total:3 writing:0]"
	})
}

// TestAClaimRightAfterPublishing: publishing fills the shards, and raising the stock adds to them.
// A claim that follows at once is decided, though no worker has learned of the change.
func TestAClaimRightAfterPublishing(t *testing.T) {
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "ADMIN_API_KEY": nodeKey,
		"AUTH_JWT_SECRET": "0123456789abcdef0123456789abcdef", "GATE_SHARDS": "3"}
	a, b := newGateNode(t, env), newGateNode(t, env)
	opens := time.Now().UTC().Truncate(time.Second).Add(6 * time.Second)
	_, made := a.call("POST", "/admin/templates", 0, "", map[string]any{"shop_number": "10", "name": "Rush", "kind": "amount_off", "amount_off": 100,
		"currency": "CNY", "target": "shop", "stock": 1, "per_user_limit": 1, "opens_at": opens, "closes_at": opens.Add(time.Hour), "valid_hours": 1,
		"obtain": "claim", "claim_mode": "gate"})
	id := made["id"].(string)
	wish := map[string]string{"template_id": id}
	if status, got := a.call("POST", "/admin/templates/"+id+"/publish", 0, "", map[string]string{}); status != http.StatusOK {
		t.Fatalf("%d %v", status, got)
	}
	for open := false; !open; <-time.After(10 * time.Millisecond) {
		for _, n := range []gateNode{a, b} {
			status, got := n.call("POST", "/claims", 1, "k", wish)
			open = open || status == http.StatusAccepted
			if status != http.StatusAccepted && got["code"] != "not_started" {
				t.Fatalf("right after publishing: %d %v", status, got)
			}
		}
	}
	if status, got := b.call("POST", "/claims", 2, "", wish); got["code"] != "sold_out" {
		t.Errorf("a second of one: %d %v", status, got)
	}
	_, now := a.call("GET", "/admin/templates/"+id, 0, "", nil)
	if status, got := a.send("PATCH", "/admin/templates/"+id, 0, map[string]string{"If-Match": fmt.Sprintf("%q", fmt.Sprint(now["version"]))},
		map[string]any{"stock": 2}); status != http.StatusOK {
		t.Fatalf("%d %v", status, got)
	}
	if status, got := a.call("POST", "/claims", 2, "k", wish); status != http.StatusAccepted {
		t.Errorf("right after raising the stock: %d %v", status, got)
	}
	if plan, err := a.program.Stores.Gates.Plan(t.Context(), 1); err != nil || plan.Shards != 3 || plan.Epoch != 1 {
		t.Errorf("%+v %v", plan, err)
	}
}
