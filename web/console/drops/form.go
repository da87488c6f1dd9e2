package drops

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) newTemplate(w http.ResponseWriter, r *http.Request) error {
	shops, err := h.AllShopsOf(r)
	if err != nil {
		return err
	}
	f := droppages.TemplateForm{Shops: shops, RequestKey: rand.Text()}
	if f.Values, f.Whole, err = h.newValues(r, shops); err != nil {
		return err
	}
	of, err := h.at(f.Values)
	if err != nil {
		return err
	}
	return of.showForm(w, r, http.StatusOK, f)
}

func (h *handlers) createTemplate(w http.ResponseWriter, r *http.Request) error {
	shops, err := h.AllShopsOf(r)
	if err != nil {
		return err
	}
	f := droppages.TemplateForm{Values: typedValues(r), Shops: shops, RequestKey: r.PostFormValue("request_key")}
	spec, broken := readSpec(f.Values, shops, h.DefaultZone)
	broken = h.openingAhead(spec, broken)
	if broken = append(broken, h.Step.Check(r, h.typedDrop(f.Values, shops))...); len(broken) > 0 {
		f.Errors = broken
		return h.showForm(w, r, http.StatusUnprocessableEntity, f)
	}
	t, err := h.Templates.Create(r.Context(), shell.Actor(r), spec, shell.CreationKey(r))
	if fields := shell.FieldsOf(err); fields != nil {
		f.Errors = fields
		return h.showForm(w, r, http.StatusUnprocessableEntity, f)
	}
	if err != nil {
		return err
	}
	return h.stored(w, r, t, "create")
}

// openingAhead adds the refusal of a new drop's opening in the past to broken, beside the other errors.
func (h *handlers) openingAhead(spec template.Spec, broken []fault.Field) []fault.Field {
	if spec.OpensAt.IsZero() || slices.ContainsFunc(broken, func(b fault.Field) bool { return b.Name == "opens_at" }) {
		return broken
	}
	return append(broken, shell.FieldsOf(spec.CheckDraftOpening(h.Now()))...)
}

// stored redirects to the drop after its form was saved, and publishes the drop if the form asks
// for that. If no member has looked at the messages, it redirects to the confirmation, which asks
// about them. A drop that may not be published stays a draft.
func (h *handlers) stored(w http.ResponseWriter, r *http.Request, t template.Template, what string) error {
	url := shell.TemplateURL(t.ID)
	// If this fails, sending the form again finds the drop stored and goes on here.
	if err := h.Step.Save(r, t); err != nil {
		return err
	}
	if r.PostFormValue("publish") == "" {
		return h.Done(w, r, url, ui.Good, shell.Say(r, "done."+what, t.Name))
	}
	looked, err := h.Texts.Looked(r.Context(), t.ID)
	if err != nil {
		return err
	}
	if !looked { // the confirmation asks whether to publish messages unseen
		return h.Done(w, r, url+"/"+string(template.Publishing), ui.Good, shell.Say(r, "done."+what, t.Name))
	}
	published, outcome, err := h.Templates.Take(r.Context(), shell.Actor(r), t.ID, template.Wish{Step: template.Publishing, Version: t.Version})
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.Invalid {
		return h.Done(w, r, url, ui.Warn, shell.Say(r, "done.not_published", t.Name, ui.FaultText(r.Context(), err)))
	}
	if err != nil {
		return err
	}
	if outcome == template.Changed {
		return h.Done(w, r, url, ui.Warn, shell.Say(r, "done.not_published", t.Name, ui.FaultText(r.Context(), fault.ErrStale)))
	}
	return h.Done(w, r, url, ui.Good, shell.Say(r, "done.publish", published.Name))
}

func (h *handlers) editTemplate(w http.ResponseWriter, r *http.Request, t template.Template) error {
	if err := h.editable(t); err != nil {
		return err
	}
	shops, err := h.ShopsOf(r)
	if err != nil {
		return err
	}
	f := h.formOf(t, shops)
	f.Values = valuesOf(t)
	if err := h.seriesOf(r, t, &f); err != nil {
		return err
	}
	return h.showForm(w, r, http.StatusOK, f)
}

// editable refuses forms that could never be saved.
func (h *handlers) editable(t template.Template) error {
	if s := t.State(h.Now()); s == template.Closed || s == template.Cancelled {
		return template.ErrTransition.Told("fault.template_is." + string(s))
	}
	return nil
}

func (h *handlers) formOf(t template.Template, shops []template.Shop) droppages.TemplateForm {
	return droppages.TemplateForm{ID: t.ID, Version: t.Version, Shops: shops, Published: t.Stored != template.Draft,
		Opened: t.Stored != template.Draft && !h.Now().Before(t.OpensAt)}
}

func (h *handlers) saveTemplate(w http.ResponseWriter, r *http.Request, t template.Template) error {
	shops, err := h.ShopsOf(r)
	if err != nil {
		return err
	}
	f := h.formOf(t, shops)
	f.Values = typedValues(r)
	if err := h.seriesOf(r, t, &f); err != nil {
		return err
	}
	if r.PostFormValue("again") != "" {
		return h.showForm(w, r, http.StatusOK, f)
	}
	version, _ := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	if version != t.Version {
		return h.showConflict(w, r, t, f)
	}
	spec, broken := readSpec(f.Values, shops, h.DefaultZone)
	if broken = append(broken, h.Step.Check(r, h.typedDrop(f.Values, shops))...); len(broken) > 0 {
		f.Errors = broken
		return h.showForm(w, r, http.StatusUnprocessableEntity, f)
	}
	save := h.Templates.Edit
	if f.Series != "" && f.Scope == "all" {
		save = h.Series.EditAll
	}
	saved, err := save(r.Context(), shell.Actor(r), t.ID, template.Edition{Version: version, Spec: spec})
	switch {
	case errors.Is(err, fault.ErrStale):
		if t, err = shell.OwnTemplate(h.Templates)(r); err != nil {
			return err
		}
		return h.showConflict(w, r, t, f)
	case errors.Is(err, template.ErrStockBelow):
		f.Errors = []fault.Field{{Name: "stock", Key: "fault.stock_below_issued", Message: err.Error()}}
		return h.showForm(w, r, http.StatusConflict, f)
	case shell.FieldsOf(err) != nil:
		f.Errors = shell.FieldsOf(err)
		return h.showForm(w, r, http.StatusUnprocessableEntity, f)
	case err != nil:
		return err
	}
	return h.stored(w, r, saved, "edit")
}

func (h *handlers) showForm(w http.ResponseWriter, r *http.Request, status int, f droppages.TemplateForm) error {
	f.Title = shell.Say(r, "form.new")
	if f.ID != 0 {
		f.Title = shell.Say(r, "form.edit", f.Values["name"])
	}
	f.Preview, f.Channels = h.preview(r, f.Values, f.Shops), h.Channels.Set()
	var err error
	if f.Demand, err = h.demand(r, f.Values); err != nil {
		return err
	}
	step, err := h.Step.Of(r, f.Drop())
	if err != nil {
		return err
	}
	step.Try, step.Errors = f.Message.Try, f.Errors
	f.Message = step
	if f.Preview.Clashes, err = h.clashes(r, f.Preview.Template.OpensAt, f.ID); err != nil {
		return err
	}
	shell.InOrder(f.Errors, templateFields())
	return h.Show(w, r, status, f.Page())
}

// showConflict shows both versions side by side.
func (h *handlers) showConflict(w http.ResponseWriter, r *http.Request, t template.Template, mine droppages.TemplateForm) error {
	who, err := shell.LastChangedBy(r, h.Audit, "template", t.ID)
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusConflict, pageparts.Conflict{Mine: mine, Theirs: valuesOf(t), Version: t.Version, Who: who}.Page())
}

// ofForm serves a part of the form of a drop. A drop that is stored stays in its database, to which the
// front brings the form: the shops that it may have are those of that database. A new drop is served with
// the handlers of its shop's database, and may have any shop.
func (h *handlers) ofForm(serve func(*handlers, http.ResponseWriter, *http.Request, []template.Shop) error) shell.Handler {
	ofNew := shell.AtShop(h.Shell, h.cells, "shop_number", func(h *handlers, w http.ResponseWriter, r *http.Request) error {
		shops, err := h.AllShopsOf(r)
		if err != nil {
			return err
		}
		return serve(h, w, r, shops)
	})
	return func(w http.ResponseWriter, r *http.Request) error {
		if storedID(r) == 0 {
			return ofNew(w, r)
		}
		shops, err := h.ShopsOf(r)
		if err != nil {
			return err
		}
		return serve(h, w, r, shops)
	}
}

// storedID is the drop that the form changes; 0 = the form makes a drop.
func storedID(r *http.Request) int64 {
	id, _ := strconv.ParseInt(r.PostFormValue("drop"), 10, 64) // nonsense is none
	return id
}

// previewTemplate answers the form as typed so far: a preview of the coupon, and the errors that
// saving would show.
func (h *handlers) previewTemplate(w http.ResponseWriter, r *http.Request, shops []template.Shop) (err error) {
	f := droppages.TemplateForm{Values: typedValues(r), Shops: shops}
	spec, broken := readSpec(f.Values, shops, h.DefaultZone)
	f.Errors, f.Preview = append(broken, h.Step.Check(r, h.typedDrop(f.Values, shops))...), h.preview(r, f.Values, shops)
	if formID(r) == 0 {
		f.Errors = h.openingAhead(spec, f.Errors)
	}
	if f.Preview.Clashes, err = h.clashes(r, spec.OpensAt, formID(r)); err != nil {
		return err
	}
	if f.Blast, err = h.blastOfForm(r, spec.OpensAt); err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, f.Checked())
}

// messageStep answers the messages of the drop as typed so far, and sends a test to the member if a
// button asks for it. Without scripts it shows the whole form again, as typed.
func (h *handlers) messageStep(w http.ResponseWriter, r *http.Request, shops []template.Shop) error {
	f := droppages.TemplateForm{Values: typedValues(r), Shops: shops, RequestKey: r.PostFormValue("request_key")}
	if t, err := shell.VisibleTemplate(r, h.Templates, storedID(r)); err != nil {
		return err
	} else if t != nil && shell.Actor(r).Can(staff.ManageTemplates, t.ShopNumber) {
		f = h.formOf(*t, shops)
		f.Values = typedValues(r)
		if err := h.seriesOf(r, *t, &f); err != nil {
			return err
		}
		f.Version, _ = strconv.ParseInt(r.PostFormValue("version"), 10, 64) // that of the form, which saving compares
	}
	f.Preview = h.preview(r, f.Values, shops)
	p, err := h.Step.Of(r, f.Drop())
	if err != nil {
		return err
	}
	f.Errors = h.Step.Check(r, h.typedDrop(f.Values, shops))
	if _, broken := readSpec(f.Values, shops, h.DefaultZone); f.ID != 0 {
		for _, b := range broken {
			if b.Name == "shop_number" { // of another database
				f.Errors = append(f.Errors, b)
			}
		}
	}
	if r.PostFormValue("over") != "" && len(f.Errors) == 0 {
		if err := h.Step.Send(r, f.Drop(), r.PostFormValue("over"), &p); err != nil {
			return err
		}
	}
	if shell.Partial(r) {
		return h.Show(w, r, http.StatusOK, p.Side())
	}
	f.Message = p
	return h.showForm(w, r, http.StatusOK, f)
}

// formID is the published drop that the form is about; 0 = none.
func formID(r *http.Request) int64 {
	id, _ := strconv.ParseInt(r.PostFormValue("template"), 10, 64) // nonsense is none
	return id
}

// blastOfForm computes the effect on the reminders of a published template if the form is saved
// with another opening.
func (h *handlers) blastOfForm(r *http.Request, opensAt time.Time) (b droppages.Blast, err error) {
	id := formID(r)
	t, err := shell.VisibleTemplate(r, h.Templates, id)
	if t == nil || t.Stored == template.Draft || opensAt.IsZero() || opensAt.Equal(t.OpensAt) || !h.Now().Before(t.OpensAt) {
		return b, err
	}
	board, err := h.Board.Board(r.Context(), id)
	return h.blast(*t, board, opensAt.UTC()), err
}

// typedDrop returns the drop as typed so far.
func (h *handlers) typedDrop(values map[string]string, shops []template.Shop) template.Template {
	spec, _ := readSpec(values, shops, h.DefaultZone)
	t := template.Template{Spec: spec}
	if i := slices.IndexFunc(shops, func(s template.Shop) bool { return s.Number == spec.ShopNumber }); i >= 0 {
		t.ShopName, t.ShopTimezone, t.ShopClaimURL = shops[i].Name, shops[i].Timezone, shops[i].ClaimURL
	}
	return t
}

// preview returns the preview of all values that can be read so far.
func (h *handlers) preview(r *http.Request, values map[string]string, shops []template.Shop) droppages.CouponPreview {
	t := h.typedDrop(values, shops)
	spec := t.Spec
	p := droppages.CouponPreview{Template: t}
	l, now := shell.Frame(r).Locale, h.Now()
	hint := func(label, text string) {
		p.Times = append(p.Times, droppages.TimeHint{Label: shell.Say(r, label), Text: text})
	}
	when := func(at time.Time) string {
		return l.T("time.is", l.DateTime(at, t.Zone())+" "+l.Zone(at, t.Zone()), l.Ago(at, now))
	}
	if !spec.OpensAt.IsZero() {
		hint("field.opens_at", when(spec.OpensAt))
		hint("time.reminders", h.reminderHint(r, t))
	}
	if !spec.ClosesAt.IsZero() {
		hint("field.closes_at", when(spec.ClosesAt))
	}
	return p
}

// reminderHint says when the first reminder is sent.
func (h *handlers) reminderHint(r *http.Request, t template.Template) string {
	l := shell.Frame(r).Locale
	first := l.DateTime(template.Slot(template.Slots).DueAt(t.OpensAt), t.Zone())
	if missed := h.missed(t.OpensAt); missed > 0 {
		return l.T("time.reminders_missed", first, missed)
	}
	return l.T("time.reminders_from", first)
}

// missed counts the slots of an opening that lie in the past.
func (h *handlers) missed(opensAt time.Time) (n int) {
	for _, s := range template.AllSlots() {
		if !s.DueAt(opensAt).After(h.Now()) {
			n++
		}
	}
	return n
}
