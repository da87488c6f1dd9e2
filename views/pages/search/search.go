// Package search renders the search over all objects that staff may open: as a page, and as the
// options of the dialog that every page has.
package search

import (
	"context"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/redeemcode"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// A Hit is one thing that was found.
type Hit struct {
	Icon, URL, Title, Detail string
	Badge                    templ.Component
	// Leave makes it the command that signs out.
	Leave bool
}

// A Group are the hits of one kind.
type Group struct {
	// ID is the kind; its title is the message "find.group." + ID.
	ID   string
	Hits []Hit
	// Note says how this kind is found, or that its search took too long.
	Note string
}

// Results are the results of a search.
type Results struct {
	Search string
	Groups []Group
	// Options makes the results the options of a listbox, for the dialog.
	Options bool
}

// Empty reports whether nothing was found.
func (p Results) Empty() bool {
	for _, g := range p.Groups {
		if len(g.Hits) > 0 {
			return false
		}
	}
	return true
}

// shown returns the groups with hits or a note.
func (p Results) shown() (list []Group) {
	for _, g := range p.Groups {
		if len(g.Hits) > 0 || g.Note != "" {
			list = append(list, g)
		}
	}
	return list
}

func joined(list ...string) string {
	var said []string
	for _, s := range list {
		if s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, " · ")
}

func number(n int64) string { return "#" + strconv.FormatInt(n, 10) }

// ShopHit is a shop.
func ShopHit(s template.Shop, mayEdit bool) Hit {
	h := Hit{Icon: "building-store", URL: "/templates?shop=" + strconv.FormatInt(s.Number, 10), Title: s.Name, Detail: number(s.Number)}
	if mayEdit {
		h.URL = "/shops/" + strconv.FormatInt(s.Number, 10)
	}
	return h
}

// DropHit is a drop.
func DropHit(ctx context.Context, t template.Template) Hit {
	return Hit{Icon: "ticket", URL: "/templates/" + strconv.FormatInt(t.ID, 10), Title: t.Name,
		Detail: joined(number(t.ID), t.ShopName), Badge: ui.StateBadge(t.Stage(ui.From(ctx).Now))}
}

// CampaignHit is a campaign.
func CampaignHit(ctx context.Context, c campaign.Campaign) Hit {
	return Hit{Icon: "speakerphone", URL: parts.CampaignURL(c.ID, ""), Title: c.Name, Detail: joined(number(c.ID), c.ShopName),
		Badge: ui.Badge(ui.Neutral, ui.T(ctx, "campaign.state."+string(c.State)))}
}

// PersonHit is a user, as the viewer may see one.
func PersonHit(ctx context.Context, u user.User) Hit {
	return Hit{Icon: "user", URL: "/users/" + u.ID.String(), Title: parts.UserName(ctx, u), Detail: joined("#"+u.ID.String(), u.Email, u.Phone)}
}

// StrangerHit is a user number without a known profile: the user may have reserved all the same.
func StrangerHit(ctx context.Context, id user.ID) Hit {
	return Hit{Icon: "user", URL: "/users/" + id.String(), Title: ui.T(ctx, "user.nameless", id.String()), Detail: ui.T(ctx, "find.no_profile")}
}

// CouponHit is a coupon.
func CouponHit(ctx context.Context, l coupon.Listed) Hit {
	return Hit{Icon: "tag", URL: parts.CouponURL(l.ID), Title: l.TemplateName,
		Detail: joined(number(l.ID), l.ShopName, ui.T(ctx, "find.of_user", l.UserID.String())), Badge: parts.CouponBadge(l)}
}

// OrderHit is a coupon that the order locked or used.
func OrderHit(ctx context.Context, order string, l coupon.Listed) Hit {
	h := CouponHit(ctx, l)
	h.Title, h.Detail = ui.T(ctx, "find.order", order), joined(number(l.ID), l.TemplateName, l.ShopName)
	return h
}

// CodeHit is a redeem code: its coupon after its use, otherwise its batch.
func CodeHit(ctx context.Context, f redeemcode.Finding) Hit {
	h := Hit{Icon: "key", URL: parts.CodesURL(f.Batch.TemplateID), Title: f.Code.Text(),
		Detail: ui.T(ctx, "find.code_batch", strconv.FormatInt(f.Batch.ID, 10))}
	if f.Use != nil {
		h.URL, h.Detail = parts.CouponURL(f.Use.CouponID), ui.T(ctx, "find.code_used", strconv.FormatInt(f.Use.CouponID, 10))
	}
	return h
}

// CommandHit is a command.
func CommandHit(c ui.Command) Hit {
	return Hit{Icon: c.Icon, URL: c.URL, Title: c.Label, Leave: c.Leave}
}
