package drops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// ReminderWish is one reminder as users name it.
type ReminderWish struct {
	Channel string `json:"channel" doc:"app, email, sms, webpush or webhook, as far as this server has a sender for it." example:"app"`
	Minutes int    `json:"minutes" enum:"5,10,15,20,25,30,35,40,45,50,55,60" doc:"How long before the opening." example:"10"`
}

// ReservationWish is the request for reminders of one drop.
type ReservationWish struct {
	TemplateID string         `json:"template_id" pattern:"^[1-9][0-9]{0,18}$" doc:"The drop." example:"1"`
	ShopNumber string         `json:"shop_number" pattern:"^[1-9][0-9]{0,18}$" doc:"The shop the drop belongs to." example:"10"`
	Reminders  []ReminderWish `json:"reminders" minItems:"1" maxItems:"60" nullable:"false" doc:"All of them are reserved, or none."`
}

// Resolve is part of [huma.ResolverWithPath]. If the minutes of a reminder are refused, the refusal
// names the reminder's unknown channels as well.
func (w *ReservationWish) Resolve(_ huma.Context, at *huma.PathBuffer) (errs []error) {
	refused := slices.ContainsFunc(w.Reminders, func(r ReminderWish) bool {
		_, err := reminder.NewReminder(delivery.App, r.Minutes)
		return err != nil
	})
	for i, r := range w.Reminders {
		if _, err := delivery.ParseChannel(r.Channel); err != nil && refused {
			errs = append(errs, &huma.ErrorDetail{Location: fmt.Sprintf("%s.reminders[%d].channel", at, i), Message: err.Error(), Value: r.Channel})
		}
	}
	return errs
}

// Reservation is all reminders of one user for one drop.
type Reservation struct {
	TemplateID   string          `json:"template_id" example:"1"`
	ShopNumber   string          `json:"shop_number" example:"10"`
	TemplateName string          `json:"template_name" example:"20 off"`
	OpensAt      time.Time       `json:"opens_at" doc:"When the drop opens." example:"2027-01-01T12:00:00Z"`
	Slots        string          `json:"slots" doc:"The reminders as one number: bit 12 × channel + minutes ÷ 5 − 1." example:"2"`
	Reminders    []ReminderState `json:"reminders" nullable:"false" doc:"The farthest from the opening first; empty if none is left."`
}

// ReminderState is the outcome of one reminder.
type ReminderState struct {
	Channel string    `json:"channel" example:"app"`
	Minutes int       `json:"minutes" enum:"5,10,15,20,25,30,35,40,45,50,55,60" example:"10"`
	DueAt   time.Time `json:"due_at" example:"2027-01-01T11:50:00Z"`
	State   string    `json:"state" enum:"waiting,due,in_flight,sent,failed,skipped,expired,dead,discarded,cancelled" doc:"waiting: not due yet; due, in_flight: being delivered; failed: will be tried again; cancelled: the drop ended before, so it does not go out." example:"waiting"`
	Reason  string    `json:"reason,omitempty" doc:"The reason of an outcome other than sent." example:"opted_out"`
}

// ReservationList is one page of reservations.
type ReservationList struct {
	Reservations []Reservation `json:"reservations" nullable:"false"`
	Next         string        `json:"next,omitempty" doc:"Pass as before to get the next page; absent on the last one."`
}

type reservationAnswer struct {
	Status int
	Body   Reservation
}

func (h *handlers) reservationRoutes() {
	h.ForReaders(sayMinutes)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Hot: true, Detached: true, Quick: h.quick, Once: keyedReservations{h}}, Method: http.MethodPost, Path: "/reservations", ID: "reserve",
		Summary: "Reserve reminders of a drop", Status: http.StatusCreated,
		Description: "All reminders are reserved, or none; the answer comes after they are stored durably. They add up: a second request " +
			"for the same drop adds its reminders to the first one's.",
		Also:    map[int]string{http.StatusOK: "Added to the user's reservation."},
		Codes:   []string{"template_not_found", "already_reserved", "already_due", "drop_opened", "not_eligible", "code_needed", "template_not_open", "channel_unavailable", "user_erased"},
		Example: `{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`}, h.reserve)
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/reservations", ID: "list-reservations",
		Summary: "List the user's reservations", Description: "The newest drop first.", Cells: &cells.List{At: "opens_at", ID: "template_id"}}, h.reservations)
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/reservations/{template_id}", ID: "get-reservation",
		Summary: "Show the user's reservation for a drop", Codes: []string{"template_not_found", "not_reserved"}}, h.reservation)
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodDelete, Path: "/reservations/{template_id}", ID: "cancel-reservation",
		Summary: "Cancel reminders of a drop",
		Description: "Cancels one reminder, given by channel and minutes, those of a channel that are not due yet, given by channel alone, several, " +
			"given by repeating reminder, or else all that are not due yet. Several are cancelled all or none. " +
			"Answers with the reminders that remain. Also works for a drop that was closed.",
		Codes: []string{"template_not_found", "not_reserved", "already_due", "channel_unavailable"}}, h.cancel)
}

func (h *handlers) reserve(ctx context.Context, in *struct{ Body ReservationWish }) (*reservationAnswer, error) {
	wanted, err := h.reservationRequest(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	view, created, err := h.Reminders.Reserve(ctx, wanted)
	if err != nil && pipeline.Recovering(ctx) && reservedBefore(err, wanted.Reminders) {
		view, err = h.Reminders.Reservation(ctx, wanted.UserID, wanted.TemplateID)
	}
	if err != nil {
		return nil, blame(h.Problem(ctx, err), err, wanted.Reminders, inBody)
	}
	return reserved(view, created), nil
}

// reservationRequest returns the request that a wish describes. The error lists the parts of the
// wish that cannot be understood.
func (h *handlers) reservationRequest(ctx context.Context, wish ReservationWish) (reminder.Request, error) {
	template, err1 := pipeline.ParseID("body.template_id", wish.TemplateID)
	shop, err2 := pipeline.ParseID("body.shop_number", wish.ShopNumber)
	if err := pipeline.Merge(err1, err2); err != nil {
		return reminder.Request{}, err
	}
	wishes, err := parseWishes(wish.Reminders)
	if err != nil {
		return reminder.Request{}, h.wishProblem(ctx, wish.Reminders, err, inBody)
	}
	return reminder.Request{TemplateID: template, UserID: pipeline.UserOf(ctx), ShopNumber: shop, Reminders: wishes}, nil
}

func reserved(view reminder.View, created bool) *reservationAnswer {
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return &reservationAnswer{status, reservationJSON(view)}
}

func inBody(i int) string { return fmt.Sprintf("body.reminders[%d]", i) }

// reservedBefore reports whether err says that all reminders of asked are reserved already.
func reservedBefore(err error, asked []reminder.Reminder) bool {
	r, ok := errors.AsType[*reminder.Refusal](err)
	return ok && errors.Is(err, reminder.ErrAlreadyReserved) && len(r.Offending) == len(asked)
}

func parseWishes(ws []ReminderWish) ([]reminder.Reminder, error) {
	list := make([]reminder.Reminder, len(ws))
	for i, w := range ws {
		c, err := delivery.ParseChannel(w.Channel)
		if err != nil {
			return nil, err
		}
		if list[i], err = reminder.NewReminder(c, w.Minutes); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// blame adds to a refusal where in the request the offending reminders are.
func blame(p *pipeline.Problem, err error, asked []reminder.Reminder, place func(int) string) *pipeline.Problem {
	r, _ := errors.AsType[*reminder.Refusal](err)
	for ; r != nil; r = r.Also {
		for i, rem := range asked {
			if slices.Contains(r.Offending, rem) {
				p.Errors = append(p.Errors, pipeline.Offence{Location: place(i),
					Message: fmt.Sprintf("%s: %s, %d minutes", r.Cause(), rem.Channel, rem.Slot.Minutes())})
			}
		}
	}
	return p
}

// wishProblem returns every error in the wishes.
func (h *handlers) wishProblem(ctx context.Context, ws []ReminderWish, err error, place func(int) string) error {
	p := h.Problem(ctx, err)
	p.Errors = nil
	for i, w := range ws {
		if c, err := delivery.ParseChannel(w.Channel); err != nil {
			p.Errors = append(p.Errors, pipeline.Offence{Location: place(i) + ".channel", Message: err.Error(), Value: pipeline.Shorten(w.Channel)})
		} else if !h.Channels.Has(c) {
			p.Errors = append(p.Errors, pipeline.Offence{Location: place(i) + ".channel", Message: "this channel has no configured sender", Value: w.Channel})
		}
		if _, err := reminder.NewReminder(delivery.App, w.Minutes); err != nil {
			o := pipeline.Offence{Location: place(i) + ".minutes", Message: err.Error()}
			if w.Minutes != 0 { // else the query had no number there
				o.Value = w.Minutes
			}
			p.Errors = append(p.Errors, o)
		}
	}
	return p
}

func (h *handlers) reservations(ctx context.Context, in *struct {
	Before string `query:"before" pattern:"^[1-9][0-9]{0,18}$" doc:"The value of next on the previous page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"50"`
}) (*struct{ Body ReservationList }, error) {
	before, err := pipeline.OptionalID("query.before", in.Before)
	if err != nil {
		return nil, err
	}
	views, err := h.Reminders.Reservations(ctx, pipeline.UserOf(ctx), before, in.Limit)
	if err != nil {
		return nil, err
	}
	next := pipeline.Next(views, in.Limit, func(last reminder.View) string { return pipeline.Decimal(last.TemplateID) })
	return &struct{ Body ReservationList }{ReservationList{pipeline.Each(views, reservationJSON), next}}, nil
}

func (h *handlers) reservation(ctx context.Context, in *struct {
	TemplateID string `path:"template_id" pattern:"^[1-9][0-9]{0,18}$"`
}) (*reservationAnswer, error) {
	template, err := pipeline.ParseID("path.template_id", in.TemplateID)
	if err != nil {
		return nil, err
	}
	view, err := h.Reminders.Reservation(ctx, pipeline.UserOf(ctx), template)
	return &reservationAnswer{http.StatusOK, reservationJSON(view)}, err
}

// cancelWish names the reminders to cancel; with the drop alone, all its reminders.
type cancelWish struct {
	TemplateID string   `path:"template_id" pattern:"^[1-9][0-9]{0,18}$"`
	Channel    string   `query:"channel" doc:"The channel of the one reminder to cancel, or, without minutes, of all." example:"app"`
	Minutes    string   `query:"minutes" doc:"With channel: the one reminder to cancel." example:"10"`
	Reminder   []string `query:"reminder,explode" maxItems:"60" nullable:"false" doc:"Several reminders to cancel, all or none: channel:minutes, the parameter repeated for each." example:"[\"app:10\",\"email:30\"]"`
	Reminders  string   `query:"reminders" deprecated:"true" doc:"The older way to name several, in one text." example:"app:10,email:5"`
	// narrowed is set if anything but the drop was named.
	narrowed bool
	// minutes counts the minutes parameters of the query, including empty parameters.
	minutes int
}

// Resolve is part of [huma.Resolver].
func (in *cancelWish) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	in.narrowed = u.RawQuery != ""
	in.minutes = len(u.Query()["minutes"])
	return nil
}

func (h *handlers) cancel(ctx context.Context, in *cancelWish) (*reservationAnswer, error) {
	template, err := pipeline.ParseID("path.template_id", in.TemplateID)
	if err != nil {
		return nil, err
	}
	if in.wholeChannel() {
		return h.cancelChannel(ctx, template, in.Channel)
	}
	list, err := in.pairs()
	if err != nil {
		return nil, err
	}
	wishes, err := parseWishes(list)
	if err != nil {
		return nil, h.wishProblem(ctx, list, err, in.place)
	}
	view, err := h.Reminders.Cancel(ctx, pipeline.UserOf(ctx), template, wishes)
	if err != nil {
		return nil, blame(h.Problem(ctx, err), err, wishes, in.place)
	}
	return &reservationAnswer{http.StatusOK, reservationJSON(view)}, nil
}

// wholeChannel reports whether the query names a channel and nothing else.
func (in *cancelWish) wholeChannel() bool {
	return in.Channel != "" && in.Minutes == "" && in.minutes == 0 && in.Reminders == "" && len(in.Reminder) == 0
}

// cancelChannel cancels the reminders of one channel that are not due yet.
func (h *handlers) cancelChannel(ctx context.Context, template int64, name string) (*reservationAnswer, error) {
	channel, err := delivery.ParseChannel(name)
	if err != nil {
		return nil, h.wishProblem(ctx, []ReminderWish{{name, 5}}, err, func(int) string { return "query" })
	}
	view, err := h.Reminders.CancelChannel(ctx, pipeline.UserOf(ctx), template, channel)
	if err != nil {
		return nil, err
	}
	return &reservationAnswer{http.StatusOK, reservationJSON(view)}, nil
}

// place returns the place of the reminder in the query.
func (in *cancelWish) place(i int) string {
	switch {
	case len(in.Reminder) > 0:
		return fmt.Sprintf("query.reminder[%d]", i)
	case in.Reminders != "":
		return fmt.Sprintf("query.reminders[%d]", i)
	}
	return "query"
}

// pairs returns the reminders that the query names.
func (in *cancelWish) pairs() ([]ReminderWish, error) {
	single := in.Channel != "" || in.Minutes != ""
	var pairs []string
	switch {
	case len(in.Reminder) > 0 && (single || in.Reminders != ""):
		return nil, pipeline.Refused("query.reminder", "give either reminder, once for each, or channel and minutes")
	case single && in.Reminders != "":
		return nil, pipeline.Refused("query.reminders", "give either reminders or channel and minutes")
	case single && in.Channel == "":
		return nil, pipeline.Refused("query.channel", "is missing: minutes belong to a channel")
	case single && in.Minutes == "":
		return nil, pipeline.Refused("query.minutes", "is empty; leave it out to cancel all of the channel")
	case len(in.Reminder) > 0:
		pairs = in.Reminder
	case single:
		pairs = []string{in.Channel + ":" + in.Minutes}
	case in.Reminders != "":
		pairs = strings.Split(in.Reminders, ",")
	case in.narrowed:
		// "?channel=" must not cancel everything.
		return nil, pipeline.Refused("query", "name a reminder, or leave the query out to cancel all")
	}
	if len(pairs) > reminder.Bits {
		return nil, pipeline.Refused("query.reminders", "there are only 60 reminders")
	}
	wishes := make([]ReminderWish, len(pairs))
	for i, pair := range pairs {
		if pair == "" && len(in.Reminder) > 0 {
			return nil, pipeline.Refused(in.place(i), "is empty; write channel:minutes, such as app:10")
		}
		channel, minutes, _ := strings.Cut(pair, ":")
		n, err := strconv.Atoi(minutes)
		if err != nil {
			n = 0 // no number of minutes that can be reserved
		}
		wishes[i] = ReminderWish{channel, n}
		if slices.Contains(wishes[:i], wishes[i]) {
			return nil, pipeline.Refused(in.place(i), "is given twice")
		}
	}
	return wishes, nil
}

func reservationJSON(v reminder.View) Reservation {
	r := Reservation{TemplateID: pipeline.Decimal(v.TemplateID), ShopNumber: pipeline.Decimal(v.ShopNumber), TemplateName: v.TemplateName,
		OpensAt: v.OpensAt.UTC(), Slots: v.Slots.String(), Reminders: make([]ReminderState, len(v.Items))}
	for i, it := range v.Items {
		r.Reminders[i] = ReminderState{it.Channel.String(), it.Slot.Minutes(), it.DueAt.UTC(), it.State, it.Reason}
	}
	return r
}
