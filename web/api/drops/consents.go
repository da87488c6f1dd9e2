package drops

import (
	"context"
	"net/http"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/web/api/pipeline"
)

// Consents are a user's consents to one message each about a drop.
type Consents struct {
	Minutes []int `json:"minutes" nullable:"false" doc:"The push reminders whose message is consented to, by their minutes before the opening, the farthest first. A consent that was used up is not among them." example:"[10]"`
}

type consentsAnswer struct{ Body Consents }

// consentPath names the push reminder that a consent is for.
type consentPath struct {
	TemplateID string `path:"template_id" pattern:"^[1-9][0-9]{0,18}$"`
	Minutes    int    `path:"minutes" minimum:"5" maximum:"60" multipleOf:"5" doc:"How long before the opening the reminder is." example:"10"`
}

func (h *handlers) consentRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/reservations/{template_id}/consents", ID: "list-consents",
		Summary: "Show which reminders have a consent of their own", Codes: []string{"template_not_found", "not_reserved"}},
		func(ctx context.Context, in *struct {
			TemplateID string `path:"template_id" pattern:"^[1-9][0-9]{0,18}$"`
		}) (*consentsAnswer, error) {
			template, err := pipeline.ParseID("path.template_id", in.TemplateID)
			if err != nil {
				return nil, err
			}
			c, err := h.Reminders.Consents(ctx, pipeline.UserOf(ctx), template)
			return consentsJSON(c), err
		})
	codes := []string{"template_not_found", "not_reserved", "already_due"}
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodPut, Path: "/reservations/{template_id}/consents/{minutes}", ID: "give-consent",
		Summary: "Consent to one message of a reminder",
		Description: "For WeChat: after wx.requestSubscribeMessage was accepted, which permits one message. The reminder on the channel webpush must be reserved. " +
			"A reminder has one consent at most, however often this is repeated; it is used up when the message was taken, and goes with the reservation. " +
			"Without it the reminder is not sent to WeChat.",
		Codes: codes}, h.consent(true))
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodDelete, Path: "/reservations/{template_id}/consents/{minutes}", ID: "withdraw-consent",
		Summary: "Withdraw the consent to one message of a reminder", Codes: codes}, h.consent(false))
}

func (h *handlers) consent(given bool) func(context.Context, *consentPath) (*consentsAnswer, error) {
	return func(ctx context.Context, in *consentPath) (*consentsAnswer, error) {
		template, err := pipeline.ParseID("path.template_id", in.TemplateID)
		if err != nil {
			return nil, err
		}
		c, err := h.Reminders.SetConsent(ctx, pipeline.UserOf(ctx), template, in.Minutes, given)
		if err != nil {
			asked, _ := reminder.NewReminder(delivery.WebPush, in.Minutes)
			return nil, blame(h.Problem(ctx, err), err, []reminder.Reminder{asked}, func(int) string { return "path.minutes" })
		}
		return consentsJSON(c), nil
	}
}

func consentsJSON(c reminder.Consents) *consentsAnswer { return &consentsAnswer{Consents{c.Minutes()}} }
