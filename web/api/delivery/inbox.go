package delivery

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/inbox"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// Message is one in-app message.
type Message struct {
	ID           string     `json:"id" doc:"Stable and unique for the user: the same message has the same id in the list and in the stream."`
	Kind         string     `json:"kind" doc:"The kind of message." example:"reminder"`
	TemplateID   string     `json:"template_id,omitempty" doc:"The drop it is about; like the next two and opens_at absent from a campaign's message that is about none." example:"1"`
	ShopNumber   string     `json:"shop_number,omitempty" example:"10"`
	TemplateName string     `json:"template_name,omitempty" example:"20 off"`
	Minutes      int        `json:"minutes,omitempty" doc:"How long before the opening the reminder was due." example:"10"`
	OpensAt      *time.Time `json:"opens_at,omitempty" example:"2027-01-01T12:00:00Z"`
	DueAt        time.Time  `json:"due_at" example:"2027-01-01T11:50:00Z"`
	At           time.Time  `json:"at" doc:"When it was delivered." example:"2027-01-01T11:50:00.4Z"`
	ClaimURL     string     `json:"claim_url,omitempty" doc:"Where the coupon can be claimed."`
	Title        string     `json:"title,omitempty" doc:"In the user's language." example:"Spring sale"`
	Text         string     `json:"text,omitempty" doc:"In the user's language; its lines are separated by line feeds." example:"Everything is 20 % off this week."`
	ExpiresAt    *time.Time `json:"expires_at,omitempty" doc:"Of a notice: until when the coupon is valid." example:"2027-01-08T12:00:00Z"`
	Read         bool       `json:"read"`
}

// Inbox is one page of messages, the newest first.
type Inbox struct {
	Items       []Message  `json:"items" nullable:"false"`
	Unread      int        `json:"unread" doc:"How many messages of the whole inbox are unread, counted up to 100: 100 means 100 or more."`
	ReadThrough *time.Time `json:"read_through,omitempty" doc:"Everything up to here counts as read."`
	Next        string     `json:"next,omitempty" doc:"Pass as before to get the next page; absent on the last one."`
}

// ReadMark says how far the user has read.
type ReadMark struct {
	Through *time.Time `json:"through,omitempty" doc:"Everything delivered up to here is read; absent = everything so far."`
}

// ReadState is how far the user has read.
type ReadState struct {
	ReadThrough time.Time `json:"read_through" doc:"Never goes back: an earlier instant than before changes nothing."`
}

func (h *handlers) inboxRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/inbox", ID: "inbox",
		Summary: "List the user's in-app messages", Description: "The newest first.",
		Cells: &cells.List{At: "at", ID: "id", Pages: cells.ByInstant, Counts: map[string]int{"unread": 100}, Latest: []string{"read_through"}}}, h.inbox)
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodPost, Path: "/inbox/read", ID: "mark-read",
		Summary: "Mark messages as read", Example: `{"through":"2027-01-01T12:00:00Z"}`}, h.markRead)
	h.streamRoute()
}

func (h *handlers) inbox(ctx context.Context, in *struct {
	Before string `query:"before" doc:"Only messages delivered before this instant." example:"2027-01-01T12:00:00Z"`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"50" doc:"A page is longer by messages of the same instant as its last one."`
}) (*struct{ Body Inbox }, error) {
	before, err := pipeline.ParseInstant("query.before", in.Before)
	if err != nil {
		return nil, err
	}
	switch {
	case before == nil:
		before = new(time.Time) // no instant
	case before.IsZero():
		*before = before.Add(1) // one before which nothing was delivered either
	}
	box, err := h.Inbox.Page(ctx, pipeline.UserOf(ctx), *before, in.Limit)
	if err != nil {
		return nil, err
	}
	page := Inbox{Items: make([]Message, len(box.Items)), Unread: box.Unread}
	if !box.ReadThrough.IsZero() {
		page.ReadThrough = pipeline.UTC(&box.ReadThrough)
	}
	for i, it := range box.Items {
		page.Items[i] = messageJSON(it)
	}
	if n := len(page.Items); n >= in.Limit {
		page.Next = page.Items[n-1].At.Format(time.RFC3339Nano)
	}
	return &struct{ Body Inbox }{page}, nil
}

// markRead marks messages up to now at most; messages that arrive later stay unread.
func (h *handlers) markRead(ctx context.Context, in *struct{ Body *ReadMark }) (*struct{ Body ReadState }, error) {
	through := h.Now().UTC()
	if in.Body != nil && in.Body.Through != nil && in.Body.Through.Before(through) {
		through = in.Body.Through.UTC()
	}
	if through.Year() < 1970 {
		return nil, pipeline.Refused("body.through", "must not lie before 1970")
	}
	stands, err := h.Inbox.MarkRead(ctx, pipeline.UserOf(ctx), through)
	if err != nil {
		return nil, err
	}
	return &struct{ Body ReadState }{ReadState{stands.UTC()}}, nil
}

func messageJSON(it inbox.Message) Message {
	m := Message{ID: it.ID, Kind: string(it.Kind), TemplateName: it.Name, Minutes: it.Slot.Minutes(), DueAt: it.DueAt.UTC(), At: it.At.UTC(),
		ClaimURL: it.ClaimURL, Title: it.Title, Text: it.Text, Read: it.Read}
	if it.TemplateID != 0 {
		m.TemplateID, m.OpensAt = pipeline.Decimal(it.TemplateID), pipeline.UTC(&it.OpensAt)
	}
	if it.ShopNumber != 0 {
		m.ShopNumber = pipeline.Decimal(it.ShopNumber)
	}
	if !it.ExpiresAt.IsZero() {
		m.ExpiresAt = pipeline.UTC(&it.ExpiresAt)
	}
	return m
}
