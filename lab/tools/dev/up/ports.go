package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"dropbell/adapters/localstack"
)

// choosePorts gives web and worker an address each. Both addresses are chosen before web and
// worker listen, so that they differ and each program knows the other's address.
func (s *stack) choosePorts(context.Context) error {
	for _, a := range []struct {
		name, other string
		first       int
		use         string
	}{
		{"HTTP_ADDR", "WORKER_HTTP_ADDR", 8080, "the console"},
		{"WORKER_HTTP_ADDR", "HTTP_ADDR", 8081, "the worker's metrics"},
	} {
		if s.settings.get(a.name) != "" {
			continue
		}
		p, err := port(a.first, a.use, portOf(s.settings.get(a.other)))
		if err != nil {
			return err
		}
		s.settings.set(a.name, fmt.Sprintf("127.0.0.1:%d", p))
	}
	s.settings.setDefault("PUBLIC_URL", "http://"+dialable(s.settings.get("HTTP_ADDR")))
	return nil
}

// portOf returns the port of an address to listen on, 0 if it has none.
func portOf(addr string) int {
	_, p, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(p)
	return n
}

// port returns first, or the next port that is free and not given, and says so.
func port(first int, use string, given ...int) (int, error) {
	p, err := localstack.FreePort(first, given...)
	if err == nil && p != first {
		say("port %d is taken, %s uses %d", first, use, p)
	}
	return p, err
}

// awaitReady waits for web's own opinion.
func (s *stack) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if webReady(ctx, s.settings.url()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("web is not ready (%w); see %s/log/web.log", context.Cause(ctx), local)
		case <-tick.C:
		}
	}
}

// webReady reports whether web answers at url and is ready. It reads the API's description,
// which only web has; the worker has a /readyz, too.
func webReady(ctx context.Context, url string) bool {
	var api struct {
		Info struct {
			Title string `json:"title"`
		} `json:"info"`
	}
	return answer(ctx, url+"/readyz", nil) && answer(ctx, url+"/openapi.json", &api) && api.Info.Title == "Dropbell API"
}

// answer reports whether a GET is answered with 200 and, if into is not nil, with JSON that can
// be decoded into it.
func answer(ctx context.Context, url string, into any) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK && (into == nil || json.NewDecoder(response.Body).Decode(into) == nil)
}
