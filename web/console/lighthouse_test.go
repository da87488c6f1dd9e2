//go:build lighthouse

package console_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/adapters/localstack"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/docs"
	"dropbell/web/console/shell"
	"dropbell/web/middleware"
)

// leastMark is the lowest mark that a page may get in each of Lighthouse's four categories, as a
// phone sees it.
const leastMark = 95

// Lighthouse opens pages with data on a simulated slow network. The whole program serves them:
// compressed, and to a browser with an empty cache.
func TestLighthouse(t *testing.T) {
	modules := localstack.NPMPackages(t, "../../lab/tools/lighthouse")
	g := consoletest.New(t)
	r := chi.NewRouter()
	r.Use(middleware.Requests(middleware.Options{Log: g.Console.Log}))
	r.With(middleware.Compress()).Mount("/", g.Console)
	g.Server = httptest.NewServer(r)
	t.Cleanup(g.Server.Close)
	t.Cleanup(g.Console.Close) // streams first
	d := g.Published(10, 3*time.Hour)
	g.Exec(`insert into booking_growth select $1, date_trunc('minute', now()) - n * interval '1 minute', n from generate_series(0, 600) n`, d.ID)
	c := g.SentOut("Moon cakes", 10, 120)
	b := g.As(staff.Admin)
	home, err := url.Parse(g.Server.URL)
	g.Must(err)
	var cookies []string
	for _, k := range b.Client.Jar.Cookies(home) {
		cookies = append(cookies, k.Name+"="+k.Value)
	}
	judge(t, g, modules, "", "/signin", docs.Path, docs.Path+"/start")
	judge(t, g, modules, strings.Join(cookies, "; "), "/", "/templates", shell.TemplateURL(d.ID), shell.TemplateURL(d.ID)+"?tab=live",
		shell.TemplateURL(d.ID)+"/report", "/campaigns", fmt.Sprintf("/campaigns/%d", c.ID), "/results", "/users", "/shops", "/audit")
}

// judge fails for each page with a mark that is too low, and lists the causes.
func judge(t *testing.T, g *consoletest.Fixture, modules, cookie string, paths ...string) {
	t.Helper()
	chromium, err := localstack.FindChromium(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"../../lab/tools/lighthouse/judge.mjs", modules, chromium, cookie}
	for _, path := range paths {
		args = append(args, g.Server.URL+path)
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	judged := 0
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); judged++ {
		var page struct {
			URL   string
			Marks map[string]*int
			Lost  []string
			Error string
		}
		if err := json.Unmarshal(lines.Bytes(), &page); err != nil || page.Error != "" || len(page.Marks) != 4 {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		t.Logf("%s", lines.Text())
		for category, mark := range page.Marks {
			if mark == nil || *mark < leastMark {
				t.Errorf("%s: %s has less than %d: %s", page.URL, category, leastMark, lines.Text())
			}
		}
	}
	if judged != len(paths) {
		t.Errorf("%d of %d pages were judged\n%s", judged, len(paths), complaints.String())
	}
}
