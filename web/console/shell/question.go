package shell

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// maxReason bounds the stored part of a reason, in bytes.
const maxReason = 2000

// Reason returns the typed reason of a step.
func Reason(r *http.Request) string {
	s := strings.TrimSpace(r.FormValue("reason"))
	return strings.ToValidUTF8(s[:min(len(s), maxReason)], "")
}

// Ask shows a confirmation: the dialog's inside or a page of its own.
func (sh *Shell) Ask(w http.ResponseWriter, r *http.Request, status int, p pageparts.Confirmation) error {
	if Partial(r) {
		return sh.Show(w, r, status, p.Fragment())
	}
	return sh.Show(w, r, status, p.Page())
}

// ShownVersion returns the version of the object that a form shows; 0 if the form has no version.
func ShownVersion(r *http.Request) int64 {
	version, err := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// ConfirmedAt stores in the session when the member last authenticated; the zero time = not in this
// session.
func (sh *Shell) ConfirmedAt(r *http.Request, at time.Time) {
	if at.IsZero() {
		sh.Sessions.Remove(r.Context(), confirmedKey)
		return
	}
	sh.Sessions.Put(r.Context(), confirmedKey, at.Unix())
}

// Confirmed reports whether the member has authenticated recently.
func (sh *Shell) Confirmed(r *http.Request) bool {
	at := sh.Sessions.GetInt64(r.Context(), confirmedKey)
	return at != 0 && staff.Confirmed(time.Unix(at, 0), sh.Now())
}

// askToConfirm requires the member to authenticate again. The confirmation page
// contains the form, and sends it again.
func (sh *Shell) askToConfirm(w http.ResponseWriter, r *http.Request) {
	if Reads(r) || Partial(r) {
		to := LocalPath(r.URL.RequestURI())
		if Partial(r) {
			to = openPage(r)
		} else if page, file := strings.CutSuffix(r.URL.Path, ".csv"); file {
			to = strings.TrimSuffix(page, "/recipients") // a file has no page to return to
		}
		Redirect(w, r, ConfirmPath+"?"+url.Values{"return": {to}}.Encode())
		return
	}
	p := accesspages.Confirm{To: LocalPath(r.URL.RequestURI()), Carried: Carried(r.PostForm)}
	Frame(r).Path = "/" // a page of which only the form's answer can be asked for
	if err := sh.askConfirm(w, r, p); err != nil {
		sh.Fail(w, r, err)
	}
}

// Carried are the fields of a form that is to be sent again, in one order.
func Carried(form url.Values) (list [][2]string) {
	for name, values := range form {
		if strings.HasPrefix(name, confirmFields) {
			continue
		}
		for _, v := range values {
			list = append(list, [2]string{name, v})
		}
	}
	slices.SortStableFunc(list, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return list
}

const (
	// confirmedKey is the session key of the instant of the member's last authentication, in Unix
	// seconds.
	confirmedKey = "confirmed_at"
	// ConfirmPath is the page on which members authenticate again.
	ConfirmPath = "/confirm"
	// confirmFields is the prefix of the confirmation's fields. They are sent together with the
	// fields of the form that is sent again.
	confirmFields = "confirm_"
)

// CreationKey returns an idempotency key, so that sending a form twice creates one object. The key
// contains the member, so that forms of different members are independent.
func CreationKey(r *http.Request) string {
	key := r.PostFormValue("request_key")
	if key == "" {
		return ""
	}
	return "console:" + Actor(r).Label + ":" + key[:min(64, len(key))]
}

// RequestKey identifies a form: pressing its button twice is one request.
func RequestKey(r *http.Request) string {
	if key := r.PostFormValue("request_key"); key != "" && len(key) <= 100 {
		return key
	}
	return rand.Text()
}

// AskStep shows the confirmation of a step, or that the step is not possible. A confirmation
// without a submit button is sent with status 409.
func (sh *Shell) AskStep(w http.ResponseWriter, r *http.Request, p pageparts.Confirmation) error {
	status := http.StatusOK
	if p.Submit == "" {
		status = http.StatusConflict
	}
	return sh.Ask(w, r, status, p)
}

// StepRefused shows the confirmation again with the error. label is the name of the fields that
// caused it.
func (sh *Shell) StepRefused(w http.ResponseWriter, r *http.Request, p pageparts.Confirmation, cause error, label func(context.Context, string) string) error {
	p.Reason = Reason(r)
	if p.Submit != "" { // else it says so itself
		p.Error = ui.FaultText(r.Context(), cause)
	}
	for _, f := range FieldsOf(cause) {
		p.Error = ui.Labelled(r.Context(), label(r.Context(), f.Name), ui.FieldText(r.Context(), f))
	}
	status := http.StatusConflict
	if fault.KindOf(cause) == fault.Invalid {
		status = http.StatusUnprocessableEntity
	}
	return sh.Ask(w, r, status, p)
}
