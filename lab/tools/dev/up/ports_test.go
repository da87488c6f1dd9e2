package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWebAndWorkerNeverShareAPort(t *testing.T) {
	for _, port := range []int{8080, 8081} {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil { // else it is taken anyway
			defer l.Close()
		}
	}
	for _, given := range []map[string]string{
		{},
		{"HTTP_ADDR": "127.0.0.1:8082"},
		{"WORKER_HTTP_ADDR": ":8082"},
	} {
		s := &stack{settings: newSettings(func(name string) string { return given[name] })}
		if err := s.choosePorts(t.Context()); err != nil {
			t.Fatal(err)
		}
		web, worker := portOf(s.settings.get("HTTP_ADDR")), portOf(s.settings.get("WORKER_HTTP_ADDR"))
		if web == worker || web == 0 || worker == 0 {
			t.Errorf("given %v: web listens on %d, worker on %d", given, web, worker)
		}
	}
}

func TestOnlyWebAnswersAsWeb(t *testing.T) {
	ok := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	worker, web, other := http.NewServeMux(), http.NewServeMux(), http.NewServeMux()
	for _, mux := range []*http.ServeMux{worker, web, other} {
		mux.Handle("/readyz", ok("ok"))
	}
	web.Handle("/openapi.json", ok(`{"openapi":"3.1.0","info":{"title":"Dropbell API"}}`))
	other.Handle("/", ok(`{"info":{"title":"something else"}}`))
	for _, c := range []struct {
		who  string
		mux  http.Handler
		want bool
	}{{"worker", worker, false}, {"web", web, true}, {"another program", other, false}} {
		server := httptest.NewServer(c.mux)
		if got := webReady(t.Context(), server.URL); got != c.want {
			t.Errorf("%s: taken for web is %v", c.who, got)
		}
		server.Close()
	}
}
