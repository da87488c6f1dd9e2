package drops

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"dropbell/domain/draw"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// drawRoutes are the routes about the draws of drops.
func (h *handlers) drawRoutes() []shell.Route {
	return []shell.Route{
		shell.Get("/templates/{id}/draw/figures", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.figuresForm)),
		shell.Post("/templates/{id}/draw/figures", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.typeFigures)),
		shell.Get("/templates/{id}/draw/strike", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.strikeForm)),
		shell.Post("/templates/{id}/draw/strike", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.strike)),
	}
}

// fillDraw reads the draw of a published drop that has one.
func (h *handlers) fillDraw(ctx context.Context, p *droppages.Template) error {
	if !p.OpeningMode.Drawn() || p.Stored == template.Draft {
		return nil
	}
	d, err := h.Draws.Store.Draw(ctx, p.ID)
	if errors.Is(err, draw.ErrNoDraw) {
		return nil // its card is published within a second
	}
	if err != nil {
		return err
	}
	p.Draw = &d
	p.Entries, err = h.Draws.Store.EntryGrowth(ctx, p.ID)
	return err
}

func (h *handlers) figuresForm(w http.ResponseWriter, r *http.Request, t template.Template) error {
	return h.Ask(w, r, http.StatusOK, h.figuresQuestion(r, t, "", ""))
}

// figuresQuestion asks for the figures of the public draw.
func (h *handlers) figuresQuestion(r *http.Request, t template.Template, typed, broken string) pageparts.Confirmation {
	l := shell.Frame(r).Locale
	return pageparts.Confirmation{Active: "templates", Crumbs: shell.TemplateCrumbs(r, t),
		Inside: ui.Field(ui.FieldProps{Name: "figures", Label: l.T("draw.figures.field"), Help: l.T("draw.figures.help"), Value: typed, Error: broken, Required: true, Autocomplete: "off"}),
		ConfirmProps: ui.ConfirmProps{Title: l.T("draw.figures.title", t.DrawPublic), Points: []string{l.T("draw.figures.1"), l.T("draw.figures.2")},
			Action: shell.TemplateURL(t.ID) + "/draw/figures", Cancel: shell.TemplateURL(t.ID), Submit: l.T("draw.figures.submit"), Kind: "primary", NoReason: true}}
}

func (h *handlers) typeFigures(w http.ResponseWriter, r *http.Request, t template.Template) error {
	typed := r.PostFormValue("figures")
	complete, err := h.Draws.Figures(r.Context(), shell.Actor(r), t.ID, typed)
	if text, status := refusedDraw(r, err); text != "" {
		return h.Ask(w, r, status, h.figuresQuestion(r, t, typed, text))
	}
	if err != nil {
		return err
	}
	key := "draw.figures.first"
	if complete {
		key = "draw.figures.complete"
	}
	return h.Done(w, r, shell.TemplateURL(t.ID), ui.Good, shell.Say(r, key))
}

// refusedDraw returns why a form about a draw was refused; "" if it was not, or by something else.
func refusedDraw(r *http.Request, err error) (string, int) {
	if list := shell.FieldsOf(err); len(list) > 0 {
		return ui.FieldText(r.Context(), list[0]), http.StatusUnprocessableEntity
	}
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.NotFound {
		return ui.FaultText(r.Context(), err), http.StatusConflict
	}
	return "", 0
}

func (h *handlers) strikeForm(w http.ResponseWriter, r *http.Request, t template.Template) error {
	return h.Ask(w, r, http.StatusOK, h.strikeQuestion(r, t, r.FormValue("user"), ""))
}

// strikeQuestion asks whose entry is struck, and why.
func (h *handlers) strikeQuestion(r *http.Request, t template.Template, typed, broken string) pageparts.Confirmation {
	l := shell.Frame(r).Locale
	return pageparts.Confirmation{Active: "templates", Crumbs: shell.TemplateCrumbs(r, t),
		Inside: ui.Field(ui.FieldProps{Name: "user", Label: l.T("draw.strike.user"), Value: typed, Error: broken, InputMode: "numeric", Required: true, Autocomplete: "off"}),
		ConfirmProps: ui.ConfirmProps{Title: l.T("draw.strike.title", t.Name), Points: []string{l.T("draw.strike.1"), l.T("draw.strike.2"), l.T("draw.strike.3")},
			Action: shell.TemplateURL(t.ID) + "/draw/strike", Cancel: shell.TemplateURL(t.ID), Submit: l.T("draw.strike"), Kind: "danger", NeedsReason: true, ReasonHelp: l.T("draw.strike.reason_help")}}
}

func (h *handlers) strike(w http.ResponseWriter, r *http.Request, t template.Template) error {
	typed := r.PostFormValue("user")
	id, err := strconv.ParseInt(typed, 10, 64)
	if err != nil || id <= 0 {
		return h.Ask(w, r, http.StatusUnprocessableEntity, h.strikeQuestion(r, t, typed, shell.Say(r, "draw.strike.no_user")))
	}
	err = h.Draws.Strike(r.Context(), shell.Actor(r), t.ID, user.ID(id), r.PostFormValue("reason"))
	if text, status := refusedDraw(r, err); text != "" {
		return h.Ask(w, r, status, h.strikeQuestion(r, t, typed, text))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, shell.TemplateURL(t.ID), ui.Good, shell.Say(r, "draw.strike.done", id))
}

// demand is how many customers wanted the last drops of the shop that the form names.
func (h *handlers) demand(r *http.Request, values map[string]string) (d draw.Demand, err error) {
	shop, wrong := strconv.ParseInt(values["shop_number"], 10, 64)
	if wrong != nil || shell.Actor(r).May(staff.View, shop) != nil {
		return d, nil
	}
	return h.Draws.Store.Demand(r.Context(), shop)
}
