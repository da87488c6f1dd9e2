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

// maxReason bounds what is kept of a reason, in bytes.
const maxReason = 2000

// Reason returns what was typed as the reason of a step.
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

// ShownVersion returns the version of what a form was about; 0 if the form does
// not say.
func ShownVersion(r *http.Request) int64 {
	version, err := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// ConfirmedAt stores in the session when the member last proved who they are;
// the zero time = not in this session.
func (sh *Shell) ConfirmedAt(r *http.Request, at time.Time) {
	if at.IsZero() {
		sh.Sessions.Remove(r.Context(), confirmedKey)
		return
	}
	sh.Sessions.Put(r.Context(), confirmedKey, at.Unix())
}

// Confirmed reports whether the member proved lately who they are.
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
	// confirmedKey is where a session keeps when the member last proved who
	// they are, in seconds of Unix.
	confirmedKey = "confirmed_at"
	// ConfirmPath is the page on which members authenticate again.
	ConfirmPath = "/confirm"
	// confirmFields begin with this: they travel together with the fields of
	// the form that is sent again.
	confirmFields = "confirm_"
)

// CreationKey makes sending a form twice create one object. The key contains the
// member, so that members' forms are independent.
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

// AskStep shows the confirmation of a step, or that it is not possible: a
// confirmation with nothing to submit is sent with status 409.
func (sh *Shell) AskStep(w http.ResponseWriter, r *http.Request, p pageparts.Confirmation) error {
	status := http.StatusOK
	if p.Submit == "" {
		status = http.StatusConflict
	}
	return sh.Ask(w, r, status, p)
}

// StepRefused shows the confirmation again with the error; label names the
// fields that the cause is about.
func (sh *Shell) StepRefused(w http.ResponseWriter, r *http.Request, p pageparts.Confirmation, cause error, label func(context.Context, string) string) error {
	p.Reason = Reason(r)
	if p.Submit != "" { // else it says so itself
		p.Error = ui.FaultText(r.Context(), cause)
	}
	for _, f := range FieldsOf(cause) {
		p.Error = label(r.Context(), f.Name) + ": " + ui.FieldText(r.Context(), f)
	}
	status := http.StatusConflict
	if fault.KindOf(cause) == fault.Invalid {
		status = http.StatusUnprocessableEntity
	}
	return sh.Ask(w, r, status, p)
}
