package staff

import (
	"context"
	"strings"
	"sync"
)

// An Origin is the source of a request. The audit log keeps its address and its id
// with every entry that the request makes.
type Origin struct {
	Address   string // of the client; empty = unknown
	RequestID string

	mu      sync.Mutex
	entries []Entry
}

type originKey struct{}

// WithOrigin returns a context whose audit entries come from o.
func WithOrigin(ctx context.Context, o *Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns the origin of ctx, or nil if no request is behind it.
func OriginOf(ctx context.Context) *Origin {
	o, _ := ctx.Value(originKey{}).(*Origin)
	return o
}

// Note records in o an entry that is about to be stored. A nil Origin records
// nothing.
func (o *Origin) Note(e Entry) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entries = append(o.entries, e)
}

// Entries returns the entries that were noted, including entries of transactions
// that were rolled back.
func (o *Origin) Entries() []Entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.entries
}

// SecurityActions are the actions that concern the security of the installation. An
// action that ends with a dot is a prefix.
func SecurityActions() []string {
	return []string{"security.", "staff.", "key.", "queue.", "channel.pause", "channel.resume", "user.erase", "user.export", "user.show_contacts"}
}

// ConcernsSecurity reports whether the action is one of [SecurityActions].
func ConcernsSecurity(action string) bool {
	for _, a := range SecurityActions() {
		if action == a || strings.HasSuffix(a, ".") && strings.HasPrefix(action, a) {
			return true
		}
	}
	return false
}
