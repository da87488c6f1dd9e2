package drops

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	ical "github.com/arran4/golang-ical"

	"dropbell/domain/template"
	"dropbell/web/api/pipeline"
)

const (
	// eventLasts is how long the opening takes in a calendar.
	eventLasts = 15 * time.Minute
	// calendarRefresh is how often a calendar that subscribes to an opening asks again.
	calendarRefresh = time.Hour
	// usualAlarm is the alarm of an opening whose address names none, in minutes.
	usualAlarm = 5
)

// oneKindOfLines replaces all line ends by "\n", the only line end that the library escapes.
var oneKindOfLines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

type calendarAnswer struct {
	Type        string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

func (h *handlers) calendarRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForAnybody}, Method: http.MethodGet, Path: "/templates/{id}/opening.ics", ID: "get-opening-calendar",
		Summary: "Put the opening of a drop into a calendar",
		Description: "One event (RFC 5545) with an alarm for each of `minutes` before the opening. Needs no credentials, so it can be a link; by webcal: a calendar subscribes to it " +
			"and follows when the opening moves or the drop is cancelled.",
		Codes: []string{"template_not_found"}, File: "text/calendar", FileText: "The event."}, h.calendar)
}

func (h *handlers) calendar(ctx context.Context, in *struct {
	pipeline.Ref
	Minutes []int `query:"minutes" maxItems:"12" minimum:"0" maximum:"1440" nullable:"false" doc:"Alarms, in minutes before the opening, separated by commas. None = 5." example:"[10]"`
}) (*calendarAnswer, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	t, err := h.Reminders.Drop(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(in.Minutes) == 0 {
		in.Minutes = []int{usualAlarm}
	}
	raw, err := opening(t, in.Minutes, h.calendarHost())
	return &calendarAnswer{"text/calendar; charset=utf-8", `inline; filename="drop-` + in.ID + `.ics"`, raw}, err
}

// calendarHost returns the host name after the @ of event ids. Drops of two servers have equal
// numbers, and a calendar may hold both.
func (h *handlers) calendarHost() string {
	if u, err := url.Parse(h.PublicURL()); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return "dropbell"
}

// opening returns a calendar with the opening of t as its only event. The event keeps its id, and
// its revision is the template's version, so that calendars replace the older event.
func opening(t template.Template, alarms []int, host string) ([]byte, error) {
	c := ical.NewCalendarFor("Dropbell")
	// No METHOD: it would make the calendar a message of RFC 5546, which requires an organizer and
	// the same method in the content type.
	c.SetName(t.Name)
	c.SetRefreshInterval("PT" + strconv.Itoa(int(calendarRefresh/time.Minute)) + "M")
	c.SetXPublishedTTL("PT" + strconv.Itoa(int(calendarRefresh/time.Minute)) + "M")
	e := c.AddEvent("drop-" + pipeline.Decimal(t.ID) + "@" + host)
	e.SetSequence(int(t.Version))
	e.SetDtStampTime(t.UpdatedAt)
	e.SetModifiedAt(t.UpdatedAt)
	e.SetStartAt(t.OpensAt)
	e.SetEndAt(t.OpensAt.Add(eventLasts))
	e.SetSummary(t.ShopName + ": " + t.Name)
	if t.Description != "" {
		e.SetDescription(oneKindOfLines.Replace(t.Description))
	}
	if address := t.ClaimAddress(); address != "" {
		e.SetURL(address)
	}
	if t.Stored == template.Cancelled {
		e.SetStatus(ical.ObjectStatusCancelled)
		alarms = nil
	} else {
		e.SetStatus(ical.ObjectStatusConfirmed)
	}
	slices.Sort(alarms)
	for _, minutes := range slices.Compact(alarms) {
		alarm := e.AddAlarm()
		alarm.SetAction(ical.ActionDisplay)
		alarm.SetTrigger("-PT" + strconv.Itoa(minutes) + "M")
		alarm.SetProperty(ical.ComponentPropertyDescription, t.Name)
	}
	var b bytes.Buffer
	err := c.SerializeTo(&b, ical.WithNewLineWindows) // as RFC 5545, section 3.1, demands everywhere
	return b.Bytes(), err
}
