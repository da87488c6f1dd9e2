package program

import (
	"context"
	"time"

	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// openingsEnd is how long a process that ends waits for openings of links to be stored.
const openingsEnd = 5 * time.Second

// startOpenings makes the recorder of users who open the links in messages about drops.
func (p *program) startOpenings() {
	p.openings = &reminder.Openings{Store: p.Stores.Openings, Failed: func(err error, waiting int) {
		p.Log.Warn("openings of links could not be stored and wait", "waiting", waiting, "error", err)
	}}
	p.openings.Start()
	p.OnClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), openingsEnd)
		defer cancel()
		p.openings.Close(ctx)
		return nil
	})
}

// dropLinks signs and reads the tracked links in messages about drops. Without a secret there are
// no links.
func (p *program) dropLinks() reminder.Links { return reminder.NewLinks(p.Config.LinkSecret) }

// linkExample returns a link as long as a user's link in messages about the drop; "" without a
// secret.
func (p *program) linkExample(templateID int64, to user.ID) string {
	return p.dropLinks().Example(p.Config.PublicURL, reminder.Reader{TemplateID: templateID, UserID: to})
}
