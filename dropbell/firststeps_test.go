package main

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/localstack"
)

const stepsKey = "dbk_firststepsfirststepsfirst"

// steps runs the commands on the page of the first steps.
type steps struct {
	*testing.T
	address, dir, drop string
	printed            map[string]string // commands by the section they are in
}

// TestFirstSteps runs the requests of /docs/start in the shell against both programs, exactly as
// the page prints them. A reminder arrives and a coupon is claimed. The test moves the opening
// in between, which saves minutes of waiting.
func TestFirstSteps(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	s := &steps{T: t, address: serveAll(t), dir: t.TempDir(), printed: map[string]string{}}
	page := body(t, s.address+"/docs/start")
	section := regexp.MustCompile(`(?s)<section class="card" id="([a-z]+)">.*?</section>`)
	for _, m := range section.FindAllStringSubmatch(page, -1) {
		if _, code, found := strings.Cut(m[0], "<code>"); found {
			code, _, _ = strings.Cut(code, "</code>")
			s.printed[m[1]] = html.UnescapeString(code)
		}
	}
	if len(s.printed) != 6 {
		t.Fatalf("the page has %d commands", len(s.printed))
	}
	created := s.run("create")
	id := regexp.MustCompile(`drop (\d+)\n$`).FindStringSubmatch(created)
	if id == nil {
		t.Fatalf("no drop was created: %s", created)
	}
	s.drop = id[1]
	s.succeeds("publish", `"state":"scheduled"`)
	s.succeeds("reserve", `"minutes":5`)
	if said := s.run("claim"); !strings.Contains(said, `"not_started"`) {
		t.Errorf("a claim before the opening: %s", said)
	}
	s.opensIn(5 * time.Minute)
	s.until("inbox", "First drop", 5*time.Minute)
	s.opensIn(0)
	s.until("claim", `"coupon_id"`, 0)
}

// serveAll runs both programs in this process until the test ends, and returns the address of
// web. more are further environment variables, as pairs of name and value.
func serveAll(t *testing.T, more ...string) string {
	t.Helper()
	ports := [2]string{}
	for i := range ports {
		port, err := localstack.FreePort(0)
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = "127.0.0.1:" + strconv.Itoa(port)
	}
	ctx, stop := context.WithCancel(context.Background())
	out, ended := &journal{}, make(chan error, 1)
	url, redis := localstack.Database(t), localstack.RedisServer(t).URL()
	go func() {
		ended <- command(ctx, []string{"all"}, environment(append([]string{"DATABASE_URL", url, "REDIS_URL", redis, "HTTP_ADDR", ports[0],
			"WORKER_HTTP_ADDR", ports[1], "PUBLIC_URL", "http://" + ports[0], "ADMIN_API_KEY", stepsKey}, more...)...), out)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("dropbell all: %v\n%s", err, out)
		}
	})
	for _, port := range ports {
		awaitReady(t, port, func() error {
			select {
			case err := <-ended:
				ended <- err
				return fmt.Errorf("dropbell all ended: %w\n%s", err, out)
			default:
				return nil
			}
		})
	}
	return "http://" + ports[0]
}

// awaitReady waits until the program at the address is ready. The test fails as soon as ended
// returns an error, because the program can no longer become ready.
func awaitReady(t *testing.T, address string, ended func() error) {
	t.Helper()
	for {
		if err := ended(); err != nil {
			t.Fatal(err)
		}
		answer, err := http.Get("http://" + address + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		<-time.After(50 * time.Millisecond)
	}
}

// run runs the command of a section and returns its output.
func (s *steps) run(section string) string {
	s.Helper()
	script := strings.Replace(s.printed["key"], "dbk_…", stepsKey, 1) + "\nDROP=" + s.drop + "\n" + s.printed[section]
	cmd := exec.CommandContext(s.Context(), "sh", "-c", script)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%s: %v\n%s\n%s", section, err, script, out)
	}
	return string(out)
}

func (s *steps) succeeds(section, want string) {
	s.Helper()
	if said := s.run(section); !strings.Contains(said, want) {
		s.Fatalf("%s: %s\n%s", section, said, s.printed[section])
	}
}

// until repeats the command of a section, as the page says, until the command prints want. On a
// slow machine the command may miss its instant; until then moves the opening again, to after
// from now.
func (s *steps) until(section, want string, after time.Duration) {
	s.Helper()
	moved := time.Now()
	for said := s.run(section); !strings.Contains(said, want); said = s.run(section) {
		if time.Since(moved) > 15*time.Second && after > 0 {
			s.opensIn(after)
			moved = time.Now()
		}
		select {
		case <-s.Context().Done():
			s.Fatalf("%s: %s", section, said)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// opensIn moves the drop's opening to after from now, plus a few seconds. If the server refuses
// the instant as past, opensIn adds more seconds.
func (s *steps) opensIn(after time.Duration) {
	s.Helper()
	for seconds := 2; ; seconds *= 2 {
		opens := time.Now().Add(after + time.Duration(seconds)*time.Second).Truncate(time.Second)
		now, _ := s.template(http.MethodGet, "", "")
		change := fmt.Sprintf(`{"opens_at":%q,"remind_once":true}`, opens.UTC().Format(time.RFC3339))
		if _, status := s.template(http.MethodPatch, now.String(), change); status == http.StatusOK {
			return
		} else if seconds > 100 {
			s.Fatalf("moving the opening: %d", status)
		}
	}
}

// template reads or changes the drop and returns its version.
func (s *steps) template(method, version, content string) (json.Number, int) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.address+"/api/v1/admin/templates/"+s.drop, strings.NewReader(content))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+stepsKey)
	if content != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("If-Match", `"`+version+`"`)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer w.Body.Close()
	var answer struct{ Version json.Number }
	if err := json.NewDecoder(w.Body).Decode(&answer); err != nil {
		s.Fatal(err)
	}
	return answer.Version, w.StatusCode
}
