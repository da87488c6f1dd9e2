package ui

import (
	"context"
	"strings"

	"dropbell/domain/staff"
)

// A Command is an entry of the search that is an action: it leads to a page or signs the viewer
// out.
type Command struct {
	ID, Icon, Label, URL string
	// Leave says that the command ends the sign-in by a form, not by a link.
	Leave bool
}

// SignOutForm is the id of the form that ends the sign-in.
const SignOutForm = "sign-out"

// begins are the commands that make something new.
func begins() []navPage {
	return []navPage{{"find.new_drop", "/templates/new", may(staff.ManageTemplates)}, {"find.new_campaign", "/campaigns/new", may(staff.ManageCampaigns)},
		{"find.new_segment", "/segments/new", may(staff.ManageUsers)}, {"find.new_shop", "/shops/new", mayEverywhere(staff.ManageTemplates)}}
}

// Commands returns the commands that the viewer may use and whose label, in the viewer's language
// or in English, contains the text; all commands for an empty text.
func Commands(ctx context.Context, text string) (list []Command) {
	add := func(c Command, key string) {
		if c.Label = T(ctx, key); text == "" || holdsText(c.Label, text) || holdsText(From(ctx).Languages[0].T(key), text) {
			list = append(list, c)
		}
	}
	for _, p := range begins() {
		if p.open(ctx) {
			add(Command{ID: p.id, Icon: "plus", URL: p.url}, p.id)
		}
	}
	for _, g := range navigation() {
		for _, s := range g.sections {
			for _, p := range s.openPages(ctx) {
				add(Command{ID: p.id, Icon: s.icon, URL: p.url}, "nav."+p.id)
			}
		}
	}
	add(Command{ID: "account", Icon: "user-circle", URL: "/account"}, "account.title")
	add(Command{ID: "sign_out", Icon: "logout", Leave: true}, "account.sign_out")
	return list
}

// holdsText reports whether the label holds the text, in any case.
func holdsText(label, text string) bool {
	return strings.Contains(strings.ToLower(label), strings.ToLower(text))
}
