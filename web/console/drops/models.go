package drops

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/shell"
)

// A model is a set of values for the form of a new drop.
type model struct {
	// key names the model in addresses and catalogues.
	key    string
	values map[string]string
	// weekday is whether a day of the week suits; nil = every day.
	weekday func(time.Weekday) bool
	// hour and minute are the opening time in the shop's zone; lasts is how long the drop stays
	// open.
	hour, minute int
	lasts        time.Duration
}

// models are offered to all members, whatever their shops did before.
func models() []model {
	workday := func(d time.Weekday) bool { return d != time.Saturday && d != time.Sunday }
	saturday := func(d time.Weekday) bool { return d == time.Saturday }
	return []model{
		{"lunch", map[string]string{"kind": "threshold_off", "amount_off": "15", "threshold": "60", "stock": "1000", "valid_hours": "24", "notify_days": ""}, workday, 11, 30, 2 * time.Hour},
		{"weekend", map[string]string{"kind": "percent_off", "percent_off": "20", "max_off": "50", "stock": "5000", "valid_hours": "48", "notify_days": "1"}, saturday, 10, 0, 36 * time.Hour},
		{"evening", map[string]string{"kind": "amount_off", "amount_off": "10", "stock": "500", "valid_hours": "72", "notify_days": "1"}, nil, eveningHour, 0, time.Hour},
		{"premiere", map[string]string{"kind": "percent_off", "percent_off": "30", "max_off": "100", "stock": "2000", "valid_hours": "168", "target": "product", "notify_days": "3, 1"}, nil, 12, 0, 12 * time.Hour},
	}
}

const (
	// eveningHour is the hour at which a drop opens by default.
	eveningHour = 20
	// nearby is how close openings are to compete for the same minutes.
	nearby = time.Hour
	// daysAhead is how far ahead a free day is looked for.
	daysAhead = 28
	// maxTaken bounds the drops among which a free day is looked for.
	maxTaken = 1000
	// recentModels is how many drops the gallery offers as models.
	recentModels = 6
)

// showModels shows the gallery of models for a new drop.
func (h *handlers) showModels(w http.ResponseWriter, r *http.Request) error {
	return h.drawModels(w, r, http.StatusOK, droppages.Models{})
}

// drawModels fills the gallery and shows it.
func (h *handlers) drawModels(w http.ResponseWriter, r *http.Request, status int, p droppages.Models) error {
	shops, err := h.AllShopsOf(r)
	if err != nil {
		return err
	}
	p.NoShop = len(shops) == 0
	for _, m := range models() {
		values := h.startOf(r, m, shops, "CNY")
		p.List = append(p.List, droppages.Model{Key: m.key, Preview: h.preview(r, values, shops).Template})
	}
	if p.Saved, err = h.savedModels(r); err != nil {
		return err
	}
	p.Drops, err = h.templates(r, shell.Actor(r), template.Query{Descending: true, Limit: recentModels})
	if err != nil {
		return err
	}
	return h.Show(w, r, status, p.Page())
}

// startOf are the values of a form that begins with a model.
func (h *handlers) startOf(r *http.Request, m model, shops []template.Shop, currency string) map[string]string {
	v := blankValues(shops)
	maps.Copy(v, m.values)
	v["currency"], v["name"] = currency, shell.Say(r, "model."+m.key)
	if m.values["target"] == "product" {
		v["product"] = shell.Say(r, "model."+m.key+".product")
	}
	return v
}

// newValues returns the initial values of the form for a new drop: the values of a model or of
// another drop, otherwise only the times. whole reports whether they are a complete drop.
func (h *handlers) newValues(r *http.Request, shops []template.Shop) (values map[string]string, whole bool, err error) {
	hour, minute, lasts, weekday := eveningHour, 0, 4*time.Hour, everyDay
	values = blankValues(shops)
	if len(shops) == 0 {
		return values, false, nil
	}
	latest, err := h.templates(r, shell.Actor(r), template.Query{Shops: []int64{shops[0].Number}, Descending: true, Limit: 1})
	if err != nil {
		return nil, false, err
	}
	if len(latest) > 0 {
		values["currency"] = latest[0].Currency
	}
	if id, bad := strconv.ParseInt(r.FormValue("saved"), 10, 64); bad == nil {
		return h.savedValues(r, id)
	}
	zone := h.ShopZone(shops[0].Timezone)
	if from, bad := strconv.ParseInt(r.FormValue("from"), 10, 64); bad == nil {
		t, _, err := h.template(r, from)
		if err != nil {
			return nil, false, err
		}
		values, whole, zone = valuesOf(t), t.ValidUntil == nil, t.Zone()
		values["valid_until"], values["valid_until_fold"] = "", "" // it belongs to the old opening
		opened := t.OpensAt.In(zone)
		hour, minute, lasts = opened.Hour(), opened.Minute(), t.ClosesAt.Sub(t.OpensAt)
	} else if i := slices.IndexFunc(models(), func(m model) bool { return m.key == r.FormValue("model") }); i >= 0 {
		m := models()[i]
		values, whole = h.startOf(r, m, shops, values["currency"]), true
		hour, minute, lasts = m.hour, m.minute, m.lasts
		if m.weekday != nil {
			weekday = m.weekday
		}
	}
	at, err := h.freeDay(r, zone, hour, minute, weekday)
	if err != nil || at.IsZero() {
		return values, false, err
	}
	values["opens_at"], values["opens_at_fold"] = shell.TypedTime(at, zone)
	values["closes_at"], values["closes_at_fold"] = shell.TypedTime(at.Add(lasts), zone)
	return values, whole, nil
}

// freeDay returns the first day from tomorrow that suits accepts and on which no drop opens near
// that time of day; the zero time if no day is free.
func (h *handlers) freeDay(r *http.Request, zone *time.Location, hour, minute int, suits func(time.Weekday) bool) (time.Time, error) {
	now := h.Now().In(zone)
	from, to := now, now.AddDate(0, 0, daysAhead+1)
	taken, err := h.templates(r, staff.System(), template.Query{From: &from, To: &to, Limit: maxTaken,
		States: []template.State{template.Draft, template.Scheduled, template.Paused}})
	if err != nil {
		return time.Time{}, err
	}
	for day := 1; day <= daysAhead; day++ {
		at := time.Date(now.Year(), now.Month(), now.Day()+day, hour, minute, 0, 0, zone)
		if suits(at.Weekday()) && !slices.ContainsFunc(taken, func(t template.Template) bool { return t.OpensAt.Sub(at).Abs() < nearby }) {
			return at, nil
		}
	}
	return time.Time{}, nil
}

// clashes returns the published drops that open near an instant: their reminders are due in the
// same minutes and share the channels.
func (h *handlers) clashes(r *http.Request, at time.Time, except int64) (list []droppages.Clash, err error) {
	if at.IsZero() || !at.After(h.Now()) {
		return nil, nil
	}
	from, to := at.Add(-nearby), at.Add(nearby)
	const most = 10
	return shell.All(h.Shell, r, h.cells, func(h *handlers, r *http.Request) (list []droppages.Clash, _ error) {
		near, err := h.Templates.Templates(r.Context(), staff.System(), template.Query{From: &from, To: &to, Limit: most,
			States: []template.State{template.Scheduled, template.Paused}})
		for _, t := range near {
			if t.ID == except {
				continue
			}
			c := droppages.Clash{Template: t}
			c.Foreign = !shell.Actor(r).Can(staff.View, t.ShopNumber)
			board, err := h.Board.Board(r.Context(), t.ID)
			if err != nil {
				return nil, err
			}
			c.Booked = droppages.Drop{Template: t, Board: board}.Booked()
			list = append(list, c)
		}
		return list, err
	}, func(a, b droppages.Clash) int { return byOpening(false)(a.Template, b.Template) }, most)
}

// everyDay suits a drop that opens on any day of the week.
func everyDay(time.Weekday) bool { return true }
