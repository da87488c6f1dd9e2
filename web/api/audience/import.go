package audience

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

const (
	importBatch   = 1000
	maxLine       = 64 << 10
	maxLineErrors = 1000
)

// UserLine is one line of an import.
type UserLine struct {
	ID         string                            `json:"id" pattern:"^[1-9][0-9]{0,18}$" example:"1001"`
	Name       pipeline.Optional[string]         `json:"name,omitempty" example:"Ann"`
	Email      pipeline.Optional[string]         `json:"email,omitempty" example:"ann@example.com"`
	Phone      pipeline.Optional[string]         `json:"phone,omitempty" doc:"E.164." example:"+8613800138000"`
	Verified   pipeline.Optional[bool]           `json:"phone_verified,omitempty" doc:"The user has proved the phone number to the shop. A number that changes without it is not verified."`
	Locale     pipeline.Optional[string]         `json:"locale,omitempty" doc:"BCP 47." example:"zh-CN"`
	Timezone   pipeline.Optional[string]         `json:"timezone,omitempty" doc:"IANA." example:"Asia/Shanghai"`
	Household  pipeline.Optional[string]         `json:"household,omitempty" doc:"A keyed hash that the shop makes, 16 to 64 letters, digits, - or _: users of one household have the same. Drops can limit the coupons of a household." example:"5f2b9c0d7a1e4483"`
	OptOuts    pipeline.Optional[[]string]       `json:"opt_outs,omitempty" doc:"Channels that the user has opted out of." example:"[\"sms\"]"`
	QuietHours pipeline.Optional[QuietHours]     `json:"quiet_hours,omitempty"`
	Attributes pipeline.Optional[map[string]any] `json:"attributes,omitempty" doc:"The shop's own fields: up to 50 texts, numbers or booleans."`
}

// ImportResult is the outcome of the lines of an import.
type ImportResult struct {
	Upserted   int         `json:"upserted" doc:"Lines that were stored." example:"2"`
	Errors     []LineError `json:"errors" nullable:"false" doc:"Lines that were left out, the first 1,000."`
	MoreErrors int         `json:"more_errors,omitempty" doc:"How many more were left out."`
}

// LineError says why a line was left out.
type LineError struct {
	Line  int    `json:"line" doc:"The first line is 1." example:"3"`
	Error string `json:"error" example:"email: must be an e-mail address such as ann@example.com"`
}

func (h *handlers) importRoute() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPut, "/admin/users", "import-users", "Import users, a line of JSON each",
		pipeline.Route{Traits: pipeline.Traits{Stream: true},
			Description: "NDJSON of any length; a line has at most 64 KiB. Users that are not known are created; fields that a line leaves out " +
				"stay as they are, null clears one. Lines are applied in order. A line that is wrong is left out as a whole and reported; " +
				"the others are stored. If the answer is an error, or none comes, send everything again.",
			Codes: []string{"unsupported_media_type", "malformed_json", "request_timeout"},
			Complete: func(op *huma.Operation) {
				op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/x-ndjson": { // no lines are fine
					Schema:  &huma.Schema{Type: huma.TypeString, Format: "binary", Description: "Each line is a UserLine."},
					Example: `{"id":"1001","name":"Ann","email":"ann@example.com","phone":"+8613800138000","locale":"zh-CN","timezone":"Asia/Shanghai"}` + "\n"}}}
				schemas := h.Schemas()
				op.Responses["200"] = &huma.Response{Description: "The number of stored lines, and the refused ones.", Content: map[string]*huma.MediaType{
					"application/json": {Schema: schemas.Schema(reflect.TypeFor[ImportResult](), true, "")}}}
				schemas.Schema(reflect.TypeFor[UserLine](), true, "")
			}}),
		func(ctx context.Context, _ *struct{}) (*pipeline.Stream, error) {
			if err := pipeline.ActorOf(ctx).May(staff.ManageUsers, 0); err != nil {
				return nil, err
			}
			return pipeline.Streamed(h.importUsers), nil
		})
}

func (h *handlers) importUsers(w http.ResponseWriter, r *http.Request) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); strings.HasPrefix(kind, "multipart/") {
		h.Problem(r.Context(), pipeline.ErrMediaType.Because("send the lines themselves, as application/x-ndjson")).Write(w)
		return
	}
	im := &importer{api: h, ctx: r.Context(), control: http.NewResponseController(w), in: bufio.NewReaderSize(r.Body, maxLine)}
	if err := im.run(); err != nil {
		h.Problem(r.Context(), err).Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(im.result()) // the client may be gone
}

// importer holds one batch in memory, whatever the size of the whole.
type importer struct {
	api     *handlers
	ctx     context.Context
	control *http.ResponseController
	in      *bufio.Reader
	line    int
	batch   []user.Change
	lines   []int // of each change
	stored  int
	errors  []LineError
	more    int
}

func (im *importer) run() error {
	im.extend()
	for {
		text, err := im.next()
		if err != nil && err != io.EOF {
			return im.broken(err)
		}
		if len(text) > 0 {
			im.take(text)
		}
		if len(im.batch) == importBatch || err == io.EOF {
			if err := im.store(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// extend extends the deadlines by the time for the next batch: the deadlines of ordinary requests
// are too short for an import.
func (im *importer) extend() {
	at := time.Now().Add(pipeline.Stall)
	_ = im.control.SetReadDeadline(at)
	_ = im.control.SetWriteDeadline(at.Add(pipeline.Stall))
}

// next returns one line, valid until the next call. The line is empty if it was blank or too long.
// At the end of the body next returns the last line, empty if there is none, together with [io.EOF].
func (im *importer) next() ([]byte, error) {
	im.line++
	text, err := im.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		for err == bufio.ErrBufferFull {
			_, err = im.in.ReadSlice('\n')
		}
		im.fail(im.line, "the line is longer than 64 KiB")
		return nil, err
	}
	if im.line == 1 {
		text = bytes.TrimPrefix(text, []byte(pipeline.ByteOrderMark))
	}
	return bytes.TrimSpace(text), err
}

func (im *importer) take(text []byte) {
	c, err := parseUser(text)
	if err != nil {
		im.fail(im.line, err.Error())
		return
	}
	im.batch, im.lines = append(im.batch, c), append(im.lines, im.line)
}

func (im *importer) store() error {
	if len(im.batch) == 0 {
		return nil
	}
	n, refused, err := im.api.Users.Upsert(im.ctx, pipeline.ActorOf(im.ctx), im.batch)
	if err != nil {
		return err
	}
	im.stored += n
	for i, err := range refused {
		im.fail(im.lines[i], err.Error())
	}
	im.batch, im.lines = im.batch[:0], im.lines[:0]
	im.extend()
	return nil
}

func (im *importer) fail(line int, text string) {
	if len(im.errors) == maxLineErrors {
		im.more++
		return
	}
	im.errors = append(im.errors, LineError{line, pipeline.Shorten(text)})
}

func (im *importer) broken(err error) error {
	if pipeline.IsTimeout(err) {
		return pipeline.ErrTimeout
	}
	return pipeline.ErrMalformed.Because("the body could not be read to its end; %d lines were stored", im.stored)
}

func (im *importer) result() ImportResult {
	slices.SortStableFunc(im.errors, func(a, b LineError) int { return a.Line - b.Line })
	return ImportResult{Upserted: im.stored, Errors: append([]LineError{}, im.errors...), MoreErrors: im.more}
}

// parseUser reads one line; the error is meant for its sender.
func parseUser(text []byte) (user.Change, error) {
	var l UserLine
	if !utf8.Valid(text) {
		return user.Change{}, errors.New("the line is not valid UTF-8")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true)) // "\ud800" is no character, and is read as U+FFFD
	if err := strict.UnmarshalDecode(d, &l, strict.RejectUnknownMembers(true)); err != nil {
		return user.Change{}, lineError(err)
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return user.Change{}, errors.New("the line holds more than one JSON object")
	}
	id, err := user.ParseID(l.ID)
	if err != nil {
		return user.Change{}, errors.New("id: " + pipeline.IDInBody)
	}
	c := user.Change{ID: id, Name: l.Name.Pointer(), Email: l.Email.Pointer(), Phone: l.Phone.Pointer(), PhoneVerified: l.Verified.Pointer(), Locale: l.Locale.Pointer(),
		Timezone: l.Timezone.Pointer(), Household: l.Household.Pointer(), Attributes: l.Attributes.Pointer()}
	return c, wishes(&c, l.OptOuts, l.QuietHours)
}

// lineError describes the error of a line without Go's terms.
func lineError(err error) error {
	if twice, ok := errors.AsType[*jsontext.SyntacticError](err); ok && twice.Err == jsontext.ErrDuplicateName {
		return fmt.Errorf("the field %q is given more than once", twice.JSONPointer.LastToken())
	}
	wrong, ok := errors.AsType[*strict.SemanticError](err)
	switch {
	case !ok:
		return errors.New("is not valid JSON")
	case wrong.Err == strict.ErrUnknownName:
		return fmt.Errorf("unknown field %q", wrong.JSONPointer.LastToken())
	}
	value := map[jsontext.Kind]string{'"': "a string", '0': "a number", '{': "an object", '[': "an array"}[wrong.JSONKind]
	if value == "" {
		value = "a bool"
	}
	if wrong.JSONPointer == "" {
		return errors.New("must be a JSON object with an id; " + value + " does not fit")
	}
	field := strings.ReplaceAll(string(wrong.JSONPointer[1:]), "/", ".")
	return errors.New(field + ": " + value + " does not fit here")
}
