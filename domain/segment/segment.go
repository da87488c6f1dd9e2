// Package segment holds audiences that staff define once and use again: by rules
// about users, evaluated again at each use, or as a list of ids read from a file.
package segment

import (
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/wording"
)

// Kind is how a segment's members are defined.
type Kind string

// The kinds of segments.
const (
	ByRules Kind = "rules"
	ByList  Kind = "list"
)

// Faults of this room.
var (
	ErrNotFound = fault.New(fault.NotFound, "segment_not_found", "there is no such segment; check its id")
	ErrInUse    = fault.New(fault.Conflict, "segment_in_use", "a campaign that has not ended uses this segment; wait until it has, or cancel it")
	ErrIsList   = fault.New(fault.Conflict, "segment_is_list", "the members of a list come from files, not from rules; send a file")
	ErrFilling  = fault.New(fault.Conflict, "list_incomplete", "a file of the list is still being read; publish the campaign when that is done")
	// ErrListInUse is the refusal to add users to a list after the reach of a
	// campaign for this list was judged.
	ErrListInUse = fault.New(fault.Conflict, "list_in_use", "a campaign that was published, or waits for approval, is for this list; no user can be added until its audience is read")
	ErrIsRules   = fault.New(fault.Conflict, "segment_is_rules", "the members of this segment come from rules, not from files; change its rule")
)

// MaxName bounds a name, in characters.
const MaxName = 120

// A Segment is one audience.
type Segment struct {
	ID   int64
	Name string
	Kind Kind
	// Rule is the root of a segment by rules, the zero Rule for a list.
	Rule    Rule
	Version int64
	// Members is the number of users at CountedAt; nil means that they were never
	// counted, or not since the rule changed. The ids of a list are counted with
	// every file.
	Members   *int64
	CountedAt *time.Time
	CreatedBy string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// A Use is something that refers to a segment.
type Use struct {
	CampaignID int64
	Name       string
	State      string
	// Ended is true if nothing will be read from the segment any more.
	Ended bool
	// Keeps is true while the members of a list must not change: from the request
	// for approval, or from publication, of a campaign until its audience is read
	// to the end.
	Keeps bool
}

// An Estimate is about how many users a rule means.
type Estimate struct {
	Members int64
	// Margin is the error bound: the true number lies within Members ± Margin in 95
	// of 100 cases. 0 with Exact.
	Margin int64
	// Users is how many users there are, about.
	Users int64
	// Looked is how many users were looked at.
	Looked int64
	Exact  bool
}

// A Query selects segments by name and id.
type Query struct {
	Search string
	Kind   Kind // empty = all
	After  Cursor
	Limit  int
}

// A Cursor is the last segment of a page.
type Cursor struct {
	UpdatedAt time.Time
	ID        int64
}

// checkName returns a [fault.Fields] unless the name can be shown.
func checkName(name string) *fault.Fields {
	e := &fault.Fields{}
	switch {
	case strings.TrimSpace(name) == "":
		e.Add("name", "rule.required", "is required")
	case !wording.OneLine(name):
		e.Add("name", "rule.text", "must be valid text without control characters")
	case utf8.RuneCountInString(name) > MaxName:
		e.Add("name", "rule.too_long", "must have at most %d characters", MaxName)
	}
	return e
}
