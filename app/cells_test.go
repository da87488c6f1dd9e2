package app

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/config"
)

// TestReadyOfCells: a program is ready while that of one cell is, and names the others.
func TestReadyOfCells(t *testing.T) {
	fine := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }
	away := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "postgresql does not answer", http.StatusServiceUnavailable)
	}
	for _, c := range []struct {
		ready  []http.HandlerFunc
		status int
		text   string
	}{
		{[]http.HandlerFunc{fine, fine}, 200, "ok\n"},
		{[]http.HandlerFunc{fine, away}, 200, "ok\ncell b: postgresql does not answer\n"},
		{[]http.HandlerFunc{away, away}, 503, "cell a: postgresql does not answer\ncell b: postgresql does not answer\n\n"},
	} {
		w := httptest.NewRecorder()
		ReadyOfCells([]string{"a", "b"}, c.ready)(w, httptest.NewRequest("GET", "/readyz", nil))
		if w.Code != c.status || w.Body.String() != c.text {
			t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.status, c.text)
		}
	}
}

// TestMetricsOfCells: the metrics of several programs are apart by the label cell; those of one program have none.
func TestMetricsOfCells(t *testing.T) {
	cells := config.Config{Cells: []config.Cell{{Name: "a"}, {Name: "b"}}}
	var programs []*App
	for n := range 2 {
		a := &App{Config: cells, Registry: prometheus.NewRegistry()}
		a.Config.Cell = n
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_outbox"})
		g.Set(float64(n))
		a.Registry.MustRegister(g)
		programs = append(programs, a)
	}
	for _, of := range [][]*App{programs, programs[:1]} {
		families, err := Gather(of...).Gather()
		if err != nil || len(families) != 1 || len(families[0].Metric) != len(of) {
			t.Fatalf("%v, %v", families, err)
		}
		for n, m := range families[0].Metric {
			if labels := m.Label; len(of) == 1 && len(labels) != 0 || len(of) > 1 && labels[0].GetValue() != cells.Cells[n].Name {
				t.Errorf("%v", m)
			}
		}
	}
}
