package delivery

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/fault"
	"dropbell/domain/testmessage"
	deliverypages "dropbell/views/pages/delivery"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// Providers are the providers that staff configure.
type Providers struct {
	*provider.Service
	// Trials try the settings of a form.
	Trials *testmessage.Trials
	// Circuits returns the circuit breakers of the providers, by id.
	Circuits func(ctx context.Context, list []provider.Provider) (map[int64]delivery.Circuit, error)
	// ReportsURL is where a provider is to send its reports; empty = nowhere.
	ReportsURL func(p provider.Provider) string
}

func (h *handlers) listProviders(w http.ResponseWriter, r *http.Request) error {
	p := deliverypages.Providers{Environment: h.Channels.Set(), Keyed: h.Providers.Keyed, Health: map[int64]provider.Health{}, Sealed: map[int64]bool{}, Shops: map[int64]string{}}
	var err error
	if p.List, err = h.Providers.List(r.Context(), shell.Actor(r)); err != nil {
		return err
	}
	for _, c := range provider.Channels() {
		health, err := h.Providers.Health(r.Context(), shell.Actor(r), c)
		if err != nil {
			return err
		}
		for id, one := range health {
			p.Health[id] = one
		}
	}
	for _, one := range p.List {
		p.Sealed[one.ID] = !h.Providers.Readable(one)
	}
	if p.Circuits, err = h.Providers.Circuits(r.Context(), p.List); err != nil {
		p.Circuits = nil // Redis is away; the channels' page says so
	}
	shops, err := h.ShopsOf(r)
	if err != nil {
		return err
	}
	for _, s := range shops {
		p.Shops[s.Number] = s.Name
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

func (h *handlers) newProvider(w http.ResponseWriter, r *http.Request) error {
	kind := provider.Kind(r.FormValue("kind"))
	if _, ok := kind.Channel(); !ok {
		return h.Show(w, r, http.StatusOK, deliverypages.ProviderKinds{}.Page())
	}
	return h.providerForm(w, r, http.StatusOK, deliverypages.ProviderForm{Kind: kind, Recipient: ownAddress(r, kind), Values: map[string]string{"order": "0", "weight": "1"}, Enabled: true, RequestKey: rand.Text()})
}

func (h *handlers) providerForm(w http.ResponseWriter, r *http.Request, status int, f deliverypages.ProviderForm) error {
	if f.ID == 0 {
		shops, err := h.ShopsOf(r)
		if err != nil {
			return err
		}
		f.Shops = shops
	}
	return h.Show(w, r, status, f.Page())
}

// typedProvider reads the form of a provider of a kind. A text that is no number becomes a number
// out of bounds.
func typedProvider(r *http.Request, kind provider.Kind) (deliverypages.ProviderForm, provider.Input) {
	f := deliverypages.ProviderForm{Kind: kind, Values: map[string]string{}, Enabled: r.PostFormValue("enabled") != "", Recipient: r.PostFormValue("recipient"), RequestKey: r.PostFormValue("request_key")}
	in := provider.Input{Kind: kind, Spec: provider.Spec{Enabled: f.Enabled, Settings: map[string]string{}}, Secrets: map[string]string{}}
	for _, name := range []string{"name", "order", "weight", "countries", "shop_number"} {
		f.Values[name] = strings.TrimSpace(r.PostFormValue(name))
	}
	number := func(name string) int {
		n, err := strconv.Atoi(shell.Narrow(f.Values[name]))
		if err != nil {
			return -1
		}
		return n
	}
	in.Name, in.Order, in.Weight = f.Values["name"], number("order"), number("weight")
	in.Countries = strings.FieldsFunc(f.Values["countries"], func(c rune) bool { return strings.ContainsRune(",;，、 \t", c) })
	if f.Values["shop_number"] != "" {
		in.Shop = int64(number("shop_number"))
	}
	for _, field := range kind.Fields() {
		if field.Derived {
			continue
		}
		typed := r.PostFormValue(field.Name)
		if field.Secret {
			in.Secrets[field.Name] = typed
			if r.PostFormValue("clear_"+field.Name) != "" {
				in.Clear = append(in.Clear, field.Name)
			}
			continue
		}
		f.Values[field.Name], in.Settings[field.Name] = typed, typed
	}
	return f, in
}

func (h *handlers) createProvider(w http.ResponseWriter, r *http.Request) error {
	f, in := typedProvider(r, provider.Kind(r.PostFormValue("kind")))
	p, err := h.Providers.Create(r.Context(), shell.Actor(r), in, shell.CreationKey(r))
	return h.savedProvider(w, r, f, p, err)
}

// savedProvider answers a form that was saved or refused. A refused form is shown again without its
// secrets, which have to be typed again.
func (h *handlers) savedProvider(w http.ResponseWriter, r *http.Request, f deliverypages.ProviderForm, p provider.Provider, err error) error {
	f.Errors = shell.FieldsOf(err)
	switch {
	case f.Errors != nil:
		return h.providerForm(w, r, http.StatusUnprocessableEntity, f)
	case errors.Is(err, provider.ErrNoKey), errors.Is(err, provider.ErrSealed), errors.Is(err, provider.ErrTooMany), errors.Is(err, fault.ErrStale):
		f.Error = ui.FaultText(r.Context(), err)
		return h.providerForm(w, r, http.StatusConflict, f)
	case err != nil:
		return err
	}
	return h.Done(w, r, "/providers", ui.Good, shell.Say(r, "provider.saved", p.Name))
}

func (h *handlers) loadProvider(r *http.Request) (provider.Provider, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return provider.Provider{}, err
	}
	return h.Providers.Provider(r.Context(), shell.Actor(r), id)
}

func (h *handlers) editProvider(w http.ResponseWriter, r *http.Request, p provider.Provider) error {
	f := deliverypages.ProviderForm{ID: p.ID, Version: p.Version, Kind: p.Kind, Set: p.Secrets, Enabled: p.Enabled, Recipient: ownAddress(r, p.Kind), ReportsURL: h.Providers.ReportsURL(p),
		Values: map[string]string{"name": p.Name, "order": strconv.Itoa(p.Order), "weight": strconv.Itoa(p.Weight), "countries": strings.Join(p.Countries, ", ")}}
	for name, v := range p.Settings {
		f.Values[name] = v
	}
	if !h.Providers.Readable(p) {
		f.Error = ui.FaultText(r.Context(), provider.ErrSealed)
	}
	return h.providerForm(w, r, http.StatusOK, f)
}

func (h *handlers) saveProvider(w http.ResponseWriter, r *http.Request) error {
	p, err := h.loadProvider(r)
	if err != nil {
		return err
	}
	f, in := h.typedChange(r, p)
	p, err = h.Providers.Change(r.Context(), shell.Actor(r), p.ID, f.Version, in)
	return h.savedProvider(w, r, f, p, err)
}

// typedChange reads the form of a provider that is stored.
func (h *handlers) typedChange(r *http.Request, p provider.Provider) (deliverypages.ProviderForm, provider.Input) {
	f, in := typedProvider(r, p.Kind)
	f.ID, f.Version, f.Set, f.ReportsURL = p.ID, shell.ShownVersion(r), p.Secrets, h.Providers.ReportsURL(p)
	for _, field := range p.Kind.Fields() {
		if field.Derived {
			f.Values[field.Name] = p.Settings[field.Name]
		}
	}
	return f, in
}

// ownAddress is the member's own address for a test message; empty = the kind does not send to mail
// addresses.
func ownAddress(r *http.Request, kind provider.Kind) string {
	if kind != provider.SMTP {
		return ""
	}
	return shell.Frame(r).Member.Email
}

// tryProvider sends a test message with the values of the form and stores none of them. Without
// scripts the answer is the form, whose secrets have to be typed again.
func (h *handlers) tryProvider(w http.ResponseWriter, r *http.Request) error {
	f, in := typedProvider(r, provider.Kind(r.PostFormValue("kind")))
	if r.PathValue("id") != "" {
		p, err := h.loadProvider(r)
		if err != nil {
			return err
		}
		f, in = h.typedChange(r, p)
	}
	t, err := h.Providers.Trials.Try(r.Context(), shell.Actor(r), f.ID, f.Version, in, testmessage.TestWish{Recipient: f.Recipient, Locale: shell.Frame(r).Locale.Tag})
	f.Errors = shell.FieldsOf(err)
	kind := fault.KindOf(err)
	switch {
	case f.Errors != nil:
		f.Tried = pageparts.Try{Tone: ui.Warn, Refused: true, Text: shell.Say(r, "provider.try.correct")}
	case kind == fault.Conflict || kind == fault.Throttled || errors.Is(err, fault.ErrStale):
		f.Tried = pageparts.Try{Tone: ui.Warn, Refused: true, Text: ui.FaultText(r.Context(), err)}
	case err != nil:
		return err
	case t.Result == testmessage.TestDelivered:
		f.Tried = pageparts.Try{Tone: ui.Good, Text: shell.Say(r, "provider.try.delivered", f.Recipient, pageparts.Brief(r.Context(), t.Took))}
	default:
		f.Tried = pageparts.Try{Tone: ui.Bad, Text: shell.Say(r, "provider.try."+string(t.Result), f.Recipient, ui.Answered(r.Context(), t.Detail))}
	}
	if shell.Partial(r) {
		return h.Show(w, r, http.StatusOK, f.Outcome())
	}
	return h.providerForm(w, r, http.StatusOK, f)
}

func (h *handlers) confirmProvider(w http.ResponseWriter, r *http.Request, p provider.Provider) error {
	step, kind := r.PathValue("step"), "danger"
	if step == "enable" {
		kind = "primary"
	}
	points := []string{shell.Say(r, "provider."+step+".1")}
	if step == "disable" && !p.Kind.Shares() {
		points = []string{shell.Say(r, "provider.disable.apps")}
		if !p.Kind.Platform().OneTime() {
			points = append(points, shell.Say(r, "provider.disable.unnamed"))
		}
	}
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "providers", Crumbs: []ui.Crumb{{Label: shell.Say(r, "nav.providers"), URL: "/providers"}},
		ConfirmProps: ui.ConfirmProps{Title: shell.Say(r, "provider."+step+".title", p.Name), Points: points, NoReason: true,
			Hidden: [][2]string{{"version", strconv.FormatInt(p.Version, 10)}},
			Action: "/providers/" + strconv.FormatInt(p.ID, 10) + "/" + step, Cancel: "/providers", Submit: shell.Say(r, "provider."+step), Kind: kind}})
}

func (h *handlers) stepProvider(w http.ResponseWriter, r *http.Request) error {
	p, err := h.loadProvider(r)
	if err != nil {
		return err
	}
	step := r.PathValue("step")
	if step == "delete" {
		err = h.Providers.Delete(r.Context(), shell.Actor(r), p.ID, shell.ShownVersion(r))
	} else {
		_, err = h.Providers.Switch(r.Context(), shell.Actor(r), p.ID, step == "enable")
	}
	if errors.Is(err, provider.ErrInUse) || errors.Is(err, fault.ErrStale) {
		return h.Done(w, r, "/providers", ui.Warn, ui.FaultText(r.Context(), err))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, "/providers", ui.Good, shell.Say(r, "provider.done."+step, p.Name))
}
