package drops

import (
	"context"
	"errors"
	"net/http"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// announce returns the announcements that were sent to the users of a template, and the kind that
// can be sent now, if any.
func (h *handlers) announce(ctx context.Context, by staff.Actor, t template.Template) (droppages.Announce, error) {
	p := droppages.Announce{Template: t}
	var err error
	if p.List, err = h.Announcements.List(ctx, by, t.ID); err != nil || !by.Can(staff.ManageTemplates, t.ShopNumber) {
		return p, err
	}
	kind := delivery.KindCorrection
	if t.Stored == template.Cancelled {
		kind = delivery.KindCancelled
	}
	reach, err := h.Announcements.Preview(ctx, by, t.ID, reminder.Order{Kind: kind})
	if errors.Is(err, template.ErrTransition) {
		return p, nil // nothing to correct or to call off
	}
	p.LeftOut = reach.LeftOut
	if err != nil || reach.Messages() == 0 {
		return p, err
	}
	told, err := h.told(ctx, t, kind, p.List)
	if !told {
		p.Kind, p.Audience = kind, reach.Audience
	}
	return p, err
}

// told reports whether an announcement of the kind has been sent and no reminder sent since has
// named another opening.
func (h *handlers) told(ctx context.Context, t template.Template, kind delivery.Kind, list []reminder.AnnouncementStatus) (bool, error) {
	var sent *reminder.AnnouncementStatus
	for i, a := range list { // newest first
		if a.Kind == kind && a.OpensAt.Equal(t.OpensAt) {
			sent = &list[i]
			break
		}
		if a.Kind == delivery.KindCorrection && kind == delivery.KindCorrection {
			return false, nil // the opening told last is another one
		}
	}
	if sent == nil || kind == delivery.KindCancelled {
		return sent != nil, nil
	}
	board, err := h.Board.Board(ctx, t.ID)
	for _, row := range board.Earlier {
		if row.FiredAt != nil && row.FiredAt.After(sent.CreatedAt) {
			return false, err
		}
	}
	return true, err
}

func (h *handlers) listAnnouncements(w http.ResponseWriter, r *http.Request, t template.Template) error {
	p, err := h.announce(r.Context(), shell.Actor(r), t)
	if err != nil {
		return err
	}
	return h.Either(w, r, droppages.AnnounceCard(p), p.Page())
}

// announcementKind reads the kind in the address.
func announcementKind(r *http.Request) (delivery.Kind, error) {
	kind := delivery.Kind(r.PathValue("kind"))
	if kind != delivery.KindCorrection && kind != delivery.KindCancelled {
		return "", shell.ErrNoPage
	}
	return kind, nil
}

func (h *handlers) confirmAnnouncement(w http.ResponseWriter, r *http.Request, kind delivery.Kind) error {
	t, err := shell.OwnTemplate(h.Templates)(r)
	if err != nil {
		return err
	}
	reach, err := h.Announcements.Preview(r.Context(), shell.Actor(r), t.ID, reminder.Order{Kind: kind})
	if err != nil {
		return err
	}
	l := shell.Frame(r).Locale
	if reach.Messages() == 0 {
		return h.Done(w, r, shell.TemplateURL(t.ID), ui.Info, nobodyLeft(l, reach))
	}
	points := []string{l.T("announce.confirm.1"), l.T("announce.confirm."+string(kind)+".2", l.DateTime(t.OpensAt, t.Zone())+" "+l.Zone(t.OpensAt, t.Zone())), l.T("announce.confirm.quiet")}
	if reach.LeftOut > 0 {
		points = append(points, l.N("announce.confirm.left_out", reach.LeftOut, reminder.MaxCorrections))
	}
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "templates", Crumbs: shell.TemplateCrumbs(r, t), Inside: droppages.Recipients(reach),
		ConfirmProps: ui.ConfirmProps{Title: l.T("announce.title."+string(kind), t.Name), Points: points, Action: droppages.Announce{Template: t}.URL(kind),
			Cancel: shell.TemplateURL(t.ID), Submit: l.T("announce.do." + string(kind)), Kind: "primary", NoReason: true}})
}

func (h *handlers) sendAnnouncement(w http.ResponseWriter, r *http.Request, kind delivery.Kind) error {
	t, err := shell.OwnTemplate(h.Templates)(r)
	if err != nil {
		return err
	}
	order := reminder.Order{Kind: kind, NobodyAgain: r.PostFormValue("nobody_again") != ""}
	if _, err := h.Announcements.Send(r.Context(), shell.Actor(r), t.ID, order); err != nil {
		return err
	}
	return h.Done(w, r, shell.TemplateURL(t.ID), ui.Good, shell.Say(r, "announce.sent."+string(kind)))
}

// nobodyLeft explains why an announcement would have no recipients.
func nobodyLeft(l *i18n.Locale, reach reminder.Reach) string {
	if reach.LeftOut > 0 {
		return l.N("announce.confirm.left_out", reach.LeftOut, reminder.MaxCorrections)
	}
	return l.T("announce.confirm.nobody")
}
