package campaigns

import (
	"context"
	"fmt"
	"net/url"

	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// Texts are the messages of a campaign in every language for one reader.
type Texts struct {
	List    []CampaignText
	Channel message.Channel
	// Reader names the reader for whom the texts are shown: a user, or a made-up person. User and
	// Language are the typed choice of a reader, Errors its unreadable fields.
	Reader         string
	User, Language string
	Errors         []fault.Field
	// Gets says that a reader was chosen. The reader gets the texts in no other language.
	Gets bool
	// Own has the member's contacts for a test, which is allowed if MayTry. Try is the result of
	// the last test.
	Own    parts.Own
	MayTry bool
	Try    parts.Try
	// Form is the id of the form that contains the texts, and Action the address that it is sent
	// to. Without Form the form around the texts is sent.
	Form, Action string
}

// CampaignText is one language of one variant.
type CampaignText struct {
	Locale  string // "" for the default
	Variant int
	Preview parts.Preview
	// Faults are the variables of its title or body that cannot be replaced.
	Faults []fault.Field
	// Other says that the chosen reader gets another text.
	Other bool
}

// read are the texts that the reader may get.
func (p Texts) read() (list []CampaignText) {
	for _, t := range p.List {
		if !t.Other {
			list = append(list, t)
		}
	}
	return list
}

// canTry reports whether the text can be sent to the member.
func (p Texts) canTry(t CampaignText) bool {
	return p.MayTry && p.Own.Reaches(p.Channel) && t.Preview.Content.Text != ""
}

// key names the text in the form.
func (t CampaignText) key() string { return fmt.Sprintf("%d:%s", t.Variant, t.Locale) }

// address is the page of the campaign that shows these texts.
func (p Texts) address(page string) string {
	q := url.Values{}
	if p.User != "" {
		q.Set("preview_user", p.User)
	}
	if p.Language != "" {
		q.Set("preview_language", p.Language)
	}
	if len(q) > 0 {
		page += "?" + q.Encode()
	}
	return page + "#message"
}

// Address is the campaign's page with the same reader.
func (p Texts) Address(campaign int64) string { return p.address(parts.CampaignURL(campaign, "")) }

// as names the reader of the texts.
func (p Texts) as(ctx context.Context) string { return ui.T(ctx, "message.as", p.Reader) }

func (t CampaignText) label(ctx context.Context) string {
	label := ui.T(ctx, "campaign.preview.default")
	if t.Locale != "" {
		label = parts.LanguageName(ctx, t.Locale)
	}
	if t.Variant > 0 {
		label += " · " + ui.T(ctx, "campaign.preview.b")
	}
	return label
}

// readerField is one of the fields that choose the reader.
func (p Texts) readerField(ctx context.Context, name, typed string) ui.FieldProps {
	return ui.FieldProps{Name: name, Label: ui.T(ctx, "campaign.field."+name), Help: ui.T(ctx, "campaign.help."+name), Value: typed,
		Error: ui.ErrorOf(ctx, p.Errors, name), Autocomplete: "off"}
}

func (p Texts) userField(ctx context.Context) ui.FieldProps {
	f := p.readerField(ctx, "preview_user", p.User)
	f.Choices = parts.Choices("people", "preview_user")
	return f
}

func (p Texts) languageChoice(ctx context.Context) ui.ChoiceProps {
	return parts.LanguageChoice(ctx, ui.ChoiceProps{Name: "preview_language", Label: ui.T(ctx, "campaign.field.preview_language"), Help: ui.T(ctx, "campaign.help.preview_language"), Value: p.Language,
		Error: ui.ErrorOf(ctx, p.Errors, "preview_language"), Options: []ui.Option{{Label: ui.T(ctx, "campaign.preview.all_languages")}}}, nil)
}
