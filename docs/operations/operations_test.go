// Package operations_test holds the handbook, the dashboard and the alert
// rules to each other and to the database. That the handbook lists exactly
// the metrics which the programs register is tested beside the programs.
package operations_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/jackc/pgx/v5"
	"go.yaml.in/yaml/v3"

	"dropbell/adapters/localstack"
	"dropbell/musttest"
)

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	musttest.OK(t, err)
	return string(raw)
}

// documented returns every metric of the handbook's tables.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for line := range strings.Lines(read(t, "../operations.md")) {
		if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok {
			for _, m := range regexp.MustCompile("`(dropbell_[a-z_]+)`").FindAllStringSubmatch(cell, -1) {
				found[m[1]] = true
			}
		}
	}
	if len(found) < 20 {
		t.Fatalf("only %d metrics found in the handbook", len(found))
	}
	return found
}

// anchors returns what headings of the handbook can be linked to.
func anchors(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for line := range strings.Lines(read(t, "../operations.md")) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			id := strings.ToLower(strings.TrimSpace(title))
			found[strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(id, ""), " ", "-")] = true
		}
	}
	return found
}

// others are metrics that are not ours.
var others = []string{"up", "process_resident_memory_bytes", "process_cpu_seconds_total", "go_goroutines"}

// unknown returns names in the expression that are neither metrics nor words
// of the query language.
func unknown(expression string, metrics map[string]bool) []string {
	bare := regexp.MustCompile(`"[^"]*"|\b(by|on|ignoring|without)\s*\([^)]*\)|\[[^]]*\]|\{[^}]*\}|\boffset \w+`).ReplaceAllString(expression, " ")
	words := []string{"sum", "max", "max_over_time", "min", "rate", "increase", "histogram_quantile", "absent", "time", "vector", "and", "or", "unless"}
	var list []string
	for _, name := range regexp.MustCompile(`[a-z][a-z_]*`).FindAllString(bare, -1) {
		base := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
		if !metrics[name] && !metrics[base] && !slices.Contains(words, name) && !slices.Contains(others, name) {
			list = append(list, name)
		}
	}
	return list
}

func TestUnknownNamesAreFound(t *testing.T) {
	metrics := map[string]bool{"dropbell_sent_total": true, "dropbell_late_seconds": true}
	for expression, want := range map[string]string{
		`sum by (channel) (rate(dropbell_sent_total{channel=~"app|sms"}[5m])) > 0.2`:              "",
		`histogram_quantile(0.99, sum by (le) (rate(dropbell_late_seconds_bucket[$__interval])))`: "",
		`max(dropbell_sent)`:                           "dropbell_sent",
		`avg_over_time(dropbell_sent_total[5m])`:       "avg_over_time",
		`dropbell_sent_total / dropbell_other_seconds`: "dropbell_other_seconds",
	} {
		if got := strings.Join(unknown(expression, metrics), " "); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}

type panel struct {
	ID          int
	Type, Title string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ Expr, RefID string }
}

func TestDashboard(t *testing.T) {
	var board struct {
		UID    string
		Panels []panel
	}
	musttest.OK(t, json.Unmarshal([]byte(read(t, "grafana-dropbell.json")), &board))
	metrics, shown, ids := documented(t), read(t, "grafana-dropbell.json"), map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s: id %d at %+v", p.Title, p.ID, p.GridPos)
		}
		ids[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("%s shows nothing, or does not say what", p.Title)
		}
		for _, target := range p.Targets {
			if bad := unknown(target.Expr, metrics); len(bad) > 0 {
				t.Errorf("%s: %v in %s", p.Title, bad, target.Expr)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if !strings.Contains(shown, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// A rule is one alert.
type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// rules returns every alert of alerts.yml.
func rules(t *testing.T) (list []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	musttest.OK(t, yaml.NewDecoder(strings.NewReader(read(t, "alerts.yml"))).Decode(&file))
	for _, group := range file.Groups {
		list = append(list, group.Rules...)
	}
	return list
}

func TestAlerts(t *testing.T) {
	metrics, sections, handbook, seen := documented(t), anchors(t), read(t, "../operations.md"), map[string]bool{}
	for _, r := range rules(t) {
		if bad := unknown(r.Expr, metrics); r.Alert == "" || seen[r.Alert] || len(bad) > 0 {
			t.Errorf("%s: %v in %s", r.Alert, bad, r.Expr)
		}
		seen[r.Alert] = true
		section, ok := strings.CutPrefix(r.Annotations["runbook_url"], "docs/operations.md#")
		if !ok || !sections[section] {
			t.Errorf("%s: no runbook at %s", r.Alert, r.Annotations["runbook_url"])
		}
		if !strings.Contains(handbook, "`"+r.Alert+"`") {
			t.Errorf("%s is not in the handbook", r.Alert)
		}
		if s := r.Labels["severity"]; r.Annotations["summary"] == "" || s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q, summary %q", r.Alert, s, r.Annotations["summary"])
		}
	}
	for _, m := range regexp.MustCompile("`(Dropbell[A-Z][A-Za-z]+)`").FindAllStringSubmatch(handbook, -1) {
		if !seen[m[1]] {
			t.Errorf("the handbook knows an alert %s that does not exist", m[1])
		}
	}
}

// said returns the annotation as Prometheus fills it in. A label that the
// alert does not have is empty there.
func said(t *testing.T, annotation string, labels map[string]string, value float64) string {
	t.Helper()
	same := func(v float64) float64 { return v }
	parsed, err := template.New("").Funcs(template.FuncMap{"humanize": same, "humanizeDuration": same, "humanizePercentage": same}).
		Parse(`{{ $labels := .Labels }}{{ $value := .Value }}` + annotation)
	musttest.OK(t, err)
	var out strings.Builder
	musttest.OK(t, parsed.Execute(&out, map[string]any{"Labels": labels, "Value": value}))
	return out.String()
}

// labelsOf returns the labels that alerts of the expression have: for each
// side of an "or" those of its outermost "by".
func labelsOf(expr string) (sets []map[string]string) {
	for side := range strings.SplitSeq(expr, " or ") {
		labels, all := map[string]string{"instance": "[instance]", "job": "[job]"}, regexp.MustCompile(`^\s*(sum|max|absent|time)\(`)
		if all.MatchString(side) {
			labels = map[string]string{}
		} else if by := regexp.MustCompile(`\bby \(([^)]*)\)`).FindStringSubmatch(side); by != nil {
			labels = map[string]string{}
			for name := range strings.SplitSeq(by[1], ",") {
				labels[strings.TrimSpace(name)] = "[" + strings.TrimSpace(name) + "]"
			}
		}
		sets = append(sets, labels)
	}
	return sets
}

// TestAlertsSayWhatTheyAreAbout: for each side of its rule the text of an alert names
// all the labels it has and leaves no gap.
func TestAlertsSayWhatTheyAreAbout(t *testing.T) {
	for _, r := range rules(t) {
		for _, labels := range labelsOf(r.Expr) {
			for kind, annotation := range r.Annotations {
				text := said(t, annotation, labels, 3)
				if regexp.MustCompile(`  | [,:]|^[,:]|\s$`).MatchString(text) || strings.Contains(text, "<no value>") {
					t.Errorf("%s of %s with %v has a gap: %q", kind, r.Alert, labels, text)
				}
				for name, value := range labels {
					if kind == "summary" && name != "le" && !strings.Contains(text, value) {
						t.Errorf("%s does not name its %s: %q", r.Alert, name, text)
					}
				}
			}
		}
	}
}

func TestBalanceAlert(t *testing.T) {
	i := slices.IndexFunc(rules(t), func(r rule) bool { return r.Alert == "DropbellBalanceDifference" })
	r := rules(t)[i]
	for _, c := range []struct {
		labels               map[string]string
		summary, description string
	}{
		{map[string]string{"template": "7", "slot": "1", "channel": "sms"},
			"Reminders of template 7, slot 1, channel sms: the balance sheet is off by 3, somebody is not accounted for", "See it with: worker audit 7"},
		{map[string]string{"campaign": "9"}, "Campaign 9: the balance sheet is off by 3, somebody is not accounted for", "See it with: worker audit campaign 9"},
		{map[string]string{"template": "7", "run": "12"}, "Notices of template 7, run 12: the balance sheet is off by 3, somebody is not accounted for", "See it with: worker audit notices"},
	} {
		if got := said(t, r.Annotations["summary"], c.labels, 3); got != c.summary {
			t.Errorf("%q, want %q", got, c.summary)
		}
		if got := said(t, r.Annotations["description"], c.labels, 3); got != c.description {
			t.Errorf("%q, want %q", got, c.description)
		}
	}
}

func TestHandbookLinks(t *testing.T) {
	sections := anchors(t)
	for _, m := range regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(read(t, "../operations.md"), -1) {
		if !sections[m[1]] {
			t.Errorf("#%s is no heading", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`\]\((operations/[^)#]+|[a-z]+\.md)[^)]*\)`).FindAllStringSubmatch(read(t, "../operations.md"), -1) {
		if _, err := os.Stat("../" + m[1]); err != nil {
			t.Error(err)
		}
	}
}

// TestStatements runs every statement of the handbook against the schema.
func TestStatements(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), localstack.Database(t))
	musttest.OK(t, err)
	defer conn.Close(t.Context())
	handbook := read(t, "../operations.md")
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(handbook, -1)
	inline := regexp.MustCompile("`((?:select|update|insert|delete) [^`]+)`").FindAllStringSubmatch(handbook, -1)
	if len(blocks) < 5 || len(inline) < 4 {
		t.Fatalf("%d blocks and %d statements found", len(blocks), len(inline))
	}
	for _, m := range append(blocks, inline...) {
		sql := strings.ReplaceAll(m[1], "pg_terminate_backend(…)", "pg_terminate_backend(0)")
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("%v in\n%s", err, sql)
		}
	}
}
