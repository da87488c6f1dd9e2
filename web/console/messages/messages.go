// Package messages holds the console's pages on which staff write the texts of
// messages, with previews that are made like the messages themselves.
package messages

import (
	"context"

	"dropbell/domain/campaign"
	"dropbell/domain/message"
	"dropbell/domain/picture"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
	"dropbell/domain/user"
	"dropbell/web/console/shell"
)

// Deps are the dependencies of the pages of this package.
type Deps struct {
	Messages  *message.Service
	Templates shell.Templates
	Users     Users
	Own       OwnUsers
	Readers   Readers
	// Tests send a text to the member who is writing the text.
	Tests    *testmessage.ChannelTests
	Pictures *picture.Service
	// PublicURL is the address before the paths of pictures.
	PublicURL string
	// LinkExample returns a tracked link of the form used in messages about the drop, for previews;
	// "" = messages contain the claim address itself.
	LinkExample func(templateID int64, to user.ID) string
}

// Users looks users up; for an unknown user it returns the id alone.
type Users interface {
	Preferences(ctx context.Context, id user.ID) (user.User, error)
}

// OwnUsers finds the user who has a member's e-mail address.
type OwnUsers interface {
	OwnUser(ctx context.Context, email string) (u user.User, found bool, err error)
}

// Readers count the customers who read a text.
type Readers interface {
	// Locales returns about how many users of the audience have each locale; "" = none.
	Locales(ctx context.Context, by staff.Actor, a campaign.Audience) (map[string]int64, error)
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
}

// Routes returns the routes about the texts of drops and shops.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	h := &handlers{Shell: sh, Deps: d}
	return append(shell.Framing([]shell.Route{
		shell.Get("/templates/{id}/message", staff.View, h.of(h.ofTemplate, h.show)),
		shell.Post("/templates/{id}/message", staff.ManageTemplates, h.of(h.ofTemplate, h.change)),
		shell.Get("/templates/{id}/message/mail", staff.View, h.of(h.ofTemplate, h.mail)),
		shell.Get("/campaigns/message/mail", staff.View, h.of(h.ofNone, h.mail)),
		shell.Get("/shops/{id}/message", staff.View, h.of(h.ofShop, h.show)),
		shell.Post("/shops/{id}/message", staff.ManageTemplates, h.of(h.ofShop, h.change)),
		shell.Get("/shops/{id}/message/mail", staff.View, h.of(h.ofShop, h.mail)),
	}),
		shell.Get("/shops/{id}/pictures", staff.View, shell.With(h.viewedShop, h.showLibrary)),
		shell.Upload(shell.Post("/shops/{id}/pictures", staff.ManageTemplates, shell.With(h.viewedShop, h.uploadPicture))),
		shell.Post("/shops/{id}/pictures/{hash}", staff.ManageTemplates, h.changePicture))
}
