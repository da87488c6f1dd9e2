package audience

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	audiencepages "dropbell/views/pages/audience"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
	"dropbell/web/console/shell/upload"
)

// ofAllShops allows only staff who may change users of every shop: users belong to every shop.
func ofAllShops(serve shell.Handler) shell.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := shell.Actor(r).MayEverywhere(staff.ManageUsers); err != nil {
			return err
		}
		return serve(w, r)
	}
}

func (h *handlers) importForm(w http.ResponseWriter, r *http.Request) error {
	return h.Show(w, r, http.StatusOK, audiencepages.ImportStart{}.Page())
}

func (h *handlers) importUpload(w http.ResponseWriter, r *http.Request) error {
	u, _, err := h.Files.Receive(r)
	if list := shell.FieldsOf(err); list != nil {
		return h.Show(w, r, http.StatusUnprocessableEntity, audiencepages.ImportStart{Errors: list}.Page())
	}
	if err != nil {
		return err
	}
	// An unreadable file is refused at once, not after the columns.
	if err := h.Files.KeepPreviews(r, u.ID); err != nil {
		h.Files.Remove(r, u.ID)
		if status, list := upload.Refused(w, err); list != nil {
			return h.Show(w, r, status, audiencepages.ImportStart{Errors: list}.Page())
		}
		return err
	}
	shell.Redirect(w, r, fmt.Sprintf("/users/import/%d", u.ID))
	return nil
}

// importTemplate is a file to fill in.
func (h *handlers) importTemplate(w http.ResponseWriter, r *http.Request) error {
	var head []string
	for _, t := range user.Targets() {
		head = append(head, string(t))
	}
	return h.Export(w, r, "users", append(head, "tier"), func(t *shell.Sheet) error {
		return t.Row("1001", "Ann Lee", "ann@example.com", "+8613800138000", "true", "zh-CN", "Asia/Shanghai", "5f2b9c0d7a1e4483", "sms", "22:00-08:00", "gold")
	})
}

// loadImport returns the choice of columns as guessed from the file, read in the way how.
func (h *handlers) loadImport(r *http.Request, how job.Reading) (audiencepages.ImportColumns, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return audiencepages.ImportColumns{}, err
	}
	u, err := h.Files.Uploads.Upload(r.Context(), id)
	if err == nil {
		err = u.Visible(shell.Actor(r))
	}
	if errors.Is(err, job.ErrUploadNotFound) {
		return audiencepages.ImportColumns{}, shell.ErrNoPage
	}
	if err != nil {
		return audiencepages.ImportColumns{}, err
	}
	s, err := h.Files.Kept(r, u, how)
	if err != nil {
		return audiencepages.ImportColumns{}, err
	}
	p := audiencepages.ImportColumns{Upload: u, Format: s.Format}
	for i, t := range user.GuessMapping(s.Header) {
		col := audiencepages.ImportColumn{Header: s.Header[i], Target: string(t)}
		if name, ok := t.Attribute(); ok {
			col.Target, col.Attribute = audiencepages.AttributeTarget, name
		}
		for _, row := range s.Rows {
			if i < len(row) && row[i] != "" {
				col.Samples = append(col.Samples, row[i])
			}
		}
		p.Columns = append(p.Columns, col)
	}
	return p, nil
}

func (h *handlers) importColumns(w http.ResponseWriter, r *http.Request) error {
	params, checked := h.checked(r)
	how := upload.ReadingOf(r)
	if checked && how == (job.Reading{}) {
		how = params.Reading
	}
	p, err := h.loadImport(r, how)
	if err != nil {
		return err
	}
	// After returning from a check, the columns are as they were then.
	if checked && params.Reading == p.Reading() && len(params.Columns) == len(p.Columns) {
		for i, t := range params.Columns {
			p.Columns[i].Target, p.Columns[i].Attribute = string(t), ""
			if name, ok := t.Attribute(); ok {
				p.Columns[i].Target, p.Columns[i].Attribute = audiencepages.AttributeTarget, name
			}
		}
		p.Clear = params.Clear
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// importCheck starts the job that reports the effect of an import.
func (h *handlers) importCheck(w http.ResponseWriter, r *http.Request) error {
	p, err := h.loadImport(r, upload.ReadingOf(r))
	if err != nil {
		return err
	}
	params := user.ImportParams{Clear: r.PostFormValue("clear") != "", Reading: p.Reading()}
	for i := range p.Columns {
		col := &p.Columns[i]
		col.Target, col.Attribute = r.PostFormValue(fmt.Sprintf("target%d", i)), strings.TrimSpace(r.PostFormValue(fmt.Sprintf("name%d", i)))
		t := user.Target(col.Target)
		if col.Target == audiencepages.AttributeTarget {
			t = user.ToAttribute(col.Attribute)
		}
		params.Columns = append(params.Columns, t)
	}
	p.Clear, p.Errors = params.Clear, shell.FieldsOf(params.Columns.Check())
	if p.Errors != nil {
		return h.Show(w, r, http.StatusUnprocessableEntity, p.Page())
	}
	j, err := h.startTable(r, user.CheckJob, p.Upload, params, "")
	if err != nil {
		return err
	}
	return h.Done(w, r, pageparts.Work{Job: j}.URL(), "", "")
}

func (h *handlers) startTable(r *http.Request, kind string, u job.Upload, params user.ImportParams, key string) (job.Job, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return job.Job{}, err
	}
	return h.Jobs.Start(r.Context(), shell.Actor(r), job.New{Kind: kind, Title: u.Name, Params: raw, UploadID: u.ID, RequestKey: key}, staff.ManageUsers)
}

// checkedJob returns the finished check that the address names.
func (h *handlers) checkedJob(r *http.Request) (j job.Job, result user.ImportResult, err error) {
	upload, err := shell.PathID(r)
	if err != nil {
		return j, result, err
	}
	id, _ := strconv.ParseInt(r.FormValue("check"), 10, 64)
	if j, err = h.Jobs.Job(r.Context(), shell.Actor(r), id); err != nil || j.Kind != user.CheckJob || j.UploadID != upload || j.State != job.Done {
		return j, result, shell.ErrNoPage
	}
	return j, result, json.Unmarshal(j.Result, &result)
}

func (h *handlers) checked(r *http.Request) (params user.ImportParams, ok bool) {
	j, _, err := h.checkedJob(r)
	return params, err == nil && json.Unmarshal(j.Params, &params) == nil
}

func (h *handlers) confirmImport(w http.ResponseWriter, r *http.Request) error {
	j, result, err := h.checkedJob(r)
	if err != nil {
		return err
	}
	l := shell.Frame(r).Locale
	points := []string{l.N("import.confirm.new", result.New), l.N("import.confirm.changed", result.Changed), l.T("import.confirm.undo")}
	if result.Repeated > 0 {
		points = append(points, l.N("import.confirm.repeated", result.Repeated))
	}
	if result.Invalid > 0 {
		points = append(points, l.N("import.confirm.invalid", result.Invalid))
	}
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "import", Crumbs: shell.JobCrumbs(r, j), ConfirmProps: ui.ConfirmProps{
		Title: l.T("import.confirm.title", j.Title), Points: points, Action: fmt.Sprintf("/users/import/%d/apply?check=%d", j.UploadID, j.ID),
		Cancel: pageparts.Work{Job: j}.URL(), Submit: l.T("import.apply"), Kind: "primary", NoReason: true}})
}

// startImport starts the checked import once: pressing the button twice starts one job.
func (h *handlers) startImport(w http.ResponseWriter, r *http.Request) error {
	j, _, err := h.checkedJob(r)
	if err != nil {
		return err
	}
	n := job.New{Kind: user.ImportJob, Title: j.Title, Params: j.Params, UploadID: j.UploadID, Total: j.Worked(), RequestKey: fmt.Sprintf("check:%d", j.ID)}
	started, err := h.Jobs.Start(r.Context(), shell.Actor(r), n, staff.ManageUsers)
	if err != nil {
		return err
	}
	return h.Done(w, r, pageparts.Work{Job: started}.URL(), ui.Good, shell.Say(r, "import.started"))
}

// importActions lead from a check to the import, and from either back.
func (h *handlers) importActions(r *http.Request, j job.Job) []ui.ButtonProps {
	if j.UploadID == 0 || !j.State.Over() || !shell.Actor(r).SeesContacts() {
		return nil
	}
	l, base := shell.Frame(r).Locale, fmt.Sprintf("/users/import/%d", j.UploadID)
	if j.Kind == user.ImportJob {
		return []ui.ButtonProps{{Label: l.T("import.another"), URL: "/users/import"}}
	}
	list := []ui.ButtonProps{{Label: l.T("import.columns_again"), URL: fmt.Sprintf("%s?check=%d", base, j.ID)}}
	if j.State == job.Done && j.Done > 0 {
		list = append([]ui.ButtonProps{{Label: l.T("import.apply"), Icon: "check", URL: fmt.Sprintf("%s/apply?check=%d", base, j.ID), Dialog: true, Kind: "primary"}}, list...)
	}
	return list
}
