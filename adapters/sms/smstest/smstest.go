// Package smstest imitates the providers of text messages by their published interfaces. The
// imitations check signatures, take messages, answer with the providers' codes and send
// receipts. Only tests import it.
package smstest

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"dropbell/adapters/sender/providertest"
)

// A Sent is a text message that an imitation has taken.
type Sent struct {
	To string
	// Text is the text, or the name of the template with Params.
	Text   string
	Params map[string]string
	// ID is the provider's name of it, Reference ours.
	ID, Reference string
	// Callback is where its receipts go, if the message says so.
	Callback string
	At       time.Time
}

// A Provider is the common part of all fakes. Its faults are the provider's codes.
type Provider struct {
	providertest.Fake[Sent, string]

	mu      sync.Mutex
	handler http.HandlerFunc
	answer  func(w http.ResponseWriter, r *http.Request) bool
	calls   int
}

func (p *Provider) start(h http.HandlerFunc) {
	p.handler = h
	p.Start(p)
}

// ServeHTTP answers one call. Tests may pass it a call that another server received.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	answer := p.answer
	p.calls++
	p.mu.Unlock()
	if answer == nil || !answer(w, r) {
		p.handler(w, r)
	}
}

// Refuse makes the fake answer the provider's code to messages to the number; "" = none.
func (p *Provider) Refuse(to, code string) { p.Fail(to, code) }

// Answer makes the imitation answer every call with an HTTP status; 0 = as usual.
func (p *Provider) Answer(status int, retryAfter string) {
	p.set(func(w http.ResponseWriter, _ *http.Request) bool {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		return true
	}, status == 0)
}

// Stall makes the imitation take calls and answer none.
func (p *Provider) Stall() {
	p.set(func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body) // a caller that leaves is noticed after its body only
		<-r.Context().Done()
		return true
	}, false)
}

func (p *Provider) set(answer func(http.ResponseWriter, *http.Request) bool, none bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answer = answer; none {
		p.answer = nil
	}
}

// Sent returns the accepted messages, in order.
func (p *Provider) Sent() []Sent { return p.Accepted() }

// Calls returns how many calls were made.
func (p *Provider) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// take keeps a message and names it, or returns the code with which it is refused.
func (p *Provider) take(s Sent, prefix string) (id, code string) {
	if code, _ := p.Fault(s.To); code != "" {
		return "", code
	}
	p.Accept(func(before int) Sent {
		s.ID, s.At = prefix+strconv.Itoa(before+1), time.Now()
		return s
	})
	return s.ID, ""
}
