package drops

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) confirmStep(w http.ResponseWriter, r *http.Request, t template.Template) error {
	p, err := h.stepQuestion(r, t)
	if err != nil {
		return err
	}
	return h.AskStep(w, r, p)
}

func (h *handlers) takeStep(w http.ResponseWriter, r *http.Request, id int64) error {
	step := r.PathValue("step")
	t, outcome, err := h.Templates.Take(r.Context(), shell.Actor(r), id,
		template.Wish{Step: template.Transition(step), Version: shell.ShownVersion(r), Reason: shell.Reason(r)})
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.Invalid {
		return h.refuseStep(w, r, t, err)
	}
	if err != nil {
		return err
	}
	if outcome == template.Changed { // show what there is now
		return h.refuseStep(w, r, t, fault.ErrStale)
	}
	said := shell.Say(r, "done."+step, t.Name)
	if undo := h.undoFor(r, t, outcome); undo != nil {
		return h.DoneUndoable(w, r, shell.TemplateURL(t.ID), said, *undo)
	}
	return h.Done(w, r, shell.TemplateURL(t.ID), ui.Good, said)
}

// refuseStep shows the confirmation again with the error.
func (h *handlers) refuseStep(w http.ResponseWriter, r *http.Request, t template.Template, cause error) error {
	p, err := h.stepQuestion(r, t)
	if err != nil {
		return err
	}
	return h.StepRefused(w, r, p, cause, pageparts.FieldLabel)
}

// stepQuestion returns the confirmation of the step. If the state does not allow the step, it has
// no submit button.
func (h *handlers) stepQuestion(r *http.Request, t template.Template) (pageparts.Confirmation, error) {
	step := r.PathValue("step")
	if no := t.Allows(template.Transition(step), h.Now()); no != nil {
		return pageparts.Confirmation{Active: "templates", Crumbs: shell.TemplateCrumbs(r, t), ConfirmProps: ui.ConfirmProps{
			Title: shell.Say(r, "confirm.not."+step, t.Name), Points: []string{ui.FaultText(r.Context(), no)}, Cancel: shell.TemplateURL(t.ID), NoReason: true}}, nil
	}
	points, err := h.stepPoints(r, t, step)
	kind, keep := "primary", ""
	if step == string(template.Closing) || step == string(template.Cancelling) && t.Stored != template.Draft {
		kind = "danger"
	}
	if step == string(template.Cancelling) {
		keep = shell.Say(r, "confirm.keep")
	}
	if err != nil {
		return pageparts.Confirmation{}, err
	}
	p := pageparts.Confirmation{Active: "templates", Crumbs: shell.TemplateCrumbs(r, t), ConfirmProps: ui.ConfirmProps{
		Title: shell.Say(r, "confirm."+step+".title", t.Name), Points: points, Action: shell.TemplateURL(t.ID) + "/" + step,
		Cancel: shell.TemplateURL(t.ID), Keep: keep, Submit: shell.Say(r, "do."+step), Kind: kind, Hidden: [][2]string{{"version", strconv.FormatInt(t.Version, 10)}}}}
	if step == string(template.Closing) && t.Stored == template.Paused {
		p.Hidden = append(p.Hidden, [2]string{"was_paused", "1"})
	}
	if step == string(template.Publishing) {
		err := h.Templates.CheckLinks(r.Context(), t)
		if broken := shell.FieldsOf(err); broken != nil {
			p.Error, p.Submit = ui.FieldText(r.Context(), broken[0]), ""
			return p, nil
		}
		if err != nil {
			return p, err
		}
		reds, err := h.Flight.Reds(r.Context(), t)
		if err != nil {
			return p, err
		}
		if n := len(reds); n > 0 {
			p.Points, p.NeedsReason = append(p.Points, shell.Frame(r).Locale.N("confirm.publish.red", int64(n))), true
		}
		looked, err := h.Texts.Looked(r.Context(), t.ID)
		if err != nil {
			return p, err
		}
		if !looked { // asked once: from the first look on there is nothing to ask
			p.Inside, p.Submit = pageparts.Unseen(shell.TemplateURL(t.ID)+"/message"), shell.Say(r, "message.unseen.publish")
		}
	}
	return p, nil
}

// stepPoints lists the effects of the step, with their numbers if there are any.
func (h *handlers) stepPoints(r *http.Request, t template.Template, step string) ([]string, error) {
	l := shell.Frame(r).Locale
	board, err := h.Board.Board(r.Context(), t.ID)
	if err != nil {
		return nil, err
	}
	switch template.Transition(step) {
	case template.Publishing:
		points := []string{l.T("confirm.publish.what", pageparts.Worth(r.Context(), t.Spec), l.Number(t.Stock)), l.T("confirm.publish.1"), l.T("confirm.publish.2", l.DateTime(t.OpensAt, t.Zone())+" "+l.Zone(t.OpensAt, t.Zone()))}
		if n := h.missed(t.OpensAt); n > 0 {
			points = append(points, l.T("confirm.publish.missed", n))
		}
		return append(points, l.T("confirm.publish.3")), nil
	case template.Pausing:
		return []string{l.T("confirm.pause.1"), l.T("confirm.pause.2")}, nil
	case template.Resuming:
		return []string{l.T("confirm.resume.1", t.StockLeft())}, nil
	case template.Closing:
		within := l.T("confirm.close.final")
		if t.ClaimMode != template.Gate {
			within = l.T("confirm.close.undo", int(template.ReopenWithin/time.Minute))
		}
		return []string{l.T("confirm.close.1"), within, l.T("confirm.close.2", board.Progress().Waiting), l.T("confirm.close.3", t.Issued)}, nil
	}
	if t.Stored == template.Draft {
		return []string{l.T("confirm.cancel.1"), l.T("confirm.cancel.draft")}, nil
	}
	return []string{l.T("confirm.cancel.1"), l.T("confirm.cancel.2", board.Progress().Waiting)}, nil
}

func (h *handlers) moveForm(w http.ResponseWriter, r *http.Request, t template.Template) error {
	p := h.moveQuestion(r, t)
	if r.FormValue("opens_at") == "" {
		p.Opens.Value, p.Opens.Fold = shell.TypedTime(t.OpensAt, t.Zone())
		p.Opens.Ambiguous, p.Follow = p.Opens.Fold != "", true
		return h.Either(w, r, p.Fragment(), p.Page())
	}
	if err := h.fillMove(r, t, &p); err != nil {
		return err
	}
	if r.FormValue("part") == "blast" && shell.Partial(r) {
		if p.Opens.Error != "" {
			p.Blast.Error = ui.Labelled(r.Context(), p.Opens.Label, p.Opens.Error)
		}
		return h.Show(w, r, http.StatusOK, p.Blast.Checked(t))
	}
	return h.Either(w, r, p.Fragment(), p.Page())
}

// movable refuses the form where the opening is in the past or not public.
func (h *handlers) movable(r *http.Request) (template.Template, error) {
	t, err := shell.OwnTemplate(h.Templates)(r)
	if err != nil {
		return t, err
	}
	if err := h.editable(t); err != nil {
		return t, err
	}
	if t.Stored != template.Draft && !h.Now().Before(t.OpensAt) {
		return t, template.ErrNotMovable
	}
	return t, nil
}

func (h *handlers) moveQuestion(r *http.Request, t template.Template) droppages.Move {
	return droppages.Move{Template: t, Reason: shell.Reason(r), Follow: r.FormValue("follow") != "", Once: r.FormValue("remind_once") != "", Opens: droppages.WhenProps{Name: "opens_at", Label: shell.Say(r, "field.opens_at"),
		Help: shell.Say(r, "help.opens_at"), Value: r.FormValue("opens_at"), Fold: r.FormValue("opens_at_fold")}}
}

// fillMove reads the typed opening and computes the effect of moving the drop there.
func (h *handlers) fillMove(r *http.Request, t template.Template, p *droppages.Move) error {
	at, broken := shell.Instant(p.Opens.Value, p.Opens.Fold, t.Zone())
	if broken != "" {
		p.Opens.Error, p.Opens.Ambiguous = shell.Say(r, broken), broken == pageparts.KeyTimeTwice
		return nil
	}
	_, p.Opens.Fold = shell.TypedTime(at, t.Zone())
	p.Opens.Ambiguous = p.Opens.Fold != ""
	if err := (template.Spec{OpensAt: at}).CheckOpening(h.Now()); err != nil {
		p.Opens.Error = ui.FieldText(r.Context(), shell.FieldsOf(err)[0])
		return nil
	}
	board, err := h.Board.Board(r.Context(), t.ID)
	p.Blast = h.blast(t, board, at.UTC())
	p.Blast.Once = p.Once
	return err
}

// blast computes the effect of moving t's opening to at.
func (h *handlers) blast(t template.Template, b reminder.Board, at time.Time) droppages.Blast {
	e := b.MoveTo(at, h.Now())
	return droppages.Blast{Valid: true, OpensAt: at, Shift: at.Sub(t.OpensAt), Booked: e.Booked, Reminded: e.Reminded, Late: e.Late, Lost: e.Lost}
}

func (h *handlers) move(w http.ResponseWriter, r *http.Request, t template.Template) error {
	p := h.moveQuestion(r, t)
	if err := h.fillMove(r, t, &p); err != nil {
		return err
	}
	if p.Opens.Error != "" {
		return h.askMove(w, r, http.StatusUnprocessableEntity, p)
	}
	spec := t.Spec
	spec.OpensAt = p.Blast.OpensAt
	if p.Follow {
		spec.ClosesAt = spec.ClosesAt.Add(p.Blast.Shift)
	}
	version, _ := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	moved, err := h.Templates.Edit(r.Context(), shell.Actor(r), t.ID, template.Edition{Version: version, Spec: spec, Reason: p.Reason, RemindOnce: p.Once})
	for _, f := range shell.FieldsOf(err) {
		p.Error = ui.Labelled(r.Context(), pageparts.FieldLabel(r.Context(), f.Name), ui.FieldText(r.Context(), f))
		return h.askMove(w, r, http.StatusUnprocessableEntity, p)
	}
	if fault.KindOf(err) == fault.Conflict {
		p.Error = ui.FaultText(r.Context(), err)
		return h.askMove(w, r, http.StatusConflict, p)
	}
	if err != nil {
		return err
	}
	l := shell.Frame(r).Locale
	told := l.T("done.move", moved.Name, l.DateTime(moved.OpensAt, moved.Zone())+" "+l.Zone(moved.OpensAt, moved.Zone()))
	if p.Blast.Lost > 0 {
		return h.Done(w, r, shell.TemplateURL(t.ID), ui.Warn, told+" "+l.N("done.move_lost", int64(p.Blast.Lost)))
	}
	return h.Done(w, r, shell.TemplateURL(t.ID), ui.Good, told)
}

func (h *handlers) askMove(w http.ResponseWriter, r *http.Request, status int, p droppages.Move) error {
	if shell.Partial(r) {
		return h.Show(w, r, status, p.Fragment())
	}
	return h.Show(w, r, status, p.Page())
}

func (h *handlers) stockForm(w http.ResponseWriter, r *http.Request, t template.Template) error {
	if err := h.editable(t); err != nil {
		return err
	}
	return h.Ask(w, r, http.StatusOK, h.stockQuestion(r, t, strconv.FormatInt(t.Stock, 10), ""))
}

func (h *handlers) stockQuestion(r *http.Request, t template.Template, typed, broken string) pageparts.Confirmation {
	l := shell.Frame(r).Locale
	points := []string{l.T("confirm.stock.1", t.Stock, t.Issued), l.T("confirm.stock.2")}
	if n := h.waiting(r, t); n > 0 {
		points = append(points, l.N("confirm.stock.waiting", n))
	}
	return pageparts.Confirmation{Active: "templates", Crumbs: shell.TemplateCrumbs(r, t),
		Inside: ui.Field(ui.FieldProps{Name: "stock", Label: l.T("confirm.stock.field"), Value: typed, Error: broken, InputMode: "numeric", Required: true, Autocomplete: "off"}),
		ConfirmProps: ui.ConfirmProps{Title: l.T("confirm.stock.title", t.Name), Points: points,
			Action: shell.TemplateURL(t.ID) + "/stock", Cancel: shell.TemplateURL(t.ID), Submit: l.T("do.stock"), Kind: "primary", NoReason: true,
			Hidden: [][2]string{{"version", fmt.Sprint(t.Version)}}}}
}

// waiting returns how many customers are on the drop's waitlist and have no offer, 0 if that cannot be read.
func (h *handlers) waiting(r *http.Request, t template.Template) int64 {
	if !t.Waits() {
		return 0
	}
	s, err := h.Sales.Of(r.Context(), t)
	if err != nil || s == nil {
		return 0
	}
	return s.Wait.Waiting - s.Wait.Offered
}

func (h *handlers) raiseStock(w http.ResponseWriter, r *http.Request, t template.Template) error {
	typed := r.PostFormValue("stock")
	again := func(status int, text string) error { return h.Ask(w, r, status, h.stockQuestion(r, t, typed, text)) }
	rd := &shell.Reading{Values: map[string]string{"stock": typed}}
	spec := t.Spec
	spec.Stock = rd.Number("stock")
	for _, f := range rd.Broken.List {
		return again(http.StatusUnprocessableEntity, ui.FieldText(r.Context(), f))
	}
	version, _ := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	saved, err := h.Templates.Edit(r.Context(), shell.Actor(r), t.ID, template.Edition{Version: version, Spec: spec})
	switch {
	case errors.Is(err, template.ErrStockBelow), errors.Is(err, fault.ErrStale), errors.Is(err, template.ErrTransition):
		return again(http.StatusConflict, ui.FaultText(r.Context(), err))
	case shell.FieldsOf(err) != nil:
		return again(http.StatusUnprocessableEntity, ui.FieldText(r.Context(), shell.FieldsOf(err)[0]))
	case err != nil:
		return err
	}
	l, waiting := shell.Frame(r).Locale, h.waiting(r, t)
	if n := min(saved.Stock-t.Stock, waiting); n > 0 {
		said := "done.stock_waiting"
		if t.Waitlist == template.OfferNext {
			said = "done.stock_offered"
		}
		return h.Done(w, r, shell.TemplateURL(t.ID), ui.Good, l.T(said, saved.Name, saved.Stock, n, waiting))
	}
	return h.Done(w, r, shell.TemplateURL(t.ID), ui.Good, l.T("done.stock", saved.Name, saved.Stock))
}
