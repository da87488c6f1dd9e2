package program

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/config"
	"dropbell/app"
	"dropbell/musttest"
)

func TestSecurityText(t *testing.T) {
	ask := func(cfg config.Config) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		(&program{App: &app.App{Config: cfg}}).securityText(w, httptest.NewRequest("GET", "/.well-known/security.txt", nil))
		return w
	}
	w := ask(config.Config{SecurityContact: "mailto:security@example.com", PublicURL: "https://drops.example/"})
	fields := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		fields[name] = value
	}
	expires, err := time.Parse(time.RFC3339, fields["Expires"])
	if err != nil || time.Until(expires) < 24*time.Hour || time.Until(expires) > 365*24*time.Hour {
		t.Errorf("Expires: %s %v", fields["Expires"], err)
	}
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || fields["Contact"] != "mailto:security@example.com" ||
		fields["Canonical"] != "https://drops.example/.well-known/security.txt" || fields["Preferred-Languages"] != "en, zh" {
		t.Errorf("%d %v\n%s", w.Code, w.Header(), w.Body)
	}
	if w := ask(config.Config{PublicURL: "https://drops.example"}); w.Code != 404 {
		t.Errorf("without a contact: %d", w.Code)
	}
}

// TestMetricsStayInside: without a token, metrics are served to private networks only.
func TestMetricsStayInside(t *testing.T) {
	numbers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "claims 7") })
	for _, c := range []struct {
		from, header, token string
		want                int
	}{
		{"127.0.0.1:5", "", "", 200}, {"[::1]:5", "", "", 200}, {"10.1.2.3:5", "", "", 200}, {"[fd00::1]:5", "", "", 200},
		{"[::ffff:192.168.0.7]:5", "", "", 200}, {"100.64.3.4:5", "", "", 200},
		{"203.0.113.9:5", "", "", 403}, {"[2001:db8::1]:5", "", "", 403}, {"", "", "", 403},
		{"127.0.0.1:5", "X-Forwarded-For", "", 403}, {"10.1.2.3:5", "Forwarded", "", 403},
		{"203.0.113.9:5", "X-Forwarded-For", "token", 200}, // the token decides, elsewhere
	} {
		r, w := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
		r.RemoteAddr = c.from
		if c.header != "" {
			r.Header.Set(c.header, "for=10.0.0.1")
		}
		nearby(c.token, numbers).ServeHTTP(w, r)
		if w.Code != c.want || (w.Code != 200) == strings.Contains(w.Body.String(), "claims") {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

func TestMetricsOnTheirOwnAddress(t *testing.T) {
	lines := lineWriter(make(chan string, 10))
	p := &program{App: &app.App{Config: config.Config{MetricsAddr: "127.0.0.1:0"}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(lines, nil))}}
	p.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "claims"}, func() float64 { return 7 }))
	stop, err := p.serveMetrics()
	musttest.OK(t, err)
	_, address, _ := strings.Cut(strings.TrimSpace(<-lines), "address=")
	answer, err := http.Get("http://" + address + "/metrics")
	musttest.OK(t, err)
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if answer.StatusCode != 200 || !strings.Contains(string(text), "claims 7") {
		t.Errorf("%s: %s", answer.Status, text)
	}
	stop()
	if _, err := http.Get("http://" + address + "/metrics"); err == nil {
		t.Error("they are still served")
	}
}
