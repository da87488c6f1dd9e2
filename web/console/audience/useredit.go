package audience

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	audiencepages "dropbell/views/pages/audience"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// loadUser returns the user in the address; for an unknown user only the id.
func (h *handlers) loadUser(r *http.Request) (user.User, error) {
	id, err := user.ParseID(r.PathValue("id"))
	if err != nil {
		return user.User{}, shell.ErrNoPage
	}
	return h.People.Preferences(r.Context(), id)
}

// userFields are the names of the form fields of a user.
func userFields() []string {
	return []string{"name", "email", "phone", "locale", "timezone", "quiet_from", "quiet_to"}
}

// userForm shows the stored values of u.
func userForm(u user.User) audiencepages.UserForm {
	p := audiencepages.UserForm{ID: u.ID, Zones: shell.Zones(u.Timezone), Name: u.ID.String(), Values: map[string]string{"name": u.Name, "email": u.Email, "phone": u.Phone, "locale": u.Locale, "timezone": u.Timezone}}
	if u.Quiet.From != u.Quiet.To {
		p.Values["quiet_from"], p.Values["quiet_to"] = u.Quiet.Clock()
	}
	for _, c := range delivery.AllChannels() {
		if u.OptOuts&c.Bit() != 0 {
			p.Off = append(p.Off, c.String())
		}
	}
	p.Was = withOff(p)
	return p
}

// withOff returns all values of a form, including its check boxes.
func withOff(p audiencepages.UserForm) map[string]string {
	all := map[string]string{}
	for _, name := range userFields() {
		all[name] = p.Values[name]
	}
	for _, c := range delivery.AllChannels() {
		all["off_"+c.String()] = strconv.FormatBool(slices.Contains(p.Off, c.String()))
	}
	return all
}

// filledUser reads the form and merges the stored values.
func filledUser(r *http.Request, stored audiencepages.UserForm) (p audiencepages.UserForm, both []fault.Field) {
	p = audiencepages.UserForm{ID: stored.ID, Zones: shell.Zones(strings.TrimSpace(r.PostFormValue("timezone"))), Name: stored.Name, Values: map[string]string{}, Was: stored.Was, Off: r.PostForm["off"]}
	for _, name := range userFields() {
		p.Values[name] = strings.TrimSpace(r.PostFormValue(name))
	}
	all := withOff(p)
	both = shell.Merge(r, all, stored.Was)
	p.Values, p.Off = all, nil
	for _, c := range delivery.AllChannels() {
		if all["off_"+c.String()] == "true" {
			p.Off = append(p.Off, c.String())
		}
	}
	return p, both
}

func (h *handlers) editUser(w http.ResponseWriter, r *http.Request, u user.User) error {
	p := userForm(u)
	p.OnlyOff = !shell.Actor(r).SeesContacts()
	return h.Show(w, r, http.StatusOK, p.Page())
}

// addOptOuts turns off the channels that staff with some shops have ticked.
func (h *handlers) addOptOuts(w http.ResponseWriter, r *http.Request, u user.User) error {
	var off uint8
	for _, ch := range delivery.AllChannels() {
		if slices.Contains(r.PostForm["off"], ch.String()) {
			off |= ch.Bit()
		}
	}
	if off &^= u.OptOuts; off != 0 {
		if err := h.People.AddOptOuts(r.Context(), shell.Actor(r), u.ID, off); err != nil {
			return err
		}
	}
	return h.Done(w, r, "/users/"+u.ID.String(), ui.Good, shell.Say(r, "user.saved"))
}

func (h *handlers) saveUser(w http.ResponseWriter, r *http.Request) error {
	u, err := h.loadUser(r)
	if err != nil {
		return err
	}
	if !shell.Actor(r).SeesContacts() {
		return h.addOptOuts(w, r, u)
	}
	p, both := filledUser(r, userForm(u))
	if p.Errors = both; len(both) > 0 {
		return h.Show(w, r, http.StatusConflict, p.Page())
	}
	change, broken := editedUser(u, p)
	if broken == nil {
		err = h.People.Edit(r.Context(), shell.Actor(r), change)
		broken = shell.FieldsOf(err)
	}
	if p.Errors = broken; broken != nil {
		return h.Show(w, r, http.StatusUnprocessableEntity, p.Page())
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, "/users/"+u.ID.String(), ui.Good, shell.Say(r, "user.saved"))
}

// editedUser returns only the fields that the form changes, so that the audit log names only these.
func editedUser(u user.User, p audiencepages.UserForm) (user.Change, []fault.Field) {
	change := user.Change{ID: u.ID}
	for _, f := range []struct {
		name   string
		stored string
		to     **string
	}{{"name", u.Name, &change.Name}, {"email", u.Email, &change.Email}, {"phone", u.Phone, &change.Phone}, {"locale", u.Locale, &change.Locale}, {"timezone", u.Timezone, &change.Timezone}} {
		if typed := p.Values[f.name]; typed != f.stored {
			*f.to = &typed
		}
	}
	var off uint8
	for _, c := range delivery.AllChannels() {
		if slices.Contains(p.Off, c.String()) {
			off |= c.Bit()
		}
	}
	if off != u.OptOuts {
		change.OptOuts = &off
	}
	quiet := user.QuietHours{}
	if from, to := p.Values["quiet_from"], p.Values["quiet_to"]; from != "" || to != "" {
		var ok bool
		if quiet, ok = user.ParseQuietHours(from, to); !ok {
			return change, []fault.Field{{Name: "quiet_hours", Key: "rule.quiet_hours", Message: "must be two times of day"}}
		}
		if quiet.From == quiet.To {
			return change, []fault.Field{{Name: "quiet_hours", Key: "rule.quiet_same", Message: "must begin and end at different times"}}
		}
	}
	if quiet != u.Quiet && (quiet.From != quiet.To || u.Quiet.From != u.Quiet.To) {
		change.Quiet = &quiet
	}
	return change, nil
}

func (h *handlers) confirmErase(w http.ResponseWriter, r *http.Request) error {
	u, err := h.loadUser(r)
	if err == nil {
		err = shell.Actor(r).MayEverywhere(staff.ManageUsers)
	}
	if err != nil {
		return err
	}
	l, url := shell.Frame(r).Locale, "/users/"+u.ID.String()
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "users", Crumbs: []ui.Crumb{{Label: l.T("nav.users"), URL: "/users"}, {Label: u.ID.String(), URL: url}},
		ConfirmProps: ui.ConfirmProps{Title: l.T("user.erase.title", u.ID.String()), Points: []string{l.T("user.erase.1"), l.T("user.erase.2"), l.T("user.erase.3"), l.T("user.erase.4")},
			Action: url + "/erase", Cancel: url, Submit: l.T("user.erase"), Kind: "danger", NoReason: true}})
}

// userData sends everything that is stored about a user, as a file.
func (h *handlers) userData(w http.ResponseWriter, r *http.Request) error {
	id, err := user.ParseID(r.PathValue("id"))
	if err != nil {
		return shell.ErrNoPage
	}
	raw, err := h.People.Everything(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="user-`+id.String()+`.json"`)
	_, err = w.Write(raw)
	return err
}

func (h *handlers) liftErasure(w http.ResponseWriter, r *http.Request) error {
	id, err := user.ParseID(r.PathValue("id"))
	if err != nil {
		return shell.ErrNoPage
	}
	if err := h.People.LiftErasure(r.Context(), shell.Actor(r), id); err != nil && !errors.Is(err, user.ErrNotErased) {
		return err
	}
	return h.Done(w, r, "/users/"+id.String(), ui.Good, shell.Say(r, "user.lifted"))
}

func (h *handlers) eraseUser(w http.ResponseWriter, r *http.Request) error {
	id, err := user.ParseID(r.PathValue("id"))
	if err != nil {
		return shell.ErrNoPage
	}
	if err := h.People.Erase(r.Context(), shell.Actor(r), id); err != nil && !errors.Is(err, user.ErrNotFound) {
		return err
	}
	return h.Done(w, r, "/users/"+id.String(), ui.Good, shell.Say(r, "user.erased"))
}
