package parts

import (
	"context"
	"fmt"

	"dropbell/domain/campaign"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// A Command is an action that the viewer may take on one drop or campaign. Its URL is the page that
// asks for confirmation, or the form: opening it changes nothing.
type Command struct {
	// Label is the key of its text.
	Icon, Label, URL string
}

// DropCommands returns the actions that the viewer may take on t now, as the page of the drop
// offers them, the most useful first; nil if the role may take none.
func DropCommands(ctx context.Context, t template.Template) (list []Command) {
	now := ui.From(ctx).Now
	if !ui.May(ctx, staff.ManageTemplates, t.ShopNumber) {
		return nil
	}
	add := func(icon, label, step string) {
		list = append(list, Command{icon, label, fmt.Sprintf("/templates/%d/%s", t.ID, step)})
	}
	ahead := now.Before(t.OpensAt)
	switch s := t.State(now); s {
	case template.Draft:
		add("rocket", "do.publish", "publish")
		add("trash", "do.delete", "delete")
	case template.Scheduled, template.Open, template.SoldOut:
		add("player-pause", "do.pause", "pause")
	case template.Paused:
		add("player-play", "do.resume", "resume")
	default:
		return []Command{{"copy-plus", "do.clone", fmt.Sprintf("/templates/new?from=%d", t.ID)}}
	}
	if t.Stored != template.Draft {
		if ahead {
			add("calendar-time", "do.move", "move")
			add("ban", "do.cancel", "cancel")
		} else {
			add("flag", "do.close", "close")
		}
		add("packages", "do.stock", "stock")
	}
	add("pencil", "do.edit", "edit")
	return append(list, Command{"copy-plus", "do.clone", fmt.Sprintf("/templates/new?from=%d", t.ID)})
}

// CampaignCommands returns the actions that the viewer may take on the campaign now, as its page
// offers them.
func CampaignCommands(ctx context.Context, c campaign.Campaign) (list []Command) {
	if !ui.May(ctx, staff.ManageCampaigns, c.Shop) {
		return nil
	}
	add := func(may bool, icon, label, step string) {
		if may {
			list = append(list, Command{icon, label, CampaignURL(c.ID, step)})
		}
	}
	draft := c.State == campaign.Draft
	add(campaign.Publishing.Allowed(c.State) && c.ApprovalAskedAt == nil, "rocket", "campaign.do.publish", "publish")
	add(campaign.Pausing.Allowed(c.State), "player-pause", "campaign.do.pause", "pause")
	add(campaign.Resuming.Allowed(c.State) && c.HeldAt == nil, "player-play", "campaign.do.resume", "resume")
	add(!draft && campaign.Cancelling.Allowed(c.State), "ban", "campaign.do.cancel", "cancel")
	add(draft, "pencil", "campaign.edit", "edit")
	add(draft, "trash", "do.delete", "delete")
	return append(list, Command{"copy-plus", "campaign.do.clone", fmt.Sprintf("/campaigns/new?from=%d", c.ID)})
}

// CommandLabels are the keys of the texts of all commands.
func CommandLabels() []string {
	return []string{"do.publish", "do.delete", "do.pause", "do.resume", "do.move", "do.cancel", "do.close", "do.stock", "do.edit", "do.clone",
		"campaign.do.publish", "campaign.do.pause", "campaign.do.resume", "campaign.do.cancel", "campaign.edit", "campaign.do.clone"}
}
