package work

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// alertLog is how many deliveries the settings show.
const alertLog = 30

func (h *handlers) listAlerts(w http.ResponseWriter, r *http.Request) error {
	var p workpages.Alerts
	if err := h.UseShopsZone(r, 0); err != nil {
		return err
	}
	found, paged, err := shell.Joined(h.Shell, r, h.cells, func(h *handlers, r *http.Request) shell.List[alert.Alert, int64] {
		return shell.List[alert.Alert, int64]{Keys: shell.IDs(), Read: func(before int64, limit int) ([]alert.Alert, error) {
			return h.Alerts.Look(r.Context(), shell.Frame(r).Member, before, limit)
		}, KeyOf: func(a alert.Alert) int64 { return a.ID }}
	}, func(a, b alert.Alert) int { return cmp.Or(b.RaisedAt.Compare(a.RaisedAt), cmp.Compare(b.ID, a.ID)) }).Page(r)
	if err != nil {
		return err
	}
	for _, f := range found {
		f.Row.Path = h.InCell(r, f.Cell, f.Row.Path)
		p.List = append(p.List, f.Row)
	}
	p.Next = paged.Next
	return h.Show(w, r, http.StatusOK, p.Page())
}

// alertSettings returns the page with the form's initial values.
func (h *handlers) alertSettings(r *http.Request) (p workpages.AlertSettings, err error) {
	actor := shell.Actor(r)
	if err := h.UseShopsZone(r, 0); err != nil {
		return p, err
	}
	muted, err := h.Alerts.Muted(r.Context(), shell.Frame(r).Member)
	if err != nil {
		return p, err
	}
	p.Wanted = slices.DeleteFunc(alert.Kinds(), func(k alert.Kind) bool { return slices.Contains(muted, k) })
	type part struct {
		groups []alert.Destination
		log    []alert.Delivery
	}
	got, err := shell.Across(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (v part, err error) {
		v.groups, v.log, err = h.Alerts.Destinations(r.Context(), actor, alertLog)
		return v, err
	})
	if err != nil {
		return p, err
	}
	// Groups are rows of home, and each database notes what its workers told them.
	p.Destinations = got[0].groups
	for _, v := range got {
		if v != nil {
			p.Log = append(p.Log, v.log...)
		}
	}
	slices.SortStableFunc(p.Log, func(a, b alert.Delivery) int { return b.CreatedAt.Compare(a.CreatedAt) })
	p.Log = p.Log[:min(alertLog, len(p.Log))]
	if h.Browsers.PublicKey != "" {
		p.Browsers = workpages.Browsers{PublicKey: h.Browsers.PublicKey, Worker: pushWorkerPath}
		if p.Browsers.List, err = h.Browsers.Of(r.Context(), shell.Frame(r).Member); err != nil {
			return p, err
		}
	}
	shops, err := h.AllShopsOf(r)
	if err != nil {
		return p, err
	}
	p.Names = map[int64]string{}
	if actor.MayEverywhere(staff.ManageTemplates) == nil {
		p.Shops = append(p.Shops, ui.Option{Value: "0", Label: shell.Say(r, "alerts.all_shops")})
	}
	for _, s := range shops {
		if p.Names[s.Number] = s.Name; actor.Can(staff.ManageTemplates, s.Number) {
			p.Shops = append(p.Shops, ui.Option{Value: strconv.FormatInt(s.Number, 10), Label: s.Name})
		}
	}
	p.MayChange = func(d alert.Destination) bool {
		if d.Shop == 0 {
			return actor.MayEverywhere(staff.ManageTemplates) == nil
		}
		return actor.Can(staff.ManageTemplates, d.Shop)
	}
	p.Values = map[string]string{"form": string(alert.Feishu), "language": shell.Frame(r).Locale.Tag}
	for _, k := range alert.Kinds() {
		p.Kinds = append(p.Kinds, string(k))
	}
	return p, nil
}

func (h *handlers) showAlertSettings(w http.ResponseWriter, r *http.Request, p workpages.AlertSettings) error {
	return h.drawAlertSettings(w, r, http.StatusOK, p)
}

// drawAlertSettings shows the page, which may register the service worker.
func (h *handlers) drawAlertSettings(w http.ResponseWriter, r *http.Request, status int, p workpages.AlertSettings) error {
	w.Header().Set("Content-Security-Policy", ui.WorkerPolicy(shell.Frame(r).Nonce))
	return h.Show(w, r, status, p.Page())
}

func kindsOf(names []string) (list []alert.Kind) {
	for _, name := range names {
		list = append(list, alert.Kind(name))
	}
	return list
}

func (h *handlers) chooseAlerts(w http.ResponseWriter, r *http.Request) error {
	_, err := shell.AcrossAll(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (struct{}, error) {
		return struct{}{}, h.Alerts.Choose(r.Context(), shell.Frame(r).Member, kindsOf(r.PostForm["kind"]))
	})
	if err != nil {
		return err
	}
	return h.Done(w, r, "/alerts/settings", ui.Good, shell.Say(r, "alerts.saved"))
}

func (h *handlers) addDestination(w http.ResponseWriter, r *http.Request) error {
	shop, err := strconv.ParseInt(r.PostFormValue("shop"), 10, 64)
	if err != nil || shop < 0 {
		return shell.ErrMalformed
	}
	d := alert.Destination{Shop: shop, Form: alert.Form(r.PostFormValue("form")), Name: r.PostFormValue("name"), URL: r.PostFormValue("url"), Secret: r.PostFormValue("secret"),
		Language: r.PostFormValue("language"), Kinds: kindsOf(r.PostForm["kinds"])}
	_, err = h.Alerts.Add(r.Context(), shell.Actor(r), d)
	broken := shell.FieldsOf(err)
	if err != nil && broken == nil && fault.KindOf(err) != fault.Conflict {
		return err
	}
	if err == nil {
		return h.Done(w, r, "/alerts/settings", ui.Good, shell.Say(r, "alerts.added", d.Name))
	}
	p, cause := h.alertSettings(r)
	if cause != nil {
		return cause
	}
	p.Values, p.Kinds = map[string]string{}, r.PostForm["kinds"]
	for _, name := range []string{"name", "form", "url", "shop", "language"} { // the secret is not shown again
		p.Values[name] = r.PostFormValue(name)
	}
	if p.Errors = broken; broken == nil {
		p.Errors = []fault.Field{{Name: "shop", Key: "fault.too_many_destinations", Message: err.Error()}}
	}
	return h.drawAlertSettings(w, r, http.StatusUnprocessableEntity, p)
}

func (h *handlers) tryDestination(w http.ResponseWriter, r *http.Request, id int64) error {
	d, err := h.Alerts.Try(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	return h.Done(w, r, "/alerts/settings", ui.Good, shell.Say(r, "alerts.tried", d.Name))
}

func (h *handlers) removeDestination(w http.ResponseWriter, r *http.Request, id int64) error {
	if err := h.Alerts.Remove(r.Context(), shell.Actor(r), id); err != nil {
		return err
	}
	return h.Done(w, r, "/alerts/settings", ui.Good, shell.Say(r, "alerts.removed"))
}
