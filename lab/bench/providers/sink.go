package providers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/emersion/go-smtp"

	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// sink is a provider in a process of its own.
type sink struct {
	*scenario.Server
	addr    string // where messages go
	control string // URL of the counts
}

// startSink starts the provider and returns when it listens.
func startSink(ctx context.Context, name string) (*sink, error) {
	server, err := scenario.Serve(ctx, nil, "providers", "-sink", name)
	if err != nil {
		return nil, err
	}
	s := &sink{Server: server}
	s.addr, s.control, _ = strings.Cut(server.Ready, " ")
	return s, nil
}

// expect begins a new count of messages to users 1…n.
func (s *sink) expect(ctx context.Context, n int) error {
	return s.call(ctx, http.MethodPost, "/expect?n="+strconv.Itoa(n), nil)
}

func (s *sink) counted(ctx context.Context) (c counted, err error) {
	return c, s.call(ctx, http.MethodGet, "/counted", &c)
}

func (s *sink) call(ctx context.Context, method, path string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.control+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

// serve runs the provider's process. It prints both addresses and returns only if it fails.
func serve(name string) error {
	data, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var c counter
	mux := http.NewServeMux()
	c.routes(mux)
	failed := make(chan error, 2)
	go func() { failed <- http.Serve(control, mux) }()
	switch name {
	case "webhook":
		go func() { failed <- http.Serve(data, endpoint(&c)) }()
	case "mail":
		server := smtp.NewServer(mailbox{&c})
		server.Domain, server.AllowInsecureAuth = "bench.example", true
		go func() { failed <- server.Serve(data) }()
	default:
		return errors.New("no provider is called " + name)
	}
	fmt.Printf("%s http://%s\n", data.Addr(), control.Addr())
	return <-failed
}

// endpoint reads a call's body, counts its messages and answers 204.
func endpoint(c *counter) http.Handler {
	buffers := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(b)
		b.Reset()
		if _, err := b.ReadFrom(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		t := c.Load()
		t.arrived()
		for rest := b.Bytes(); ; {
			_, after, found := bytes.Cut(rest, []byte(`{"user_id":"`))
			if !found {
				break
			}
			id := 0
			for len(after) > 0 && after[0] >= '0' && after[0] <= '9' {
				id, after = 10*id+int(after[0]-'0'), after[1:]
			}
			t.count(id)
			rest = after
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// mailbox is a mail server that takes everything and keeps nothing.
type mailbox struct{ counter *counter }

func (m mailbox) NewSession(*smtp.Conn) (smtp.Session, error) {
	return &session{counter: m.counter}, nil
}

type session struct {
	counter *counter
	to      []int
}

func (s *session) Mail(string, *smtp.MailOptions) error { return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, stack.UserOf(to))
	return nil
}

func (s *session) Data(r io.Reader) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	t := s.counter.Load()
	t.arrived()
	for _, id := range s.to {
		t.count(id)
	}
	return nil
}

func (s *session) Reset()        { s.to = s.to[:0] }
func (s *session) Logout() error { return nil }
