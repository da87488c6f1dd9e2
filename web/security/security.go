// Package security records security events of an installation: refused credentials, denied
// requests, service keys that act for users, and staff changes of access. Each event is counted,
// written to the log with the attribute log=security, and kept in the audit log with the client's
// address and the request id.
//
// An attacker controls the number of refusals. They are added up in memory by event, address, actor
// and detail. Every [Interval] each sum is stored as one audit entry; no request waits for the
// store. Memory and entries are bounded: above [MaxKinds] kinds within an interval, refusals are
// added up by event alone.
package security

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/domain/staff"
)

// An Event is a kind of refusal or use. Its name appears in the log, in the metric, and, after
// "security.", as the action in the audit log.
type Event string

// The events.
const (
	// SignInRefused: a wrong address or password.
	SignInRefused Event = "sign_in_refused"
	// SecondFactorRefused: the password was right, the second factor was not.
	SecondFactorRefused Event = "second_factor_refused"
	// SingleSignOnRefused: the identity provider's answer gives no access.
	SingleSignOnRefused Event = "single_sign_on_refused"
	// ConfirmationRefused: a signed-in member failed to authenticate again.
	ConfirmationRefused Event = "confirmation_refused"
	// PasswordLinkRefused: a password link that does not count.
	PasswordLinkRefused Event = "password_link_refused"
	// KeyRefused: a service key that does not exist, has ended or was revoked.
	KeyRefused Event = "key_refused"
	// TokenRefused: an end user's token was not accepted. Tokens expire all the time, so these
	// events are counted and logged, but not kept in the audit log.
	TokenRefused Event = "token_refused"
	// AccessDenied: the caller is known and may not do this.
	AccessDenied Event = "access_denied"
	// ActedAsUser: a service key changed something in the name of a user.
	ActedAsUser Event = "acted_as_user"
)

// Events returns every event.
func Events() []Event {
	return []Event{SignInRefused, SecondFactorRefused, SingleSignOnRefused, ConfirmationRefused, PasswordLinkRefused,
		KeyRefused, TokenRefused, AccessDenied, ActedAsUser}
}

// Unknown is the actor of refusals whose caller is not known.
func Unknown() staff.Actor { return staff.Actor{Label: "unknown"} }

const (
	// Interval is how often the sums are stored.
	Interval = 10 * time.Second
	// MaxKinds bounds the number of different occurrences within an interval.
	MaxKinds = 500
	// storeTime ends an attempt to store; entries that were not stored are tried again.
	storeTime = 5 * time.Second
)

// A Store keeps audit entries with their origins, all or none. The two lists have the same length.
type Store interface {
	RecordAll(ctx context.Context, entries []staff.Entry, from []*staff.Origin) error
}

// An Occurrence is one event.
type Occurrence struct {
	Event   Event
	Actor   staff.Actor // see [Unknown]
	Address string      // of the client
	// Detail names the request, such as "POST /admin/shops". It must contain no text that a caller
	// can choose freely, and no personal data.
	Detail    string
	RequestID string
}

// Occurrences are equal events of one interval.
type Occurrences struct {
	Occurrence       // the last one
	Count      int64 // how many
	Since      time.Time
	// Others is set for the sum of events above [MaxKinds], which have no common address.
	Others bool
}

// Entry returns the entry for the audit log.
func (o Occurrences) Entry() staff.Entry {
	after := map[string]any{"count": o.Count, "since": o.Since}
	if o.Detail != "" {
		after["detail"] = o.Detail
	}
	if o.Others {
		after["several_addresses"] = true
	}
	return staff.Entry{Actor: o.Actor, Action: "security." + string(o.Event), ObjectKind: "address", ObjectID: o.Address, After: after}
}

// kind are the fields in which occurrences differ.
type kind struct {
	event                  Event
	actor, address, detail string
}

// A Log receives security events. A nil Log drops them.
type Log struct {
	store  Store
	log    *slog.Logger
	now    func() time.Time
	events *prometheus.CounterVec

	mu    sync.Mutex
	kinds map[kind]*Occurrences
}

// New returns a log and registers its metric. [Log.Run] stores the entries.
func New(store Store, log *slog.Logger, now func() time.Time, registry prometheus.Registerer) *Log {
	l := &Log{store: store, log: log.With("log", "security"), now: now, kinds: map[kind]*Occurrences{},
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_security_events_total",
			Help: "Security events: refused credentials, denied requests, service keys acting for users, changes of access."}, []string{"event"})}
	registry.MustRegister(l.events)
	for _, e := range Events() {
		l.events.WithLabelValues(string(e)) // so that a rate begins at 0
	}
	return l
}

// Note counts an occurrence. It never waits for the database.
func (l *Log) Note(o Occurrence) {
	if l == nil {
		return
	}
	l.events.WithLabelValues(string(o.Event)).Inc()
	first := l.add(o)
	if !first {
		return
	}
	level := slog.LevelWarn
	if o.Event == ActedAsUser || o.Event == TokenRefused {
		level = slog.LevelInfo
	}
	l.log.Log(context.Background(), level, "security event", "event", o.Event, "actor", o.Actor.Label, "address", o.Address,
		"detail", o.Detail, "request_id", o.RequestID)
}

// add adds o up and reports whether it is the first of its kind in the interval.
func (l *Log) add(o Occurrence) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := kind{o.Event, o.Actor.Label, o.Address, o.Detail}
	known, ok := l.kinds[k]
	if !ok && len(l.kinds) >= MaxKinds {
		k, o.Actor, o.Address, o.Detail = kind{event: o.Event}, Unknown(), "", ""
		known, ok = l.kinds[k]
	}
	if !ok {
		known = &Occurrences{Since: l.now(), Others: k == kind{event: o.Event}}
		l.kinds[k] = known
	}
	known.Occurrence = o
	known.Count++
	return !ok
}

// take removes and returns the sums.
func (l *Log) take() []Occurrences {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Occurrences, 0, len(l.kinds))
	for _, o := range l.kinds {
		list = append(list, *o)
	}
	clear(l.kinds)
	return list
}

// putBack adds sums that could not be stored to the current sums.
func (l *Log) putBack(list []Occurrences) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range list {
		k := kind{o.Event, o.Actor.Label, o.Address, o.Detail}
		if o.Others || l.kinds[k] == nil && len(l.kinds) >= MaxKinds {
			k, o.Actor, o.Address, o.Detail, o.Others = kind{event: o.Event}, Unknown(), "", "", true
		}
		if known := l.kinds[k]; known != nil {
			known.Count += o.Count
			known.Since = o.Since
			continue
		}
		l.kinds[k] = &o
	}
}

// Flush stores the sums. Sums that cannot be stored are kept for the next time.
func (l *Log) Flush(ctx context.Context) error {
	list := l.take()
	kept := make([]Occurrences, 0, len(list))
	for _, o := range list {
		if o.Count > 1 {
			l.log.Info("security events", "event", o.Event, "actor", o.Actor.Label, "address", o.Address, "detail", o.Detail,
				"count", o.Count, "since", o.Since)
		}
		if o.Event != TokenRefused {
			kept = append(kept, o)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	entries, from := make([]staff.Entry, len(kept)), make([]*staff.Origin, len(kept))
	for i, o := range kept {
		entries[i], from[i] = o.Entry(), &staff.Origin{Address: o.Address, RequestID: o.RequestID}
	}
	err := l.store.RecordAll(ctx, entries, from)
	if err != nil {
		l.putBack(kept)
	}
	return err
}

// Run stores the sums every [Interval] until ctx ends, and then once more.
func (l *Log) Run(ctx context.Context) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.flush(ctx)
		case <-ctx.Done():
			l.flush(context.WithoutCancel(ctx))
			return
		}
	}
}

func (l *Log) flush(ctx context.Context) {
	if err := l.Flush(ctx); err != nil && ctx.Err() == nil {
		l.log.Warn("security events wait in memory: the audit log cannot be written", "error", err)
	}
}

// Changed counts and logs the security entries of a successful request. They are in the audit log
// already.
func (l *Log) Changed(o *staff.Origin) {
	if l == nil {
		return
	}
	for _, e := range o.Entries() {
		if !staff.ConcernsSecurity(e.Action) {
			continue
		}
		l.events.WithLabelValues(e.Action).Inc()
		l.log.Info("security event", "event", e.Action, "actor", e.Actor.Label, "object", e.ObjectKind+":"+e.ObjectID,
			"address", o.Address, "request_id", o.RequestID)
	}
}
