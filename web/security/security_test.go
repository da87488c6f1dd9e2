package security_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/domain/staff"
	"dropbell/musttest"
	"dropbell/web/security"
)

// fakeLog keeps entries in memory; it refuses them while away is set.
type fakeLog struct {
	mu      sync.Mutex
	away    bool
	entries []staff.Entry
	from    []*staff.Origin
}

func (b *fakeLog) RecordAll(_ context.Context, entries []staff.Entry, from []*staff.Origin) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return errors.New("the database is away")
	}
	b.entries, b.from = append(b.entries, entries...), append(b.from, from...)
	return nil
}

func (b *fakeLog) counted() (n int64) {
	for _, e := range b.entries {
		n += e.After.(map[string]any)["count"].(int64)
	}
	return n
}

func newLog(b *fakeLog) (*security.Log, *bytes.Buffer, func(event string) float64) {
	registry, text := prometheus.NewRegistry(), &bytes.Buffer{}
	l := security.New(b, slog.New(slog.NewTextHandler(text, nil)), time.Now, registry)
	return l, text, func(event string) float64 {
		families, _ := registry.Gather()
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if m.GetLabel()[0].GetValue() == event {
					return m.GetCounter().GetValue()
				}
			}
		}
		return -1
	}
}

func refusal(address string) security.Occurrence {
	return security.Occurrence{Event: security.KeyRefused, Actor: security.Unknown(), Address: address, RequestID: "r"}
}

// A flood from one address makes one audit entry and two lines of the log; the metric counts every
// attempt.
func TestAFloodIsOneEntry(t *testing.T) {
	b := &fakeLog{}
	l, text, metric := newLog(b)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				l.Note(refusal("203.0.113.7"))
			}
		})
	}
	all.Wait()
	musttest.OK(t, l.Flush(t.Context()))
	if len(b.entries) != 1 || b.counted() != 8000 || b.from[0].Address != "203.0.113.7" || b.from[0].RequestID != "r" {
		t.Errorf("%d entries of %d occurrences, from %+v", len(b.entries), b.counted(), b.from)
	}
	if e := b.entries[0]; e.Action != "security.key_refused" || e.ObjectID != "203.0.113.7" || e.Actor.Label != "unknown" {
		t.Errorf("recorded %+v", e)
	}
	if n := strings.Count(text.String(), "\n"); n != 2 || strings.Count(text.String(), "log=security") != 2 || !strings.Contains(text.String(), "count=8000") {
		t.Errorf("logged:\n%s", text)
	}
	if n := metric("key_refused"); n != 8000 {
		t.Errorf("the metric says %v", n)
	}
	if err := l.Flush(t.Context()); err != nil || len(b.entries) != 1 {
		t.Errorf("stored twice: %d entries, %v", len(b.entries), err)
	}
}

// Memory is bounded against many addresses, and no attempt is lost while the database does not
// answer.
func TestManyAddressesAndNoDatabase(t *testing.T) {
	b := &fakeLog{away: true}
	l, _, _ := newLog(b)
	const addresses = 20 * security.MaxKinds
	for i := range addresses {
		l.Note(refusal(fmt.Sprintf("2001:db8::%x", i)))
		if i%(addresses/4) == 0 {
			if err := l.Flush(t.Context()); err == nil {
				t.Fatal("stored although the database is away")
			}
		}
	}
	b.away = false
	musttest.OK(t, l.Flush(t.Context()))
	if len(b.entries) > security.MaxKinds+len(security.Events()) || b.counted() != addresses {
		t.Errorf("%d entries of %d occurrences, want %d", len(b.entries), b.counted(), addresses)
	}
}

// Run stores once more when it ends, so that an orderly stop loses nothing.
func TestRunEndsWithAFlush(t *testing.T) {
	b := &fakeLog{}
	l, _, _ := newLog(b)
	ctx, cancel := context.WithCancel(t.Context())
	l.Note(refusal("203.0.113.7"))
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	cancel()
	<-ended
	if b.counted() != 1 {
		t.Errorf("%d occurrences are stored", b.counted())
	}
}

// Tokens of phones expire all the time: they are counted and not recorded.
func TestTokensAreNotRecorded(t *testing.T) {
	b := &fakeLog{}
	l, _, metric := newLog(b)
	o := refusal("203.0.113.7")
	o.Event = security.TokenRefused
	l.Note(o)
	if err := l.Flush(t.Context()); err != nil || len(b.entries) != 0 || metric("token_refused") != 1 {
		t.Errorf("%d entries, metric %v, %v", len(b.entries), metric("token_refused"), err)
	}
}

func TestChanges(t *testing.T) {
	l, text, metric := newLog(&fakeLog{})
	from := &staff.Origin{Address: "203.0.113.7", RequestID: "r-1"}
	from.Note(staff.Entry{Actor: staff.Actor{Label: "staff:1", Name: "ada@example.com"}, Action: "staff.change", ObjectKind: "staff", ObjectID: "2"})
	from.Note(staff.Entry{Action: "template.publish"})
	l.Changed(from)
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "object=staff:2") || !strings.Contains(got, "request_id=r-1") || strings.Contains(got, "ada@") {
		t.Errorf("logged %s", got)
	}
	if metric("staff.change") != 1 || metric("template.publish") != -1 {
		t.Error("counted wrongly")
	}
	var none *security.Log
	none.Note(refusal("x"))
	none.Changed(from)
}
