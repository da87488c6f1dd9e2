package staff

import (
	"slices"
	"strings"
	"time"
)

// An Entry is one line of the audit log. Before and After are the values that show the
// change best; the log stores them as JSON.
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
	Address    string // of the client; empty = unknown
	RequestID  string
}

// Reasons that the system itself records; they are keys of the catalogues.
const (
	ReasonClosesAt   = "closes_at_passed"   // the drop's end has come
	ReasonValidUntil = "valid_until_passed" // the validity of its coupons ended before closes_at
	ReasonFirstAdmin = "first_admin"        // made from the configuration
	// A webhook endpoint failed for days, or answered that it is gone.
	ReasonWebhookFailing = "webhook_failing"
	ReasonWebhookGone    = "webhook_gone"
	ReasonSeries         = "series" // the drop belongs to a series
)

// SystemReasons returns the reasons that the system records.
func SystemReasons() []string {
	return []string{ReasonClosesAt, ReasonValidUntil, ReasonFirstAdmin, ReasonWebhookFailing, ReasonWebhookGone, ReasonSeries}
}

// SystemReason returns which of the [SystemReasons] the system recorded; "" where a
// member wrote the reason.
func (r Record) SystemReason() string {
	if label, _, _ := strings.Cut(r.Actor, " "); label != System().Label {
		return ""
	}
	if slices.Contains(SystemReasons(), r.Reason) {
		return r.Reason
	}
	return ""
}

// AuditQuery selects records, newest first.
type AuditQuery struct {
	ObjectKind, ObjectID string
	// Actor selects entries by their actor: a label ("staff:1"), a label with a
	// name, or part of the name or e-mail address of a member or of the name of a
	// key.
	Actor string
	// Action is a whole action ("template.move") or the part before the dot
	// ("template").
	Action     string
	Without    []string // actions that are left out
	Security   bool     // only what concerns security, see [SecurityActions]
	Text       string   // part of the reason, in any case
	Reasons    []string // of the system, which Text finds as well
	ShopNumber int64    // 0 = all
	From, To   *time.Time
	Shops      []int64 // empty = all; else only what belongs to one of these
	BeforeID   int64   // keyset: only records older than this one
	Limit      int
}

// An AuditPage is one page of records. A search for a text reads a bounded number
// of records at a time: More may be set although the page is not full.
type AuditPage struct {
	List []Record
	More bool
	Next int64 // for [AuditQuery.BeforeID]
}
