package webpush_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	pushing "dropbell/adapters/push"
	"dropbell/adapters/push/webpush/webpushtest"
	"dropbell/adapters/sendertest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// An internet answers for push services by their names and counts the calls.
type internet struct {
	mu     sync.Mutex
	now    time.Time
	hosts  map[string]func() (int, error)
	called map[string]int
}

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}

func takes() (int, error)   { return http.StatusCreated, nil }
func refuses() (int, error) { return 0, errRefused }
func fails() (int, error)   { return http.StatusInternalServerError, nil }
func unknown() (int, error) {
	return 0, &net.DNSError{Err: "no such host", Name: "secret.example", Server: "10.0.0.1:53", IsNotFound: true}
}

func newInternet(t *testing.T) (*internet, *pushing.Sender) {
	n := &internet{now: time.Now(), hosts: map[string]func() (int, error){}, called: map[string]int{}}
	cfg := config(t)
	cfg.Transport, cfg.Now = n, n.clock
	return n, newSender(t, cfg)
}

func (n *internet) clock() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

func (n *internet) pass(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now = n.now.Add(d)
}

// RoundTrip implements [http.RoundTripper].
func (n *internet) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.called[r.URL.Host]++
	code, err := n.hosts[r.URL.Host]()
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: code, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
}

// send pushes to one user of each host, one after the other.
func (n *internet) send(t *testing.T, s *pushing.Sender, hosts ...string) (results []delivery.Result) {
	for _, host := range hosts {
		results = append(results, s.Send(t.Context(), to(webpushtest.NewBrowser(t, "https://"+host+"/x")))...)
	}
	return results
}

func TestAHostThatDoesNotExistIsTheSubscriptionsOwnMistake(t *testing.T) {
	n, s := newInternet(t)
	n.hosts["made.up"], n.hosts["real"] = unknown, takes
	for range 3 * 5 {
		r := n.send(t, s, "made.up")[0]
		if r.Status != delivery.Permanent || strings.Contains(r.Detail, "secret") {
			t.Fatalf("got %+v", r)
		}
	}
	want(t, n.send(t, s, "real"), delivery.Delivered)
	n.hosts["real"] = unknown // our resolver has lost it; it has not gone
	r := n.send(t, s, "real")[0]
	if r.Status != delivery.Transient || strings.Contains(r.Detail, "secret") || strings.Contains(r.Detail, "10.0") {
		t.Errorf("a host that had delivered: %+v", r)
	}
}

func TestOneHostsTroubleIsItsOwn(t *testing.T) {
	for name, trouble := range map[string]func() (int, error){"refuses": refuses, "fails": fails} {
		t.Run(name, func(t *testing.T) {
			n, s := newInternet(t)
			n.hosts["dead"], n.hosts["good"] = trouble, takes
			for i := range 5 {
				if r := n.send(t, s, "dead")[0]; r.Status != delivery.Transient || !r.Apart || r.Detail == "" {
					t.Errorf("failure %d: %+v", i+1, r)
				}
			}
			r := n.send(t, s, "dead")[0]
			if r.Status != delivery.Throttled || r.After <= 0 || r.After > time.Minute || r.Detail == "" || n.called["dead"] != 5 {
				t.Errorf("left alone: %+v after %d calls", r, n.called["dead"])
			}
			want(t, n.send(t, s, "good", "good"), delivery.Delivered)

			n.pass(r.After)
			if r = n.send(t, s, "dead")[0]; r.Status != delivery.Transient || n.called["dead"] != 6 {
				t.Errorf("the probe: %+v after %d calls", r, n.called["dead"])
			}
			if again := n.send(t, s, "dead")[0]; again.Status != delivery.Throttled || n.called["dead"] != 6 {
				t.Errorf("after the probe: %+v after %d calls", again, n.called["dead"])
			}
			n.hosts["dead"] = takes
			n.pass(time.Minute)
			want(t, n.send(t, s, "dead", "dead", "dead"), delivery.Delivered)
		})
	}
}

// Subscriptions at a host that stays dead come to an end.
func TestWaitingForAHostIsNotForEver(t *testing.T) {
	n, s := newInternet(t)
	n.hosts["dead"], n.hosts["good"] = refuses, takes
	n.send(t, s, "good", "dead", "dead", "dead", "dead", "dead")
	for range 40 {
		n.pass(time.Minute)
		n.send(t, s, "good", "dead")
	}
	if r := n.send(t, s, "dead")[0]; r.Status != delivery.Transient || !r.Apart {
		t.Errorf("got %+v", r)
	}
}

func TestTheChannelIsInTroubleWhenAllHostsAre(t *testing.T) {
	n, s := newInternet(t)
	n.hosts["a"], n.hosts["b"], n.hosts["made.up"] = takes, takes, refuses
	want(t, n.send(t, s, "a", "b"), delivery.Delivered)
	n.hosts["a"] = refuses
	if r := n.send(t, s, "a")[0]; r.Status != delivery.Transient || !r.Apart {
		t.Errorf("one of two is away: %+v", r)
	}
	n.hosts["b"] = refuses
	for i, r := range n.send(t, s, "b", "a", "b", "made.up", "a", "a", "a", "a", "a") {
		if r.Status != delivery.Transient || r.Apart {
			t.Errorf("all are away, answer %d: %+v", i, r)
		}
	}
	n.pass(time.Minute)
	n.hosts["b"] = takes
	want(t, n.send(t, s, "b"), delivery.Delivered)
	if r := n.send(t, s, "a")[0]; !r.Apart {
		t.Errorf("one is back: %+v", r)
	}
}

// Subscriptions that no push service takes say nothing about it.
func TestARefusalIsNoTroubleOfTheHost(t *testing.T) {
	n, s := newInternet(t)
	n.hosts["good"] = func() (int, error) { return http.StatusForbidden, nil }
	for range 20 {
		if r := n.send(t, s, "good")[0]; r.Status != delivery.Transient || !r.Apart {
			t.Fatalf("got %+v", r)
		}
	}
	if n.called["good"] != 20 {
		t.Errorf("%d calls of 20", n.called["good"])
	}
}

// Invented hosts displace neither working hosts nor memory.
func TestMadeUpHostsDriveNobodyOut(t *testing.T) {
	n, s := newInternet(t)
	n.hosts["good"] = takes
	want(t, n.send(t, s, "good"), delivery.Delivered)
	messages := sendertest.Messages(delivery.WebPush, 20)
	for i := range 500 {
		host := fmt.Sprintf("h%d", i)
		n.hosts[host] = refuses
		messages[i%20].To.Push = []user.PushSubscription{webpushtest.NewBrowser(t, "https://"+host+"/x").PushSubscription}
		if i%20 == 19 {
			want(t, s.Send(t.Context(), messages), delivery.Transient)
		}
	}
	n.hosts["good"] = unknown
	if r := n.send(t, s, "good")[0]; r.Status != delivery.Transient {
		t.Errorf("the host that had delivered was forgotten: %+v", r)
	}
}
