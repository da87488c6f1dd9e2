package audience

import (
	"context"
	"net/url"

	"dropbell/domain/delivery/feedback"
	"dropbell/views/ui"
)

// reasonName is the reason of a suppression in words.
func reasonName(ctx context.Context, s feedback.Suppression) string {
	return ui.T(ctx, "suppressions.reason."+s.Reason)
}

func reasonTone(s feedback.Suppression) ui.Tone {
	if s.Reason == feedback.ByStaff {
		return ui.Neutral
	}
	return ui.ReportedTone(feedback.Status(s.Reason))
}

func reasonOptions(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "suppressions.all_reasons")}}
	for _, reason := range feedback.Reasons() {
		list = append(list, ui.Option{Value: reason, Label: reasonName(ctx, feedback.Suppression{Reason: reason})})
	}
	return list
}

// causeText returns the text of the provider or of the member, with the provider's name.
func causeText(s feedback.Suppression) string {
	name := map[string]string{"ses": "Amazon SES", "sendgrid": "SendGrid", "mailgun": "Mailgun", "postmark": "Postmark", "directmail": "Direct Mail"}[s.Provider]
	if name == "" {
		name = s.Provider
	}
	if name == "" || s.Cause == "" {
		return name + s.Cause
	}
	return name + ": " + s.Cause
}

func releaseURL(s feedback.Suppression) string {
	return "/suppressions/release?" + url.Values{"address": {s.Address}}.Encode()
}

// suppressionURL returns the address of the list with the user's address as search text. A masked
// address cannot be searched for.
func (p User) suppressionURL() string {
	if p.Masked {
		return "/suppressions"
	}
	return "/suppressions?" + url.Values{"q": {p.Suppression.Address}}.Encode()
}
