package callbacks_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/musttest"
	"dropbell/web/callbacks"
	"dropbell/web/middleware"
)

// source is a named source whose Read calls its function.
type source struct {
	name string
	read func(header http.Header, u *url.URL, body []byte) (feedback.Call, error)
}

func (s source) Name() string { return s.name }

func (s source) Read(h http.Header, u *url.URL, body []byte) (feedback.Call, error) {
	return s.read(h, u, body)
}

// speaking is a source that answers replies.
type speaking struct{ source }

func (speaking) Answer(answers []string) (string, []byte) {
	return "text/xml", []byte("<r>" + strings.Join(answers, "|") + "</r>")
}

type fakeTaker struct {
	taken []feedback.Report
	err   error
}

func (f *fakeTaker) Take(_ context.Context, reports []feedback.Report) error {
	if f.err == nil {
		f.taken = append(f.taken, reports...)
	}
	return f.err
}

type fakeReplies struct{ err error }

func (f fakeReplies) Replies(_ context.Context, replies []feedback.Reply) (answers []string, err error) {
	for _, r := range replies {
		answers = append(answers, "heard "+r.Text)
	}
	return answers, f.err
}

func serve(t *testing.T, d callbacks.Deps) string {
	t.Helper()
	d.Now, d.Log = time.Now, slog.New(slog.DiscardHandler)
	r := chi.NewRouter()
	r.Mount(callbacks.Prefix, callbacks.New(d))
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return server.URL + callbacks.Prefix
}

func ask(t *testing.T, method, address, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	musttest.OK(t, err)
	res, err := http.DefaultTransport.RoundTrip(req)
	musttest.OK(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	musttest.OK(t, err)
	return res, string(raw)
}

// byBody is a source that reads the kind of a call from its body.
var byBody = source{"one", func(_ http.Header, _ *url.URL, body []byte) (feedback.Call, error) {
	switch string(body) {
	case "forged":
		return feedback.Call{}, feedback.ErrUnverified
	case "odd":
		return feedback.Call{}, feedback.ErrUnreadable
	case "bug":
		panic("index out of range")
	case "key missing":
		return feedback.Call{}, errors.New("certificate could not be loaded")
	case "nothing":
		return feedback.Call{}, nil
	}
	return feedback.Call{Reports: []feedback.Report{{Ref: feedback.Ref{Batch: 1, User: 2}, Status: feedback.Delivered}},
		Replies: []feedback.Reply{{Text: string(body)}}}, nil
}}

// The answers make a provider repeat the calls that were not stored, and no other calls.
func TestAnswers(t *testing.T) {
	down := fault.New(fault.Unavailable, "overloaded", "no database")
	for name, c := range map[string]struct {
		method, path, body string
		err                error // of the store
		status             int
		code               string
	}{
		"stored":              {"POST", "/one", "x", nil, 204, ""},
		"nothing to store":    {"POST", "/one", "nothing", down, 204, ""},
		"an answer":           {"POST", "/two", "x", nil, 200, ""},
		"forged":              {"POST", "/one", "forged", nil, 401, "callback_unverified"},
		"another format":      {"POST", "/one", "odd", nil, 422, "callback_unreadable"},
		"a defect":            {"POST", "/one", "bug", nil, 422, "callback_unreadable"},
		"not checked":         {"POST", "/one", "key missing", nil, 503, "overloaded"},
		"no database":         {"POST", "/one", "x", down, 503, "overloaded"},
		"an unknown error":    {"POST", "/one", "x", errors.New("defect"), 503, "overloaded"},
		"no such source":      {"POST", "/three", "x", nil, 404, "callback_source_unknown"},
		"below a source":      {"POST", "/one/x", "x", nil, 404, "callback_source_unknown"},
		"looked at":           {"GET", "/one", "", nil, 405, "method_not_allowed"},
		"1 MiB":               {"POST", "/one", strings.Repeat("x", 1<<20), nil, 204, ""},
		"more than 1 MiB":     {"POST", "/one", strings.Repeat("x", 1<<20+1), nil, 413, "body_too_large"},
		"too large a forgery": {"POST", "/one", strings.Repeat("forged", 1<<20), nil, 413, "body_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			taker := &fakeTaker{err: c.err}
			at := serve(t, callbacks.Deps{Sources: []callbacks.Source{byBody, speaking{source{"two", byBody.read}}}, Reports: taker, Replies: fakeReplies{}})
			res, body := ask(t, c.method, at+c.path, c.body)
			var problem struct{ Code string }
			_ = json.Unmarshal([]byte(body), &problem)
			if res.StatusCode != c.status || problem.Code != c.code {
				t.Errorf("%d %s", res.StatusCode, body)
			}
			if c.code != "" && res.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("a refusal of the type %q", res.Header.Get("Content-Type"))
			}
			if (res.Header.Get("Retry-After") != "") != (c.status == 503) {
				t.Errorf("to be repeated after %q", res.Header.Get("Retry-After"))
			}
			if c.path == "/two" && (body != "<r>heard x</r>" || res.Header.Get("Content-Type") != "text/xml") {
				t.Errorf("the answer is %q", body)
			}
			if stored := len(taker.taken) > 0; stored != (c.status < 300 && c.body != "nothing") {
				t.Errorf("stored %v", taker.taken)
			}
		})
	}
}

// The calls of a provider are accepted however many forged calls come from its address.
func TestOnlyUnverifiedCallsAreLimited(t *testing.T) {
	var results []string
	at := serve(t, callbacks.Deps{Sources: []callbacks.Source{byBody}, Reports: &fakeTaker{}, Replies: fakeReplies{},
		Answered: func(source, result string) { results = append(results, source+" "+result) }}) + "/one"
	for range 60 {
		if res, _ := ask(t, "POST", at, "forged"); res.StatusCode != 401 {
			t.Fatalf("%d", res.StatusCode)
		}
	}
	if res, body := ask(t, "POST", at, "forged"); res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if res, body := ask(t, "POST", at, "x"); res.StatusCode != 204 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if want := append(slices.Repeat([]string{"one unverified"}, 61), "one taken"); !slices.Equal(results, want) {
		t.Errorf("%q", results)
	}
}

// Sources see the address that the provider called, however it reached this process.
func TestTheAddressIsThePublicOne(t *testing.T) {
	for public, want := range map[string]string{"https://bell.example/base": "https://bell.example/base/callbacks/one?token=a%2Fb", "": "http://"} {
		var seen string
		at := serve(t, callbacks.Deps{PublicURL: public, Sources: []callbacks.Source{source{"one", func(_ http.Header, u *url.URL, _ []byte) (feedback.Call, error) {
			seen = u.String()
			return feedback.Call{}, nil
		}}}})
		if public == "" {
			want = at + "/one?token=a%2Fb"
		}
		if res, body := ask(t, "POST", at+"/one?token=a%2Fb", ""); res.StatusCode != 204 || seen != want {
			t.Errorf("%d %s, seen as %s, not %s", res.StatusCode, body, seen, want)
		}
	}
}

// More calls at a time than the process has memory for are repeated later.
func TestCallsAtATimeAreBounded(t *testing.T) {
	enter, leave := make(chan struct{}), make(chan struct{})
	slow := source{"one", func(http.Header, *url.URL, []byte) (feedback.Call, error) {
		enter <- struct{}{}
		<-leave
		return feedback.Call{}, nil
	}}
	at := serve(t, callbacks.Deps{Sources: []callbacks.Source{slow}, Budget: middleware.NewBudget(1, "callbacks", nil)}) + "/one"
	first := make(chan int)
	go func() {
		res, err := http.Post(at, "", nil)
		if err != nil {
			first <- 0
			return
		}
		res.Body.Close()
		first <- res.StatusCode
	}()
	<-enter
	if res, body := ask(t, "POST", at, ""); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	close(leave)
	if status := <-first; status != 204 {
		t.Errorf("the first: %d", status)
	}
}

// A call that runs out of time before it was stored is answered with a failure, so that no provider
// takes it for stored.
func TestACallThatEndsIsRefused(t *testing.T) {
	h := callbacks.New(callbacks.Deps{Sources: []callbacks.Source{byBody}, Reports: &fakeTaker{err: context.Canceled}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, body := range []string{"x", "forged"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/one", strings.NewReader(body)))
		if w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// TestSlowCallersKeepOutNoProvider: while 70 connections, more than the budget has places, send
// nothing of their bodies, a provider's call is stored.
func TestSlowCallersKeepOutNoProvider(t *testing.T) {
	taker, begun := &fakeTaker{}, make(chan struct{}, 100)
	handler := callbacks.New(callbacks.Deps{Sources: []callbacks.Source{byBody}, Reports: taker, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	mux := chi.NewRouter()
	mux.Mount(callbacks.Prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { begun <- struct{}{}; handler.ServeHTTP(w, r) }))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for i := range 70 {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%3))}} // three addresses, each within its share
		c, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(server.URL, "http://"))
		musttest.OK(t, err)
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "POST /callbacks/one HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-begun
	}
	if res, body := ask(t, "POST", server.URL+"/callbacks/one", "x"); res.StatusCode != http.StatusNoContent || len(taker.taken) != 1 {
		t.Errorf("%d %s, %d reports", res.StatusCode, body, len(taker.taken))
	}
}

// fetching is a source that loads a certificate for each call.
type fetching struct {
	source
	fetched *int
}

func (fetching) Fetches([]byte) bool { return true }

func (f fetching) Read(h http.Header, u *url.URL, body []byte) (feedback.Call, error) {
	*f.fetched++
	return f.source.Read(h, u, body)
}

// TestStrangersMakeFewFetches: an address makes a source load few certificates a minute, whatever it sends.
func TestStrangersMakeFewFetches(t *testing.T) {
	fetched := 0
	at := serve(t, callbacks.Deps{Sources: []callbacks.Source{fetching{byBody, &fetched}}, Reports: &fakeTaker{}})
	last := 0
	for range 20 {
		res, _ := ask(t, "POST", at+"/one", "key missing")
		last = res.StatusCode
	}
	if fetched < 6 || fetched > 7 || last != http.StatusTooManyRequests { // a seventh if the calls take ten seconds
		t.Errorf("%d fetches, the last call is %d", fetched, last)
	}
}
