package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/adapters/config"
)

// TestListenForwards: events are posted in order and signed, each until it is accepted. The
// server fails, breaks the connection in the middle and restarts, and the shop refuses events.
// The command continues at the position it had reached.
func TestListenForwards(t *testing.T) {
	t.Run("a server that waits", func(t *testing.T) { listenForwards(t, true) })
	t.Run("an older server", func(t *testing.T) { listenForwards(t, false) })
}

func listenForwards(t *testing.T, waits bool) {
	const secret, events = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 25
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var got []string
	asked := 0
	refusals := map[string]int{"msg_103": 1, "msg_110": 2, "msg_125": 1} // before each is accepted
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err := errors.Join(err, verifier.Verify(body, r.Header)); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if id := r.Header.Get("webhook-id"); refusals[id] > 0 {
			refusals[id]--
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		if got = append(got, r.Header.Get("webhook-id")); len(got) == events {
			stop()
		}
	}))
	t.Cleanup(shop.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/api/v1/admin/events" || r.Header.Get("Authorization") != "Bearer dbk_x" || q.Get("shop") != "10" || q.Get("types") != "drop.opened" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		mu.Lock()
		asked++
		n := asked
		mu.Unlock()
		if wait := q.Get("wait"); wait != "" && (!waits || q.Get("after") == "") {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		} else if waits && q.Get("after") != "" && wait != waitAtServer {
			t.Errorf("it waits for %q", wait)
		}
		p := map[string]any{"events": []any{}, "next": "100"}
		if after, err := strconv.Atoi(q.Get("after")); err == nil {
			list := []any{}
			for id := after + 1; id <= 100+events && len(list) < 4; id++ {
				list = append(list, map[string]string{"id": fmt.Sprint("msg_", id), "type": "drop.opened", "payload": "{}"})
			}
			p = map[string]any{"events": list, "next": strconv.Itoa(after + len(list))}
		}
		body, _ := json.Marshal(p)
		switch n % 4 {
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			w.Header().Set("Content-Length", strconv.Itoa(len(body)+10))
			_, _ = w.Write(body[:len(body)/2]) // the connection breaks
		default:
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	l, _, err := newListener([]string{"--shop", "10", "--forward", shop.URL, "--server", server.URL + "/", "--events", "drop.opened", "--secret", secret},
		environment("ADMIN_API_KEY", "dbk_x"), &out)
	if err != nil {
		t.Fatal(err)
	}
	l.pause = time.Millisecond
	if err := l.run(ctx); err != nil {
		t.Fatal(err)
	}
	var want []string
	for id := 101; id <= 100+events; id++ {
		want = append(want, fmt.Sprint("msg_", id))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if text := out.String(); strings.Count(text, "-> 200") != events || strings.Count(text, "-> 500, again in") != 4 || !strings.Contains(text, "HTTP 503; trying again") || !strings.Contains(text, "the connection broke") ||
		!strings.Contains(text, fmt.Sprint("--after ", 100+events)) {
		t.Error(text)
	}
}

// TestListenRefusedLater: when the key ends in the middle, the command says where to go on.
func TestListenRefusedLater(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("after") == "" {
			_, _ = io.WriteString(w, `{"events":[],"next":"100"}`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	l, _, err := newListener([]string{"--shop", "10", "--forward", "http://127.0.0.1:1", "--server", server.URL, "--key", "dbk_x"}, environment(), &out)
	if err != nil {
		t.Fatal(err)
	}
	l.pause = time.Millisecond
	if err := l.run(t.Context()); err == nil || !strings.Contains(out.String(), "To go on from here: --after 100") {
		t.Errorf("%v: %s", err, &out)
	}
}

// TestListenRefuses settings that cannot work, and says how to correct them.
func TestListenRefuses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"detail":"you may not do this"}`)
	}))
	t.Cleanup(server.Close)
	for args, says := range map[string]string{
		"":                                      "--forward must be an http or https address",
		"--forward ftp://x":                     "--forward must be an http or https address",
		"--forward http://localhost:1":          "--shop is required",
		"--forward http://localhost:1 --shop 1": "give --key or ADMIN_API_KEY",
		"--forward http://localhost:1 --shop 1 --key k more":                   `unknown argument "more"`,
		"--forward http://localhost:1 --shop 1 --key k --secret %":             "--secret must be whsec_",
		"--forward http://localhost:1 --server x":                              "--server must be",
		"--forward http://localhost:1 --shop 1 --key k --server " + server.URL: "HTTP 403 you may not do this",
		"--nonsense": "flag provided but not defined",
	} {
		err := listen(t.Context(), strings.Fields(args), environment(), io.Discard)
		if _, mistake := errors.AsType[config.Mistake](err); !mistake || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
