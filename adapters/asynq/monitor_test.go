package asynq

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"dropbell/domain/task"
	"dropbell/musttest"
)

const monitorPath = "/monitor/queues"

func newMonitor(t *testing.T, s *redisServer) (readOnly, writable *httptest.Server) {
	t.Helper()
	m, err := NewMonitor(s.URL, monitorPath)
	musttest.OK(t, err)
	readOnly, writable = httptest.NewServer(m.Handler(false)), httptest.NewServer(m.Handler(true))
	t.Cleanup(func() {
		readOnly.Close()
		writable.Close()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return readOnly, writable
}

func ask(t *testing.T, method, url string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	musttest.OK(t, err)
	response, err := http.DefaultClient.Do(request)
	musttest.OK(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	musttest.OK(t, err)
	return response, string(body)
}

func TestMonitorPageFitsItsPolicy(t *testing.T) {
	readOnly, writable := newMonitor(t, startRedis(t))
	for _, server := range []*httptest.Server{readOnly, writable} {
		for _, path := range []string{"", "/", "/queues/timers", "/no/such/page"} {
			response, page := ask(t, http.MethodGet, server.URL+monitorPath+path)
			policy := response.Header.Get("Content-Security-Policy")
			if response.StatusCode != 200 || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
				t.Fatalf("%q: %s %s", path, response.Status, response.Header.Get("Content-Type"))
			}
			if strings.Contains(page, "googleapis") {
				t.Errorf("%q links to a foreign host", path)
			}
			if got := strings.Count(policy, "'sha256-"); got != 2 || strings.Contains(policy, "script-src 'self' 'unsafe") {
				t.Errorf("%q: policy %s", path, policy)
			}
			if got := len(regexp.MustCompile(`<script>`).FindAllString(page, -1)); got != 2 {
				t.Errorf("%q has %d inline scripts", path, got)
			}
		}
	}
	_, viewer := ask(t, http.MethodGet, readOnly.URL+monitorPath)
	_, operator := ask(t, http.MethodGet, writable.URL+monitorPath)
	if viewer == operator {
		t.Error("the page does not know whether it is read-only")
	}
}

func TestMonitorServesItsScripts(t *testing.T) {
	readOnly, _ := newMonitor(t, startRedis(t))
	_, page := ask(t, http.MethodGet, readOnly.URL+monitorPath)
	scripts := regexp.MustCompile(`<script src="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(scripts) != 2 {
		t.Fatalf("%d scripts", len(scripts))
	}
	for _, script := range scripts {
		response, body := ask(t, http.MethodGet, readOnly.URL+script[1])
		if response.StatusCode != 200 || !strings.Contains(response.Header.Get("Content-Type"), "javascript") || len(body) < 1000 {
			t.Errorf("%s: %s %s", script[1], response.Status, response.Header.Get("Content-Type"))
		}
	}
}

// TestMonitorShowsQueuesAlone: the dashboard serves neither facts of the server nor the sources of its page.
func TestMonitorShowsQueuesAlone(t *testing.T) {
	readOnly, writable := newMonitor(t, startRedis(t))
	_, page := ask(t, http.MethodGet, readOnly.URL+monitorPath)
	script := regexp.MustCompile(`<script src="([^"]+)"`).FindStringSubmatch(page)[1]
	for _, server := range []*httptest.Server{readOnly, writable} {
		for _, path := range []string{monitorPath + "/api/redis_info", monitorPath + "/api/redis_info/", monitorPath + "/api//redis_info", monitorPath + "/api/metrics", script + ".map"} {
			if response, body := ask(t, http.MethodGet, server.URL+path); response.StatusCode != http.StatusNotFound || strings.Contains(body, "redis_version") {
				t.Errorf("%s: %s", path, response.Status)
			}
		}
	}
}

func TestOnlyTheWritableMonitorChangesQueues(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	one := task.Run(42, "sms", 0, time.Time{})
	enqueue(t, q, one)
	readOnly, writable := newMonitor(t, s)
	pending := monitorPath + "/api/queues/" + one.Queue + "/pending_tasks"
	if response, body := ask(t, http.MethodGet, readOnly.URL+pending); response.StatusCode != 200 || !strings.Contains(body, `batch_id`) {
		t.Fatalf("%s %s", response.Status, body)
	}
	pause := monitorPath + "/api/queues/" + one.Queue + ":pause"
	for _, c := range []struct{ method, path string }{{http.MethodPost, pause}, {http.MethodDelete, pending + "/" + one.ID()}, {http.MethodPost, ""}} {
		if response, _ := ask(t, c.method, readOnly.URL+c.path); response.StatusCode < 400 {
			t.Errorf("read-only %s %s: %s", c.method, c.path, response.Status)
		}
	}
	if response, _ := ask(t, http.MethodPost, readOnly.URL+pause); response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("read-only pause: %s", response.Status)
	}
	if response, _ := ask(t, http.MethodPost, writable.URL+pause); response.StatusCode != http.StatusNoContent {
		t.Errorf("writable pause: %s", response.Status)
	}
	if response, _ := ask(t, http.MethodDelete, writable.URL+pending+"/"+one.ID()); response.StatusCode != http.StatusNoContent || infoOf(t, q, one) != nil {
		t.Errorf("writable delete: %s", response.Status)
	}
}

func TestMonitorBlocksMetrics(t *testing.T) {
	readOnly, writable := newMonitor(t, startRedis(t))
	for _, server := range []*httptest.Server{readOnly, writable} {
		if response, _ := ask(t, http.MethodGet, server.URL+monitorPath+"/api/metrics?duration=1"); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s", response.Status)
		}
	}
}

func TestShownPayloadIsBounded(t *testing.T) {
	if got := showPayload("", []byte(strings.Repeat("é", 1000))); len(got) > shownPayload+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes, ends %q", len(got), got[len(got)-8:])
	}
	if got := showPayload("", []byte("a\xff")); got != "a?" {
		t.Errorf("%q", got)
	}
}

func TestMonitorRefusesBadAddresses(t *testing.T) {
	for _, c := range [][2]string{{"nonsense", "/x"}, {"redis://localhost", "x"}} {
		if _, err := NewMonitor(c[0], c[1]); err == nil {
			t.Errorf("%q: no error", c)
		}
	}
}

// A queue that does not exist is nowhere to be found, which is no failure.
func TestMonitorOfAnUnknownQueue(t *testing.T) {
	s := startRedis(t)
	enqueue(t, newQueue(t, s), task.Run(42, "sms", 0, time.Time{}))
	readOnly, writable := newMonitor(t, s)
	for _, path := range []string{"", "/pending_tasks", "/active_tasks", "/scheduled_tasks", "/retry_tasks", "/archived_tasks", "/completed_tasks", "/servers"} {
		response, body := ask(t, http.MethodGet, readOnly.URL+monitorPath+"/api/queues/nothing"+path)
		if response.StatusCode != http.StatusNotFound && response.StatusCode != http.StatusOK {
			t.Errorf("%q: %s %s", path, response.Status, body)
		}
		if path == "" && response.StatusCode != http.StatusNotFound {
			t.Errorf("%s %s", response.Status, body)
		}
	}
	for _, c := range [][2]string{{http.MethodPost, ":pause"}, {http.MethodPost, ":resume"}, {http.MethodDelete, ""}, {http.MethodDelete, "/pending_tasks:delete_all"}} {
		if response, body := ask(t, c[0], writable.URL+monitorPath+"/api/queues/nothing"+c[1]); response.StatusCode >= 500 {
			t.Errorf("%s %s: %s %s", c[0], c[1], response.Status, body)
		}
	}
}
