package demo_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/lab/bench/stack"
	"dropbell/lab/tools/dev/demo"
	"dropbell/musttest"
)

const (
	root = "../../../../" // of the repository
	key  = "dbk_readmestestreadmestest"
)

// TestWhatTheReadmesShowWorks pastes every block with curl into a shell. The shell has only the
// token that `up` prints, and Dropbell has the demo's first drops.
func TestWhatTheReadmesShowWorks(t *testing.T) {
	const secret = "a secret of tests, long enough for HS256"
	servers := &stack.Stack{PostgresURL: localstack.Database(t), RedisURL: localstack.RedisServer(t).URL()}
	web, err := servers.StartProgram(t.Context(), "web", "ADMIN_API_KEY="+key, "AUTH_JWT_SECRET="+secret,
		"SMTP_URL=smtp://127.0.0.1:1?from=shop@example.test", "REQUEST_TIMEOUT=15s", "SHUTDOWN_DELAY=0s")
	musttest.OK(t, err)
	t.Cleanup(web.Stop)
	client := demo.NewClient("http://"+web.Addr, key)
	for _, add := range []func(context.Context, time.Time) (demo.Drop, error){client.AddSoon, client.AddTomorrow} { // in the order of `up`
		if _, err := add(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	token, err := demo.Issuer{Secret: secret}.Token(demo.FirstUser, time.Now(), time.Hour)
	musttest.OK(t, err)
	pages, err := filepath.Glob(root + "docs/*.md")
	musttest.OK(t, err)
	t.Run("blocks", func(t *testing.T) {
		for _, page := range append(pages, root+"README.md", root+"README.zh-CN.md") {
			blocks := curlBlocks(t, page)
			if len(blocks) < 2 && strings.Contains(page, "README") {
				t.Errorf("%s has %d blocks with curl", page, len(blocks))
			}
			for i, block := range blocks {
				t.Run(fmt.Sprint(filepath.Base(page), i), func(t *testing.T) {
					if strings.Contains(block, "sleep ") { // until its drop opens
						t.Parallel()
					}
					paste(t, strings.ReplaceAll(block, "127.0.0.1:8080", web.Addr), token)
				})
			}
		}
	})
	conn, err := pgx.Connect(t.Context(), servers.PostgresURL)
	musttest.OK(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	for query, want := range map[string]int{
		`select count(*) from reservations where user_id = 1001`:                   1,
		`select slots from reservations where user_id = 1001 and template_id = 65`: 2 + 1<<(12+5), // app 10, email 30
		`select count(*) from coupons where user_id = 1001`:                        2,
	} {
		var got int
		if err := conn.QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, want %d (%v)", query, got, want, err)
		}
	}
}

// curlBlocks returns the blocks of a page that have a curl in them.
func curlBlocks(t *testing.T, page string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	musttest.OK(t, err)
	for i, part := range strings.Split(string(text), "\n```") {
		if _, block, ok := strings.Cut(part, "\n"); ok && i%2 == 1 && strings.Contains(block, "curl ") {
			found = append(found, block)
		}
	}
	return found
}

// paste runs a block in a checkout of which there is no more than the secrets.
func paste(t *testing.T, block, token string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		".local/secrets.env": "ADMIN_API_KEY=" + key + "\n",
		"bin/curl":           fmt.Sprintf("#!/bin/sh\nexec '%s' -test.run '^TestPlayCurl$' -- \"$@\"\n", os.Args[0]),
	} {
		path := filepath.Join(dir, name)
		musttest.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)))
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", block)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "TOKEN=" + token, playsCurl + "=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\nsays\n%s", err, block, out)
	}
}

const playsCurl = "DROPBELL_TEST_PLAYS_CURL"

// TestPlayCurl is the curl of these shells, since a test machine need not have curl. Unlike the
// real curl it fails if the request is refused.
func TestPlayCurl(t *testing.T) {
	if os.Getenv(playsCurl) == "" {
		return // nothing to be tested here
	}
	if err := playCurl(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(22)
	}
	os.Exit(0) // the test binary would say PASS
}

func playCurl(args []string) error {
	method, address, body := http.MethodGet, "", ""
	header := http.Header{}
	for len(args) > 0 {
		option := args[0]
		args = args[1:]
		switch option {
		case "-sS":
			continue
		case "-X", "-H", "-d":
			if len(args) == 0 {
				return errors.New(option + " needs a value")
			}
		default:
			address = option
			continue
		}
		switch value := args[0]; option {
		case "-X":
			method = value
		case "-d":
			method, body = http.MethodPost, value
		case "-H":
			name, text, _ := strings.Cut(value, ": ")
			header.Add(name, text)
		}
		args = args[1:]
	}
	q, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	q.Header = header
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := io.Copy(io.MultiWriter(os.Stdout, &text), answer.Body); err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s: %s", answer.Status, &text)
	}
	return nil
}
