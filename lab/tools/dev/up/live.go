package main

import (
	"context"
	"strconv"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/lab/tools/dev/demo"
	"dropbell/lab/tools/dev/shop"
)

// goLive lets simulated shoppers come to the openings of the demo's drops and of the demo shop's,
// and adds a drop whenever none is ahead, until ctx ends. Demo data without a history, and data of
// other origin, stay as they are.
func (s *stack) goLive(ctx context.Context, o offer) {
	by := s.settings.issuer()
	if !o.ours || !s.settings.past || by.Secret == "" {
		return
	}
	live := &demo.Live{Crowd: demo.Crowd{Client: demo.NewClient(s.settings.url(), s.settings.get("ADMIN_API_KEY")), Tokens: by, Link: s.settings.links()},
		Moderately: shop.DropName, CampaignLink: s.settings.campaignLinks(), Say: say}
	s.running.Go(func() { live.Run(ctx) })
}

// links returns the addresses in reminders of five minutes; nil without a secret of links.
func (s *settings) links() func(drop string, u int64, channel string) string {
	address := reminder.NewLinks(s.get("LINK_SECRET")).Addresses(s.url())
	if address == nil {
		return nil
	}
	return func(drop string, u int64, channel string) string {
		id, _ := strconv.ParseInt(drop, 10, 64)   // an id of the API is a number
		over, _ := delivery.ParseChannel(channel) // a channel of the demo's own
		return address(reminder.Reader{TemplateID: id, UserID: user.ID(u), Slot: 1, Channel: over})
	}
}

// campaignLinks returns the addresses in messages of campaigns; nil without a secret of links.
func (s *settings) campaignLinks() func(id, u int64, variant int) string {
	address := campaign.Links{Links: user.NewLinks(s.get("LINK_SECRET"))}.Addresses(s.url())
	if address == nil {
		return nil
	}
	return func(id, u int64, variant int) string { return address(id, user.ID(u), variant, "") }
}
