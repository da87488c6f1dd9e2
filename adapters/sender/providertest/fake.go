// Package providertest has the common parts of the fakes of providers: a server that records
// accepted messages and refuses the messages that a test selects. Only tests import it.
package providertest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// A Fake is a provider's server; the fakes of single providers embed it. Message is an accepted
// message, Fault an answer that a test sets instead. It is safe for concurrent use.
type Fake[Message, Fault any] struct {
	URL string

	server   *httptest.Server
	mu       sync.Mutex
	accepted []Message
	faults   map[string]Fault // by recipient; "" = every one
}

// Start starts the server; close it with Close.
func (f *Fake[Message, Fault]) Start(h http.Handler) {
	f.server = httptest.NewServer(h)
	f.URL = f.server.URL
}

// StartHTTP2 starts a server that speaks HTTP/2 without TLS.
func (f *Fake[Message, Fault]) StartHTTP2(h http.Handler) {
	f.server = httptest.NewUnstartedServer(h)
	f.server.Config.Protocols = new(http.Protocols)
	f.server.Config.Protocols.SetUnencryptedHTTP2(true)
	f.server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1000}
	f.server.Start()
	f.URL = f.server.URL
}

// Close stops the server.
func (f *Fake[Message, Fault]) Close() { f.server.Close() }

// Accept records a message, which name returns by the number of messages before it.
func (f *Fake[Message, Fault]) Accept(name func(before int) Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepted = append(f.accepted, name(len(f.accepted)))
}

// Accepted returns the accepted messages, in order.
func (f *Fake[Message, Fault]) Accepted() []Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.accepted)
}

// Count returns how many messages were accepted.
func (f *Fake[Message, Fault]) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.accepted)
}

// Fail makes the server answer f to messages to the recipient, or to all if it is empty.
func (f *Fake[Message, Fault]) Fail(to string, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults == nil {
		f.faults = map[string]Fault{}
	}
	f.faults[to] = fault
}

// Heal ends all faults.
func (f *Fake[Message, Fault]) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// Fault returns the fault of messages to the recipient, if there is one.
func (f *Fake[Message, Fault]) Fault(to string) (fault Fault, found bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fault, found = f.faults[to]; !found {
		fault, found = f.faults[""]
	}
	return fault, found
}
