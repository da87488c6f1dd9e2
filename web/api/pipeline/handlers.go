package pipeline

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Ref names the object of a request by its id in the path.
type Ref struct {
	ID string `path:"id" pattern:"^[1-9][0-9]{0,18}$"`
}

// ByID returns a handler that reads the id in the path before it calls do.
func ByID[O any](do func(ctx context.Context, id int64) (*O, error)) func(context.Context, *Ref) (*O, error) {
	return func(ctx context.Context, in *Ref) (*O, error) {
		id, err := ParseID("path.id", in.ID)
		if err != nil {
			return nil, err
		}
		return do(ctx, id)
	}
}

// Versioned is an answer about an object that has versions.
type Versioned[T any] struct {
	// ETag is the version in quotes.
	ETag string `header:"ETag"`
	Body T
}

// AtVersion returns the answer about an object in one version.
func AtVersion[T any](version int64, body T) *Versioned[T] {
	return &Versioned[T]{`"` + Decimal(version) + `"`, body}
}

// Patch is a change of the object in the path: P has the fields that change.
type Patch[P any] struct {
	Ref
	IfMatch string `header:"If-Match" doc:"The version the change is based on." example:"\"1\""`
	Body    P
}

// Patching returns a handler that reads id and version before it calls change. A
// request without a version is refused with [ErrPrecondition].
func Patching[P, O any](change func(ctx context.Context, id, version int64, patch P) (*O, error)) func(context.Context, *Patch[P]) (*O, error) {
	return func(ctx context.Context, in *Patch[P]) (*O, error) {
		id, version, err := in.At(in.IfMatch)
		if err != nil {
			return nil, err
		}
		return change(ctx, id, version, in.Body)
	}
}

// At returns the id and the version that an If-Match header names. Without the header
// the error is [ErrPrecondition].
func (r Ref) At(ifMatch string) (id, version int64, err error) {
	id, err1 := ParseID("path.id", r.ID)
	version, err2 := parseVersion(ifMatch)
	err = Merge(err1, err2)
	if err == nil && version == 0 {
		err = ErrPrecondition
	}
	return id, version, err
}

// parseVersion reads an If-Match header; without the header the version is 0.
func parseVersion(header string) (int64, error) {
	if header == "" {
		return 0, nil
	}
	s := strings.Trim(strings.TrimPrefix(header, "W/"), `"`)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0, Refused("header.If-Match", "must be the version that this is based on, such as \"3\"")
	}
	return n, nil
}

// Reason is the body of a step: why it is taken.
type Reason struct {
	Reason string `json:"reason,omitempty" maxLength:"500" doc:"Why, for the audit log."`
}

// Why returns the reason.
func (r Reason) Why() string { return r.Reason }

// Step is a state change of the object in the path. R is [Reason], or a type that embeds it and so
// has a name of its own in the document.
type Step[R interface{ Why() string }] struct {
	Ref
	IfMatch string `header:"If-Match" doc:"If given: the version the decision is based on." example:"\"1\""`
	Body    *R
}

// Stepping returns a handler that reads id, version and reason before it calls take.
// The version is 0 and the reason empty if the request has none.
func Stepping[R interface{ Why() string }, O any](take func(ctx context.Context, id, version int64, reason string) (*O, error)) func(context.Context, *Step[R]) (*O, error) {
	return func(ctx context.Context, in *Step[R]) (*O, error) {
		id, err1 := ParseID("path.id", in.ID)
		version, err2 := parseVersion(in.IfMatch)
		reason := ""
		if in.Body != nil {
			reason = (*in.Body).Why()
		}
		if err := Merge(err1, err2, CheckText("body.reason", reason)); err != nil {
			return nil, err
		}
		return take(ctx, id, version, reason)
	}
}

// OptionalID reads an id that may be left out, which is 0.
func OptionalID(place, s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	return ParseID(place, s)
}

// CheckText refuses text that no database can hold.
func CheckText(place, s string) error {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return Refused(place, "must be valid text without NUL characters")
	}
	return nil
}

// Each returns show(item) for each item; the slice is never nil.
func Each[T, J any](items []T, show func(T) J) []J {
	shown := make([]J, len(items))
	for i, it := range items {
		shown[i] = show(it)
	}
	return shown
}

// Next returns the cursor of the last item of a full page. A shorter page is the last page; its
// cursor is empty.
func Next[T any](items []T, limit int, cursor func(last T) string) string {
	if n := len(items); n > 0 && n == limit {
		return cursor(items[n-1])
	}
	return ""
}
