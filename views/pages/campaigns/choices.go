package campaigns

import (
	"context"
	"fmt"
	"strings"

	"dropbell/domain/campaign"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// OfTemplate reports whether an audience is chosen by a coupon template.
func OfTemplate(kind string) bool {
	return kind == string(campaign.Reserved) || kind == string(campaign.Holds)
}

// TemplateName names a template so that a form can read back which one it is.
func TemplateName(t template.Template) string { return fmt.Sprintf("%s (#%d)", t.Name, t.ID) }

// audienceKinds returns the kinds of audience that need a second value: a template's name, or
// numbers.
func audienceKinds(byTemplate bool) string {
	var list []string
	for _, k := range campaign.AudienceKinds() {
		if k != campaign.Everybody && OfTemplate(string(k)) == byTemplate {
			list = append(list, string(k))
		}
	}
	return strings.Join(list, " ")
}

// templateField returns an input for a template's name or number, which offers names while the text
// is typed.
func (p CampaignForm) templateField(ctx context.Context, name string, required bool) ui.FieldProps {
	f := p.field(ctx, name, "", required)
	f.InputMode, f.Choices = "", "/templates/choices"
	return f
}

// A TemplateChoice is a name that a field for templates offers. Reserved is about how many users have
// reserved a reminder and Holds how many have an unused coupon, where the field is about an audience.
type TemplateChoice struct {
	template.Template
	Reserved, Holds *int64
}

// TemplateChoices are the names that a field for templates offers.
type TemplateChoices []TemplateChoice

// choiceHint distinguishes templates with the same name.
func choiceHint(ctx context.Context, t TemplateChoice) string {
	l, counts := ui.From(ctx).Locale, ""
	if t.Reserved != nil && t.Holds != nil {
		counts = l.T("campaign.audience.of_drop", *t.Reserved, *t.Holds) + " · "
	}
	return counts + t.ShopName + " · " + l.DateTime(t.OpensAt, t.Zone()) + " · " + l.T("state."+string(t.Stage(ui.From(ctx).Now)))
}
