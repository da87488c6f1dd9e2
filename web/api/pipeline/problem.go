package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/danielgtaylor/huma/v2/validation"

	"dropbell/domain/fault"
	"dropbell/web/middleware"
)

// Problem is an error as sent to the client, RFC 9457.
type Problem struct {
	Type     string    `json:"type" doc:"Where the code is explained." example:"/docs#code-already_reserved"`
	Title    string    `json:"title" doc:"The status in words." example:"Conflict"`
	Status   int       `json:"status" example:"409"`
	Detail   string    `json:"detail" doc:"The error of this request, in English." example:"already reserved: app 10 minutes"`
	Code     string    `json:"code" doc:"The stable name of the refusal; decide by this." example:"already_reserved"`
	Instance string    `json:"instance,omitempty" doc:"The id of the request, to be quoted in reports." example:"urn:dropbell:request:5f0c2a9be41d7730"`
	Waitlist string    `json:"waitlist,omitempty" enum:"open" doc:"With sold_out: the drop has a waitlist that the user can join."`
	Errors   []Offence `json:"errors,omitempty" nullable:"false" doc:"Each thing that was wrong, where the refusal is about particular fields or reminders."`

	retryAfter time.Duration
}

// Offence is one error in a request.
type Offence struct {
	Location string `json:"location,omitempty" doc:"Where, such as body.reminders[1].minutes, path.id or header.If-Match." example:"body.reminders[0]"`
	Message  string `json:"message" example:"already reserved"`
	Value    any    `json:"value,omitempty" doc:"The value that was sent there, if it is short and no secret."`
}

// Error is part of [huma.StatusError].
func (p *Problem) Error() string { return p.Detail }

// GetStatus is part of [huma.StatusError].
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is part of [huma.ContentTypeFilter].
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders is part of [huma.HeadersError].
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	p.headers(h)
	return h
}

func (p *Problem) headers(h http.Header) {
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="dropbell"`)
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
}

// About sets the id of the request that the problem belongs to; empty = no id.
func (p *Problem) About(requestID string) {
	p.Instance = ""
	if requestID != "" {
		p.Instance = "urn:dropbell:request:" + requestID
	}
}

func newProblem(f *fault.Fault, requestID string) *Problem {
	p := &Problem{Type: "/docs#code-" + f.Code, Status: statusOf(f.Kind, f.Code), Detail: f.Text, Code: f.Code}
	p.Title = http.StatusText(p.Status)
	p.About(requestID)
	if f.Kind == fault.Unavailable || f.Kind == fault.Throttled || f.Code == errKeyInProgress.Code {
		p.retryAfter = time.Second
	}
	return p
}

// Problem turns any error of a use case into the answer that its caller may see. An error that is
// no fault is a bug: it is logged here, in full and once, and not shown.
func (pl *Pipeline) Problem(ctx context.Context, err error) *Problem {
	id := ""
	if q := middleware.From(ctx); q != nil {
		id = q.ID
	}
	if known, ok := errors.AsType[*Problem](err); ok {
		return known
	}
	if fields, ok := errors.AsType[*fault.Fields](err); ok {
		return fieldsProblem(fields, id)
	}
	f, ok := errors.AsType[*fault.Fault](err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f = errOverloaded
	default:
		pl.log.ErrorContext(ctx, "request failed", "request_id", id, "err", err)
		f = errInternal
	}
	if f.Kind == fault.Unavailable && f != errTooMany && f != fault.ErrOutcomeUnknown {
		if !errors.Is(err, context.Canceled) { // else the client has gone
			pl.unavailable.warn(ctx, "request_id", id, "err", err)
		}
		f = &fault.Fault{Kind: f.Kind, Code: f.Code, Text: errOverloaded.Text}
	}
	p := newProblem(f, id)
	if after, ok := errors.AsType[*fault.RetryAfter](err); ok {
		p.retryAfter = after.After
	}
	if _, ok := errors.AsType[*fault.Waitlisted](err); ok {
		p.Waitlist = "open"
	}
	return p
}

func fieldsProblem(fields *fault.Fields, id string) *Problem {
	p := newProblem(fault.ErrInvalid.Because("%s", fields.Error()), id)
	for _, f := range fields.List {
		p.Errors = append(p.Errors, Offence{Location: location(f.Name), Message: f.Message})
	}
	return p
}

// location completes the name of a body's field; other places name themselves.
func location(name string) string {
	for _, place := range []string{"path.", "query", "header.", "body"} {
		if strings.HasPrefix(name, place) {
			return name
		}
	}
	return "body." + name
}

// Refused returns the problem with one rule broken at a place.
func Refused(place, format string, args ...any) error {
	e := &fault.Fields{}
	e.Add(place, "rule.api", format, args...)
	return e
}

// Write answers with a problem outside of huma.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	p.headers(h)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone
}

// transform replaces huma's own errors, which quote the request, by ours.
func transform(ctx huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	id := ""
	if q := middleware.From(ctx.Context()); q != nil {
		id = q.ID
	}
	p := newProblem(codeOf(m.Status), id)
	if p.Code == errInternal.Code {
		return p, nil
	}
	for _, d := range m.Errors {
		if d != nil {
			p.Errors = append(p.Errors, offence(d))
		}
	}
	if len(p.Errors) > maxOffences {
		p.Errors = p.Errors[:maxOffences]
	}
	r, _ := humachi.Unwrap(ctx)
	echoNumbers(r, p.Errors)
	return p, nil
}

// offence describes an error that huma has found in our words.
func offence(d *huma.ErrorDetail) Offence {
	o := Offence{d.Location, inDigits(d.Message), harmless(d)}
	_, number := d.Value.(float64)
	switch {
	case d.Message == validation.MsgExpectedMatchExactlyOneSchema: // only [Words] have several
		o.Message = "expected string, or object of strings by language tag"
	case d.Message == validation.MsgExpectedString && number: // an id, most of the time
		o.Message = "expected string; put the number in quotes"
	case d.Message == notAnID:
		o.Message = idRule(d.Location)
	case d.Message == notZeroOr:
		o.Message = zeroOrID
	}
	if at, text, ok := strings.Cut(o.Message, misfitSays); ok && o.Location == "body" && strings.HasPrefix(at, "body.") {
		o.Location, o.Message = at, text
	}
	o.Location, o.Message = Shorten(o.Location), Shorten(o.Message)
	return o
}

// inDigits writes out the limits of a schema, which huma prints as 1e+06.
func inDigits(message string) string {
	words := strings.Split(message, " ")
	for i, w := range words {
		if n, err := strconv.ParseFloat(w, 64); err == nil && strings.Contains(w, "e+") {
			words[i] = strconv.FormatFloat(n, 'f', -1, 64)
		}
	}
	return strings.Join(words, " ")
}

const (
	maxOffences = 50
	maxEcho     = 100
)
