package staff

import "time"

// An Entry is one line of the audit log. Before and After are whatever shows
// the change best; they are stored as JSON.
type Entry struct {
	Actor      Actor
	Action     string // "template.publish"
	ObjectKind string // "template"
	ObjectID   string
	ShopNumber int64
	Reason     string
	Before     any
	After      any
}

// A Record is an entry as it was stored.
type Record struct {
	ID         int64
	At         time.Time
	Actor      string
	Action     string
	ObjectKind string
	ObjectID   string
	ShopNumber int64
	Reason     string
	Before     []byte // JSON or nil
	After      []byte // JSON or nil
}

// AuditQuery selects records, newest first.
type AuditQuery struct {
	ObjectKind, ObjectID string
	Actor                string
	Action               string
	From, To             *time.Time
	Shops                []int64 // empty = all; else only what belongs to one of these
	BeforeID             int64   // keyset: only records older than this one
	Limit                int
}
