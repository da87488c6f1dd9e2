package program

import (
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/musttest"
)

// TestHandbookListsTheMetrics: the handbook lists exactly the metrics of the program.
func TestHandbookListsTheMetrics(t *testing.T) {
	database := localstack.Database(t)
	env := map[string]string{"DATABASE_URL": database, "DATABASE_REPLICA_URL": database, "REDIS_URL": localstack.RedisServer(t).URL()}
	cfg, err := config.Load(func(name string) string { return env[name] })
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	t.Cleanup(func() { _ = p.Close() })
	if _, err := p.handler(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("../../docs/operations.md")
	musttest.OK(t, err)
	_, rest, _ := strings.Cut(string(raw), "### Metrics of web")
	section, _, _ := strings.Cut(rest, "\n### ")
	descriptions := make(chan *prometheus.Desc)
	go func() {
		p.Registry.Describe(descriptions)
		close(descriptions)
	}()
	registered := map[string]bool{}
	for d := range descriptions {
		if m := regexp.MustCompile(`fqName: "(dropbell_\w+)"`).FindStringSubmatch(d.String()); m != nil {
			registered[m[1]] = true
			if !strings.Contains(section, "`"+m[1]+"`") {
				t.Errorf("%s is not in the handbook", m[1])
			}
		}
	}
	for _, m := range regexp.MustCompile("`(dropbell_[a-z_]+)`").FindAllStringSubmatch(section, -1) {
		if !registered[m[1]] {
			t.Errorf("the handbook lists %s, which nobody registers", m[1])
		}
	}
}
