package nodes_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/lab/bench/load"
	"dropbell/lab/bench/stack"
	"dropbell/musttest"
)

const (
	adminKey = "dbk_nodestestkeynodestestkey"
	secret   = "a secret that only this test knows"
)

// site is two web and two worker processes.
type site struct {
	*testing.T
	stack *stack.Stack
	webs  []*stack.Process
}

func start(t *testing.T) *site {
	t.Helper()
	s, err := stack.StartNew(t.Context())
	musttest.OK(t, err)
	t.Cleanup(s.Close)
	env := []string{"ADMIN_API_KEY=" + adminKey, "AUTH_JWT_SECRET=" + secret, "RATE_LIMIT_PER_MINUTE=0"}
	at := &site{T: t, stack: s}
	for _, name := range []string{"worker", "worker", "web", "web"} {
		p, err := s.StartProgram(t.Context(), name, env...)
		musttest.OK(t, err)
		t.Cleanup(p.Stop)
		if name == "web" {
			at.webs = append(at.webs, p)
		}
	}
	at.eventually("the first key works", func() bool {
		status, _ := at.call(0, http.MethodGet, "/api/v1/admin/templates", adminKey, nil)
		return status == http.StatusOK
	})
	return at
}

// eventually polls with a deadline.
func (s *site) eventually(what string, ok func() bool) {
	s.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			s.Fatalf("not within 30 s: %s", what)
		}
		<-tick.C
	}
}

func (s *site) call(web int, method, path, token string, body any) (int, map[string]any) {
	s.Helper()
	status, raw, err := s.try(web, method, path, token, body)
	if err != nil {
		s.Fatal(err)
	}
	var out map[string]any
	_ = json.Unmarshal(raw, &out)
	return status, out
}

func (s *site) try(web int, method, path, token string, body any) (int, []byte, error) {
	var in io.Reader
	if body != nil {
		b, _ := json.Marshal(body)
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(s.Context(), method, "http://"+s.webs[web].Addr+path, in)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, raw, err
}

func token(t *testing.T, user int) string {
	t.Helper()
	tok, err := load.Token(secret, user)
	musttest.OK(t, err)
	return tok
}

// drop creates a template on one node and publishes it on the other.
func (s *site) drop(opensIn time.Duration) string {
	s.Helper()
	opens := time.Now().UTC().Add(opensIn).Truncate(time.Second)
	status, made := s.call(0, http.MethodPost, "/api/v1/admin/templates", adminKey, map[string]any{
		"shop_number": "10", "name": "Two nodes", "kind": "amount_off", "amount_off": 1000, "currency": "CNY", "target": "shop",
		"stock": 100, "per_user_limit": 1, "opens_at": opens, "closes_at": opens.Add(time.Hour), "valid_hours": 48,
		"obtain": "claim", "claim_mode": "durable"})
	if status != http.StatusCreated {
		s.Fatalf("create: %d %v", status, made)
	}
	id := made["id"].(string)
	if status, got := s.call(1, http.MethodPost, "/api/v1/admin/templates/"+id+"/publish", adminKey, map[string]any{}); status != http.StatusOK {
		s.Fatalf("publish: %d %v", status, got)
	}
	return id
}

func wish(id, channel string, minutes int) map[string]any {
	return map[string]any{"template_id": id, "shop_number": "10", "reminders": []any{map[string]any{"channel": channel, "minutes": minutes}}}
}

// dueSoon moves the five-minute slot's instant, and only that, as if time had passed.
func (s *site) dueSoon(id string, in time.Duration) {
	s.Helper()
	if _, err := s.stack.SQL.Exec(s.Context(), `update slots set due_at = clock_timestamp() + $2::interval where template_id = $1::bigint and slot = 1`,
		id, in); err != nil {
		s.Fatal(err)
	}
}

// TestNodes runs one site; stopping a node comes last.
func TestNodes(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		name string
		run  func(*testing.T, *site)
	}{
		{"two of each", twoOfEach},
		{"changes are seen everywhere", changesAreSeenEverywhere},
		{"graceful stop", gracefulStop},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := *s
			at.T = t
			c.run(t, &at)
		})
	}
}

func twoOfEach(t *testing.T, s *site) {
	id := s.drop(2 * time.Hour)
	const users = 300
	var all sync.WaitGroup
	for u := 1; u <= users; u++ {
		all.Go(func() {
			status, raw, err := s.try(u%2, http.MethodPost, "/api/v1/reservations", token(t, u), wish(id, "app", 5))
			if err != nil || status != http.StatusCreated {
				t.Errorf("user %d: %d %s %v", u, status, raw, err)
			}
		})
	}
	all.Wait()
	pushed := s.stream(1, token(t, 7))
	s.dueSoon(id, time.Second)
	select {
	case item := <-pushed:
		if !strings.Contains(item, id) {
			t.Errorf("pushed %s", item)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was pushed to the client on the second node")
	}
	for web := range s.webs {
		s.eventually("the inbox shows the reminder", func() bool {
			_, inbox := s.call(web, http.MethodGet, "/api/v1/inbox", token(t, 200), nil)
			items, _ := inbox["items"].([]any)
			return len(items) == 1
		})
	}
	s.eventually("the slot is finished and balances", func() bool {
		status, raw, err := s.try(0, http.MethodGet, "/api/v1/admin/templates/"+id, adminKey, nil)
		return err == nil && status == http.StatusOK && bytes.Contains(raw, []byte(`"state":"finished"`))
	})
	var sent, batches int
	if err := s.stack.SQL.QueryRow(t.Context(), `select sum(sent_count), count(*) from batches where template_id = $1::bigint`, id).Scan(&sent, &batches); err != nil || sent != users || batches != 1 {
		t.Errorf("%d sent in %d batches (%v)", sent, batches, err)
	}
}

// stream opens a user's inbox stream and returns its data lines.
func (s *site) stream(web int, token string) <-chan string {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "http://"+s.webs[web].Addr+"/api/v1/inbox/stream", nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		s.Fatalf("stream: %d", resp.StatusCode)
	}
	lines := make(chan string, 16)
	go func() {
		in := bufio.NewScanner(resp.Body)
		for in.Scan() {
			if data, ok := strings.CutPrefix(in.Text(), "data:"); ok && strings.Contains(data, "template_id") {
				lines <- data
			}
		}
	}()
	return lines
}

// changesAreSeenEverywhere changes a template on one node and reads it from the other node.
func changesAreSeenEverywhere(t *testing.T, s *site) {
	id := s.drop(2 * time.Hour)
	if status, got := s.call(1, http.MethodPost, "/api/v1/reservations", token(t, 1), wish(id, "app", 5)); status != http.StatusCreated {
		t.Fatalf("%d %v", status, got)
	}
	if status, got := s.call(0, http.MethodPost, "/api/v1/admin/templates/"+id+"/cancel", adminKey, map[string]any{"reason": "test"}); status != http.StatusOK {
		t.Fatalf("%d %v", status, got)
	}
	changed := time.Now()
	s.eventually("the other node knows that the drop is cancelled", func() bool {
		_, got := s.call(1, http.MethodGet, "/api/v1/templates/"+id, token(t, 1), nil)
		return got["state"] == "cancelled"
	})
	if took := time.Since(changed); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	if status, got := s.call(1, http.MethodPost, "/api/v1/reservations", token(t, 2), wish(id, "app", 5)); status != http.StatusConflict || got["code"] != "template_not_open" {
		t.Errorf("%d %v", status, got)
	}
}

// gracefulStop stops a web process under load. Like a load balancer, the load goes to other
// nodes once the process is no longer ready. Every request sent until then is answered.
func gracefulStop(t *testing.T, s *site) {
	id := s.drop(2 * time.Hour)
	var accepted atomic.Int64
	var leaving atomic.Bool
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for u := 1000*(g+1) + 1; ctx.Err() == nil && !leaving.Load(); u++ {
				status, raw, err := s.try(0, http.MethodPost, "/api/v1/reservations", token(t, u), wish(id, "app", 5))
				switch {
				case err == nil && status == http.StatusCreated:
					accepted.Add(1)
				default:
					t.Errorf("%d %s %v", status, raw, err)
					return
				}
			}
		})
	}
	s.eventually("load is running", func() bool { return accepted.Load() > 200 })
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.webs[0].Stop()
	}()
	s.eventually("the node says that it is leaving", func() bool {
		resp, err := http.Get("http://" + s.webs[0].Addr + "/readyz")
		if err != nil {
			return true // too late: the load below will have noticed
		}
		resp.Body.Close()
		leaving.Store(resp.StatusCode != http.StatusOK)
		return leaving.Load()
	})
	all.Wait()
	stop()
	<-gone
	var stored int64
	if err := s.stack.SQL.QueryRow(t.Context(), `select count(*) from reservations where template_id = $1::bigint`, id).Scan(&stored); err != nil || stored != accepted.Load() {
		t.Errorf("%d accepted, %d stored (%v)", accepted.Load(), stored, err)
	}
	fmt.Fprintln(os.Stderr, "accepted before the stop:", accepted.Load())
}
