package work

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/event/hook"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	pageparts "dropbell/views/pages/parts"
	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// healthFor is how long ago the chart of an endpoint begins.
const healthFor = 48 * time.Hour

// webhookRoutes are the pages about endpoints of shops' servers.
func (h *handlers) webhookRoutes() []shell.Route {
	return []shell.Route{
		shell.Get("/webhooks", staff.View, h.listWebhooks),
		shell.Get("/webhooks/types", staff.View, h.webhookTypes),
		shell.Sure(shell.Get("/webhooks/new", staff.Operate, h.newWebhook)),
		shell.Sure(shell.Post("/webhooks", staff.Operate, shell.AtShop(h.Shell, h.cells, "shop_number", (*handlers).createWebhook))),
		shell.Get("/webhooks/{id}", staff.View, h.showWebhook),
		shell.Sure(shell.Get("/webhooks/{id}/edit", staff.Operate, h.editWebhook)),
		shell.Sure(shell.Post("/webhooks/{id}", staff.Operate, shell.With(shell.PathID, h.saveWebhook))),
		shell.Post("/webhooks/{id}/test", staff.Operate, shell.With(shell.PathID, h.testWebhook)),
		shell.Get("/webhooks/{id}/replay", staff.Operate, h.askReplay),
		shell.Post("/webhooks/{id}/replay", staff.Operate, shell.With(h.loadWebhook, h.replayWebhook)),
		shell.Sure(shell.Get("/webhooks/{id}/{step:rotate|remove}", staff.Operate, h.confirmWebhook)),
		shell.Sure(shell.Post("/webhooks/{id}/{step:rotate|remove}", staff.Operate, shell.With(shell.PathID, h.stepWebhook))),
		shell.Get("/webhooks/{id}/deliveries/{delivery}", staff.View, shell.With(h.loadWebhook, h.showDelivery)),
		shell.Post("/webhooks/{id}/deliveries/{delivery}/replay", staff.Operate, h.replayDelivery),
	}
}

func webhookPath(id int64) string { return fmt.Sprintf("/webhooks/%d", id) }

func (h *handlers) shopNames(r *http.Request) (map[int64]string, error) {
	shops, err := h.AllShopsOf(r)
	names := map[int64]string{}
	for _, s := range shops {
		names[s.Number] = s.Name
	}
	return names, err
}

func (h *handlers) listWebhooks(w http.ResponseWriter, r *http.Request) error {
	list, err := shell.All(h.Shell, r, h.cells, func(h *handlers, r *http.Request) ([]hook.Endpoint, error) {
		return h.Hooks.Endpoints(r.Context(), shell.Actor(r), 0)
	}, func(a, b hook.Endpoint) int { return cmp.Compare(a.ID, b.ID) }, 0)
	if err != nil {
		return err
	}
	names, err := h.shopNames(r)
	if err != nil {
		return err
	}
	may := shell.Actor(r).Can(staff.Operate, 0) && len(names) > 0
	return h.Show(w, r, http.StatusOK, workpages.Webhooks{List: list, Shops: names, MayAdd: may}.Page())
}

func (h *handlers) webhookTypes(w http.ResponseWriter, r *http.Request) error {
	p := workpages.WebhookTypes{Examples: map[hook.Type]string{}}
	for _, t := range hook.Types() {
		p.Examples[t] = hook.Example(t)
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

func (h *handlers) newWebhook(w http.ResponseWriter, r *http.Request) error {
	return h.webhookForm(w, r, http.StatusOK, workpages.WebhookForm{Values: map[string]string{}, Enabled: true, RequestKey: rand.Text()})
}

func (h *handlers) webhookForm(w http.ResponseWriter, r *http.Request, status int, f workpages.WebhookForm) error {
	if f.ID == 0 {
		shops, err := h.AllShopsOf(r)
		if err != nil {
			return err
		}
		f.Shops = shops
	}
	return h.Show(w, r, status, f.Page())
}

// typedWebhook reads the form.
func typedWebhook(r *http.Request) (workpages.WebhookForm, hook.Input) {
	f := workpages.WebhookForm{Values: map[string]string{}, Enabled: r.PostFormValue("enabled") != "", Rehearsals: r.PostFormValue("rehearsals") != "", RequestKey: r.PostFormValue("request_key")}
	for _, name := range []string{"shop_number", "url", "description"} {
		f.Values[name] = strings.TrimSpace(r.PostFormValue(name))
	}
	for _, t := range r.PostForm["types"] {
		f.Types = append(f.Types, hook.Type(t))
	}
	return f, hook.Input{URL: f.Values["url"], Description: f.Values["description"], Types: f.Types, Enabled: f.Enabled, Rehearsals: f.Rehearsals}
}

func (h *handlers) createWebhook(w http.ResponseWriter, r *http.Request) error {
	f, in := typedWebhook(r)
	shop, _ := strconv.ParseInt(f.Values["shop_number"], 10, 64) // a text that is no number is no shop
	e, secret, err := h.Hooks.Create(r.Context(), shell.Actor(r), shop, in, shell.CreationKey(r))
	if fields := shell.FieldsOf(err); fields != nil {
		f.Errors = fields
		return h.webhookForm(w, r, http.StatusUnprocessableEntity, f)
	}
	if errors.Is(err, hook.ErrRepeated) || errors.Is(err, hook.ErrTooMany) {
		return h.Done(w, r, "/webhooks", ui.Warn, ui.FaultText(r.Context(), err))
	}
	if err != nil {
		return err
	}
	h.SecretFor(w, r, webhookPath(e.ID), "webhook", secret)
	shell.Redirect(w, r, webhookPath(e.ID))
	return nil
}

func (h *handlers) loadWebhook(r *http.Request) (hook.Endpoint, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return hook.Endpoint{}, err
	}
	return h.Hooks.Endpoint(r.Context(), shell.Actor(r), id)
}

func (h *handlers) showWebhook(w http.ResponseWriter, r *http.Request) error {
	e, err := h.loadWebhook(r)
	if err != nil {
		return err
	}
	p := workpages.WebhookPage{Endpoint: e}
	if state := r.FormValue("state"); slices.Contains([]string{"waiting", "delivered", "failed"}, state) {
		p.State = state
	}
	deliveries := shell.List[hook.Delivery, int64]{Keys: shell.IDs(), KeyOf: func(d hook.Delivery) int64 { return d.ID },
		Read: func(before int64, limit int) ([]hook.Delivery, error) {
			return h.Hooks.Deliveries(r.Context(), shell.Actor(r), hook.DeliveryQuery{EndpointID: e.ID, State: p.State, Before: before, Limit: limit})
		}}
	if p.Deliveries, p.Paged, err = deliveries.Page(r); err != nil {
		return err
	}
	if shell.Partial(r) {
		return h.Listed(w, r, p.Results(), p.Page())
	}
	if p.Hours, err = h.Hooks.Hours(r.Context(), shell.Actor(r), e.ID, h.Now().Add(-healthFor)); err != nil {
		return err
	}
	names, err := h.shopNames(r)
	if err != nil {
		return err
	}
	p.Shop = names[e.Shop]
	_, p.Secret = h.SecretOnce(w, r, webhookPath(e.ID))
	return h.Show(w, r, http.StatusOK, p.Page())
}

func (h *handlers) editWebhook(w http.ResponseWriter, r *http.Request) error {
	e, err := h.loadWebhook(r)
	if err == nil {
		err = shell.Actor(r).May(staff.Operate, e.Shop)
	}
	if err != nil {
		return err
	}
	return h.webhookForm(w, r, http.StatusOK, workpages.WebhookForm{ID: e.ID, Version: e.Version, Types: e.Types, Enabled: e.Enabled, Rehearsals: e.Rehearsals,
		Values: map[string]string{"url": e.URL, "description": e.Description}})
}

func (h *handlers) saveWebhook(w http.ResponseWriter, r *http.Request, id int64) error {
	f, in := typedWebhook(r)
	f.ID, f.Version = id, shell.ShownVersion(r)
	_, err := h.Hooks.Change(r.Context(), shell.Actor(r), id, f.Version, in)
	if fields := shell.FieldsOf(err); fields != nil {
		f.Errors = fields
		return h.webhookForm(w, r, http.StatusUnprocessableEntity, f)
	}
	if errors.Is(err, fault.ErrStale) {
		return h.Done(w, r, webhookPath(id), ui.Warn, ui.FaultText(r.Context(), err))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, webhookPath(id), ui.Good, shell.Say(r, "hooks.saved"))
}

// settled answers a step on an endpoint that was done, or that its state forbids.
func (h *handlers) settled(w http.ResponseWriter, r *http.Request, to string, err error, text string) error {
	if errors.Is(err, hook.ErrDisabled) {
		return h.Done(w, r, to, ui.Warn, ui.FaultText(r.Context(), err))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, to, ui.Good, text)
}

func (h *handlers) testWebhook(w http.ResponseWriter, r *http.Request, id int64) error {
	_, err := h.Hooks.Test(r.Context(), shell.Actor(r), id)
	return h.settled(w, r, webhookPath(id), err, shell.Say(r, "hooks.test_sent"))
}

func (h *handlers) askReplay(w http.ResponseWriter, r *http.Request) error {
	e, err := h.loadWebhook(r)
	if err == nil {
		err = shell.Actor(r).May(staff.Operate, e.Shop)
	}
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, workpages.WebhookPage{Endpoint: e, Since: "1"}.Replay())
}

// maxReplayHours is ninety days, the longest that events are kept.
const maxReplayHours = 90 * 24

func (h *handlers) replayWebhook(w http.ResponseWriter, r *http.Request, e hook.Endpoint) error {
	typed := strings.TrimSpace(r.PostFormValue("hours"))
	hours, err := strconv.Atoi(shell.Narrow(typed))
	if err != nil || hours < 1 || hours > maxReplayHours {
		p := workpages.WebhookPage{Endpoint: e, Since: typed}
		p.Errors = []fault.Field{{Name: "hours", Key: "rule.hook_hours", Message: "must be a number of hours between 1 and 2160"}}
		return h.Show(w, r, http.StatusUnprocessableEntity, p.Replay())
	}
	n, err := h.Hooks.ReplaySince(r.Context(), shell.Actor(r), e.ID, h.Now().Add(-time.Duration(hours)*time.Hour))
	return h.settled(w, r, webhookPath(e.ID), err, shell.Frame(r).Locale.N("hooks.replayed", n))
}

func (h *handlers) confirmWebhook(w http.ResponseWriter, r *http.Request) error {
	e, err := h.loadWebhook(r)
	if err == nil {
		err = shell.Actor(r).May(staff.Operate, e.Shop)
	}
	if err != nil {
		return err
	}
	step, kind := chi.URLParam(r, "step"), "primary"
	if step == "remove" {
		kind = "danger"
	}
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "webhooks", Crumbs: []ui.Crumb{{Label: shell.Say(r, "nav.webhooks"), URL: "/webhooks"}},
		ConfirmProps: ui.ConfirmProps{Title: shell.Say(r, "hooks."+step+".title"), Points: []string{e.URL, shell.Say(r, "hooks."+step+".1")}, NoReason: true,
			Hidden: [][2]string{{"version", strconv.FormatInt(e.Version, 10)}},
			Action: webhookPath(e.ID) + "/" + step, Cancel: webhookPath(e.ID), Submit: shell.Say(r, "hooks."+step), Kind: kind}})
}

func (h *handlers) stepWebhook(w http.ResponseWriter, r *http.Request, id int64) error {
	if chi.URLParam(r, "step") == "remove" {
		if err := h.Hooks.Remove(r.Context(), shell.Actor(r), id); err != nil {
			return err
		}
		return h.Done(w, r, "/webhooks", ui.Good, shell.Say(r, "hooks.removed"))
	}
	_, secret, err := h.Hooks.Rotate(r.Context(), shell.Actor(r), id, shell.ShownVersion(r))
	if errors.Is(err, fault.ErrStale) {
		return h.Done(w, r, webhookPath(id), ui.Warn, ui.FaultText(r.Context(), err))
	}
	if err != nil {
		return err
	}
	h.SecretFor(w, r, webhookPath(id), "webhook", secret)
	shell.Redirect(w, r, webhookPath(id))
	return nil
}

// deliveryOf returns the delivery in the address.
func deliveryOf(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(chi.URLParam(r, "delivery"), 10, 64)
	if err != nil || id <= 0 {
		return 0, shell.ErrNoPage
	}
	return id, nil
}

func (h *handlers) showDelivery(w http.ResponseWriter, r *http.Request, e hook.Endpoint) error {
	id, err := deliveryOf(r)
	if err != nil {
		return err
	}
	d, err := h.Hooks.Delivery(r.Context(), shell.Actor(r), e.ID, id)
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, workpages.WebhookDelivery{Endpoint: e, Details: d}.Page())
}

func (h *handlers) replayDelivery(w http.ResponseWriter, r *http.Request) error {
	endpoint, err1 := shell.PathID(r)
	id, err2 := deliveryOf(r)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	err := h.Hooks.Replay(r.Context(), shell.Actor(r), endpoint, id)
	return h.settled(w, r, webhookPath(endpoint), err, shell.Say(r, "hooks.replayed_one"))
}
