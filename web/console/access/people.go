package access

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	accesspages "dropbell/views/pages/access"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) listStaff(w http.ResponseWriter, r *http.Request) error {
	list, err := h.Staff.Members(r.Context(), shell.Actor(r))
	if err != nil {
		return err
	}
	policy, fixed, err := h.Staff.Policy(r.Context())
	if err != nil {
		return err
	}
	shops, err := h.Shops.Shops(r.Context())
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, accesspages.Staff{List: list, Shops: shops, Policy: policy, PolicyFixed: fixed, PasswordsOff: h.Staff.PasswordsOff}.Page())
}

func (h *handlers) newMember(w http.ResponseWriter, r *http.Request) error {
	shops, err := h.Shops.Shops(r.Context())
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, accesspages.MemberForm{Values: map[string]string{"role": string(staff.Viewer)}, Shops: shops, PasswordsOff: h.Staff.PasswordsOff}.Page())
}

func (h *handlers) createMember(w http.ResponseWriter, r *http.Request) error {
	known, err := h.Shops.Shops(r.Context())
	if err != nil {
		return err
	}
	f, in := memberForm(r, nil, known)
	f.PasswordsOff = h.Staff.PasswordsOff
	f.checkShops(in.Shops, nil, known)
	if len(f.Errors) == 0 {
		m, token, err := h.Staff.CreateMember(r.Context(), shell.Actor(r), in)
		if err == nil && token != "" {
			return h.showLinkOnce(w, r, m, token)
		}
		if err == nil {
			return h.Done(w, r, "/staff", ui.Good, shell.Say(r, "staff.created", m.Actor().Name))
		}
		if err := f.take(r, err); err != nil {
			return err
		}
	}
	return h.Show(w, r, f.status(), f.Page())
}

func (h *handlers) editMember(w http.ResponseWriter, r *http.Request, id int64) error {
	m, err := h.Staff.Member(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	f := accesspages.MemberForm{ID: id, Name: m.Actor().Name, Disabled: m.DisabledAt != nil, Values: memberValues(m), Was: memberValues(m)}
	f.Member, f.PasswordsOff = m, h.Staff.PasswordsOff
	if f.Shops, err = h.Shops.Shops(r.Context()); err != nil {
		return err
	}
	_, f.Link = h.SecretOnce(w, r, memberPath(id))
	if f.SignIns, err = h.Staff.SignInsOf(r.Context(), shell.Actor(r), id); err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, f.Page())
}

func (h *handlers) saveMember(w http.ResponseWriter, r *http.Request, id int64) error {
	old, err := h.Staff.Member(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	known, err := h.Shops.Shops(r.Context())
	if err != nil {
		return err
	}
	f, in := memberForm(r, memberValues(old), known)
	f.ID, f.Name, f.Member, f.PasswordsOff = id, in.Email, old, h.Staff.PasswordsOff
	if f.SignIns, err = h.Staff.SignInsOf(r.Context(), shell.Actor(r), id); err != nil {
		return err
	}
	f.checkShops(in.Shops, old.Shops, known)
	if len(f.Errors) == 0 {
		m, err := h.Staff.ChangeMember(r.Context(), shell.Actor(r), id, in)
		if err == nil {
			h.AccessChanged()
			return h.Done(w, r, "/staff", ui.Good, shell.Say(r, "staff.saved", m.Actor().Name))
		}
		if err := f.take(r, err); err != nil {
			return err
		}
	}
	return h.Show(w, r, f.status(), f.Page())
}

// signMemberOut ends every sign-in of a member.
func (h *handlers) signMemberOut(w http.ResponseWriter, r *http.Request, id int64) error {
	ended, err := h.Staff.SignOutEverywhere(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	h.AccessChanged()
	return h.Done(w, r, memberPath(id), ui.Good, shell.Frame(r).Locale.N("account.revoked", int64(ended)))
}

func memberPath(id int64) string { return fmt.Sprintf("/staff/%d", id) }

// typedMember is a member's form on its way back to its author.
type typedMember struct {
	accesspages.MemberForm
	overtaken bool
}

// memberValues are the stored values of m in the form's format.
func memberValues(m staff.Member) map[string]string {
	v := map[string]string{"email": m.Email, "name": m.Name, "role": string(m.Role), "shops": joinShops(m.Shops), "disabled": ""}
	if m.DisabledAt != nil {
		v["disabled"] = "1"
	}
	return v
}

// memberForm reads the form of a member. was holds the member's stored values; nil for a new
// member.
func memberForm(r *http.Request, was map[string]string, known []template.Shop) (typedMember, staff.MemberInput) {
	f := typedMember{MemberForm: accesspages.MemberForm{Values: map[string]string{}, Was: was, Shops: known}}
	for _, name := range []string{"email", "name", "role", "shops", "disabled"} {
		f.Values[name] = strings.TrimSpace(r.PostFormValue(name))
	}
	f.Values["shops"] = strings.Join(r.PostForm["shops"], ", ")
	f.Errors = shell.Merge(r, f.Values, was)
	f.overtaken, f.Disabled = len(f.Errors) > 0, f.Values["disabled"] != ""
	shops, ok := shell.TypedShops(f.Values["shops"], known)
	if !ok {
		f.Errors = append(f.Errors, fault.Field{Name: "shops", Key: "rule.unknown_shop", Message: "there is no such shop"})
	}
	return f, staff.MemberInput{Email: f.Values["email"], Name: f.Values["name"], Role: staff.Role(f.Values["role"]), Shops: shops, Disabled: f.Disabled}
}

// checkShops adds an error if the member would be limited to a shop that does not exist, and so be
// locked out. Shops that the member had before are not checked.
func (f *typedMember) checkShops(shops, before []int64, known []template.Shop) {
	for _, n := range shops {
		if !slices.Contains(before, n) && !slices.ContainsFunc(known, func(s template.Shop) bool { return s.Number == n }) {
			f.Errors = append(f.Errors, fault.Field{Name: "shops", Key: "rule.unknown_shop", Message: "there is no such shop"})
			break
		}
	}
}

// take shows in the form why it was refused. Errors that do not concern the form are returned.
func (f *typedMember) take(r *http.Request, err error) error {
	if fields := shell.FieldsOf(err); fields != nil {
		f.Errors = fields
		return nil
	}
	if errors.Is(err, staff.ErrEmailTaken) {
		f.Errors = []fault.Field{{Name: "email", Key: "fault.email_taken", Message: err.Error()}}
		return nil
	}
	if errors.Is(err, staff.ErrLastAdmin) {
		f.Refused = ui.FaultText(r.Context(), err)
		return nil
	}
	return err
}

func (f *typedMember) status() int {
	if f.Refused != "" || f.overtaken {
		return http.StatusConflict
	}
	return http.StatusUnprocessableEntity
}

func joinShops(shops []int64) string {
	words := make([]string, len(shops))
	for i, s := range shops {
		words[i] = strconv.FormatInt(s, 10)
	}
	return strings.Join(words, ", ")
}

const keysPath = "/keys"

func (h *handlers) listKeys(w http.ResponseWriter, r *http.Request) error {
	list, err := h.Staff.Keys(r.Context(), shell.Actor(r))
	if err != nil {
		return err
	}
	p := accesspages.Keys{List: list}
	p.Name, p.Secret = h.SecretOnce(w, r, keysPath)
	return h.Show(w, r, http.StatusOK, p.Page())
}

func (h *handlers) newKey(w http.ResponseWriter, r *http.Request) error {
	return h.Show(w, r, http.StatusOK, accesspages.KeyForm{Values: map[string]string{}, RequestKey: rand.Text()}.Page())
}

func (h *handlers) createKey(w http.ResponseWriter, r *http.Request) error {
	f := accesspages.KeyForm{Values: map[string]string{"name": r.PostFormValue("name"), "expires_at": r.PostFormValue("expires_at")},
		RequestKey: r.PostFormValue("request_key"), Test: r.PostFormValue("test") != ""}
	for _, s := range r.PostForm["scopes"] {
		f.Scopes = append(f.Scopes, staff.Scope(s))
	}
	in := staff.KeyInput{Name: f.Values["name"], Scopes: f.Scopes, ExpiresAt: shell.Day(f.Values["expires_at"], h.DefaultZone),
		RequestKey: shell.CreationKey(r), Test: f.Test}
	if in.ExpiresAt == nil && f.Values["expires_at"] != "" {
		f.Errors = []fault.Field{{Name: "expires_at", Key: "rule.date_format", Message: shell.TimeMessages("rule.date_format")}}
		return h.Show(w, r, http.StatusUnprocessableEntity, f.Page())
	}
	k, secret, err := h.Staff.CreateKey(r.Context(), shell.Actor(r), in)
	if fields := shell.FieldsOf(err); fields != nil {
		f.Errors = fields
		return h.Show(w, r, http.StatusUnprocessableEntity, f.Page())
	}
	if errors.Is(err, staff.ErrKeyRepeated) {
		return h.Done(w, r, keysPath, ui.Warn, ui.FaultText(r.Context(), err))
	}
	if err != nil {
		return err
	}
	h.SecretFor(w, r, keysPath, k.Name, secret)
	shell.Redirect(w, r, keysPath) // a reload must not make another
	return nil
}

func (h *handlers) confirmRevokeKey(w http.ResponseWriter, r *http.Request, id int64) error {
	list, err := h.Staff.Keys(r.Context(), shell.Actor(r))
	if err != nil {
		return err
	}
	for _, k := range list {
		if k.ID == id {
			return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "keys", Crumbs: []ui.Crumb{{Label: shell.Say(r, "nav.keys"), URL: "/keys"}},
				ConfirmProps: ui.ConfirmProps{Title: shell.Say(r, "confirm.key.title", k.Name), Points: []string{shell.Say(r, "confirm.key.1")},
					Action: fmt.Sprintf("/keys/%d/revoke", id), Cancel: "/keys", Submit: shell.Say(r, "apikeys.revoke"), Kind: "danger"}})
		}
	}
	return staff.ErrKeyNotFound
}

func (h *handlers) revokeKey(w http.ResponseWriter, r *http.Request, id int64) error {
	if err := h.Staff.RevokeKey(r.Context(), shell.Actor(r), id, shell.Reason(r)); err != nil {
		return err
	}
	return h.Done(w, r, "/keys", ui.Good, shell.Say(r, "apikeys.revoked_now"))
}
