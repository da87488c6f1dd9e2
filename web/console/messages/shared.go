package messages

import (
	"errors"
	"net/http"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
	"dropbell/domain/user"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// Shared has the functions of this package that pages about the texts of a campaign use: readers of
// previews, and sending a text to the member who is writing it.
type Shared struct{ h *handlers }

// NewShared returns the functions for pages about campaigns.
func NewShared(d Deps) Shared { return Shared{&handlers{Deps: d}} }

// Reader returns the user with the number, or for 0 a made-up person in the zone.
func (s Shared) Reader(r *http.Request, id user.ID, zone *time.Location) (user.User, error) {
	if id == 0 {
		return user.User{Name: shell.Say(r, "message.sample"), Timezone: zone.String()}, nil
	}
	return s.h.Users.Preferences(r.Context(), id)
}

// Pictures is the library of the shop, empty for members who may not change it.
func (s Shared) Pictures(r *http.Request, shop int64) (pageparts.Pictures, error) {
	return s.h.offer(r, shop)
}

// Own is where the member can be reached.
func (s Shared) Own(r *http.Request) (pageparts.Own, error) { return s.h.own(r) }

// Send sends the draft of a text to the member's own address over the channel. shop is the shop of
// the text (0 = none), templateID the template that it is about (0 = none).
func (s Shared) Send(r *http.Request, shop int64, c delivery.Channel, templateID int64, d message.Draft) (pageparts.Try, error) {
	own, err := s.h.own(r)
	if err != nil {
		return pageparts.Try{}, err
	}
	return s.h.send(r, shop, testmessage.TestWish{Channel: c, Recipient: own.Address(message.Channel(c.String())), TemplateID: templateID}, d)
}

// send sends the draft to the member and returns the result. A refusal that the member can act on
// is a result, not an error.
func (h *handlers) send(r *http.Request, shop int64, wish testmessage.TestWish, d message.Draft) (pageparts.Try, error) {
	ctx := r.Context()
	wish.Locale = d.Language
	sent, err := h.Tests.SendDraft(ctx, shell.Actor(r), shop, wish, d)
	switch kind := fault.KindOf(err); {
	case errors.Is(err, staff.ErrForbidden) && shop == 0: // no shop is chosen yet
		return pageparts.Try{Tone: ui.Warn, Refused: true, Text: shell.Say(r, "message.test.no_shop")}, nil
	case shell.FieldsOf(err) != nil, kind == fault.Throttled, kind == fault.Invalid:
		return pageparts.Try{Tone: ui.Warn, Refused: true, Text: ui.FaultText(ctx, err), Broken: shell.FieldsOf(err)}, nil
	case err != nil:
		return pageparts.Try{}, err
	}
	now, err := h.Tests.Outcome(ctx, sent)
	if err != nil {
		return pageparts.Try{}, err
	}
	switch to := wish.Recipient; now.Result {
	case "":
		return pageparts.Try{Tone: ui.Good, Text: shell.Say(r, "message.test.sent", to)}, nil
	case testmessage.TestDelivered:
		return pageparts.Try{Tone: ui.Good, Text: shell.Say(r, "message.test.delivered", to)}, nil
	case testmessage.TestUnknown:
		return pageparts.Try{Tone: ui.Warn, Text: shell.Say(r, "message.test.unknown", to)}, nil
	default:
		return pageparts.Try{Tone: ui.Bad, Text: shell.Say(r, "message.test.failed", to, pageparts.OrDash(now.Detail))}, nil
	}
}
