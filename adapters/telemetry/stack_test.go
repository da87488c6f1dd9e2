package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/localstack/child"
)

const (
	adminKey      = "dbk_0123456789abcdefghijklmnop"
	webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// A stack is web and worker as they are shipped, over servers of their own.
type stack struct {
	testing.TB
	web string // base address
	env []string
	// calls are the headers that the shop's webhook got.
	calls chan http.Header
}

func newStack(t *testing.T, collectorURL string) *stack {
	t.Helper()
	s := &stack{TB: t, calls: make(chan http.Header, 10)}
	shop := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { s.calls <- r.Header }))
	t.Cleanup(shop.Close)
	s.env = []string{"DATABASE_URL=" + localstack.Database(t), "REDIS_URL=" + localstack.RedisServer(t).URL(), "ADMIN_API_KEY=" + adminKey,
		"WEBHOOK_URL=" + shop.URL, "WEBHOOK_SECRET=" + webhookSecret, "OTEL_EXPORTER_OTLP_ENDPOINT=" + collectorURL, "OTEL_BSP_SCHEDULE_DELAY=100",
		"LOG_LEVEL=warn", "HOME=" + os.Getenv("HOME")}
	s.run("worker", "WORKER_HTTP_ADDR")
	s.web = s.run("web", "HTTP_ADDR")
	s.waitFor("the first key", s.web+"/api/v1/admin/templates")
	return s
}

// run builds and starts a program and returns its address once it is ready.
func (s *stack) run(name, addressVariable string) string {
	s.Helper()
	bin := filepath.Join(s.TempDir(), name)
	if err := localstack.BuildProgram(s.Context(), bin, "dropbell/"+name); err != nil {
		s.Fatal(err)
	}
	port, err := localstack.FreePort(0)
	if err != nil {
		s.Fatal(err)
	}
	address := "127.0.0.1:" + strconv.Itoa(port)
	cmd := exec.Command(bin)
	cmd.Env = append([]string{addressVariable + "=" + address}, s.env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	process, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = process.Stop(s.Context(), syscall.SIGTERM, 20*time.Second) })
	s.waitFor(name, "http://"+address+"/readyz")
	return "http://" + address
}

// waitFor polls url until it answers 200.
func (s *stack) waitFor(what, url string) {
	s.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !answers(url) {
		if time.Now().After(deadline) {
			s.Fatalf("%s does not get ready", what)
		}
		<-time.After(50 * time.Millisecond)
	}
}

func answers(url string) bool {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	r.Header.Set("Authorization", "Bearer "+adminKey)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// post sends body and returns the answer's fields.
func (s *stack) post(path string, body map[string]any, header ...string) map[string]any {
	s.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, s.web+"/api/v1"+path, bytes.NewReader(raw))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+adminKey)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	var fields map[string]any
	if resp.StatusCode/100 != 2 || json.Unmarshal(answer, &fields) != nil {
		s.Fatalf("POST %s: %d %s", path, resp.StatusCode, answer)
	}
	return fields
}

// TestTracesOfARealDrop follows a reservation to its event's handler, and a delivery from its
// timer to the shop's webhook and back to the web program.
func TestTracesOfARealDrop(t *testing.T) {
	c := collect(t)
	s := newStack(t, c.URL)
	opens := time.Now().Add(5*time.Minute + 6*time.Second).UTC().Truncate(time.Second)
	draft := s.post("/admin/templates", map[string]any{"shop_number": "10", "name": "Half price", "kind": "amount_off", "amount_off": 1000,
		"currency": "CNY", "target": "shop", "stock": 10, "per_user_limit": 1, "valid_hours": 48, "obtain": "claim", "claim_mode": "durable",
		"opens_at": opens.Format(time.RFC3339), "closes_at": opens.Add(time.Hour).Format(time.RFC3339)})
	id := draft["id"].(string)
	// Handled after the publication, the event of the draft would start the timer.
	c.find(t, "dropbell-worker", "timers template.changed.v1", anySpan)
	s.post("/admin/templates/"+id+"/publish", map[string]any{})
	s.post("/reservations", map[string]any{"template_id": id, "shop_number": "10",
		"reminders": []any{map[string]any{"channel": "webhook", "minutes": 5}, map[string]any{"channel": "app", "minutes": 5}}}, "X-User-ID", "815000815")

	reservation := c.find(t, "dropbell-web", "POST /api/v1/reservations", anySpan)
	if got := reservation.attribute("http.response.status_code"); got != "201" {
		t.Errorf("the reservation was answered %s", got)
	}
	booked := c.find(t, "dropbell-worker", "bookings reservations.changed.v1", within(reservation.trace()))
	if !bytes.Equal(booked.ParentSpanId, reservation.SpanId) {
		t.Error("the handler is not below the request")
	}
	c.find(t, "dropbell-web", "WITH", within(reservation.trace())) // the group's statement
	published := c.find(t, "dropbell-web", "POST /api/v1/admin/templates/{id}/publish", anySpan)
	c.find(t, "dropbell-worker", "timers template.published.v1", within(published.trace()))

	var header http.Header
	select {
	case header = <-s.calls:
	case <-time.After(60 * time.Second):
		t.Fatal("the webhook was not called")
	}
	parts := strings.Split(header.Get("traceparent"), "-")
	if len(parts) != 4 {
		t.Fatalf("the webhook got traceparent %q", header.Get("traceparent"))
	}
	call := c.find(t, "dropbell-worker", "send webhook", within(parts[1]))
	if fmt.Sprintf("%x", call.SpanId) != parts[2] || call.attribute("dropbell.delivered") != "1" || call.attribute("dropbell.template_id") != id {
		t.Errorf("the webhook was called in %s, the span is %v", header.Get("traceparent"), call)
	}
	fired := c.find(t, "dropbell-worker", "reminder.fire.v1", within(call.trace()))
	if len(fired.Links) != 1 || fmt.Sprintf("%x", fired.Links[0].TraceId) != published.trace() {
		t.Errorf("the timer is linked to %v, not to %s", fired.Links, published.trace())
	}
	c.find(t, "dropbell-worker", "delivery.run.v1", within(call.trace()))
	c.find(t, "dropbell-worker", "send app", within(call.trace()))
	c.find(t, "dropbell-web", "inbox-push batch.finished.v1", within(call.trace()))
	for _, span := range c.all() {
		if text := span.String(); strings.Contains(text, "815000815") || strings.Contains(text, adminKey) {
			t.Errorf("a span tells too much: %s", text)
		}
		if strings.Contains(span.Name, "readyz") {
			t.Errorf("a probe is traced: %s", span.Name)
		}
	}
}
