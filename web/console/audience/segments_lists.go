package audience

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/segment"
	audiencepages "dropbell/views/pages/audience"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
	"dropbell/web/console/shell/upload"
)

func (h *handlers) newList(w http.ResponseWriter, r *http.Request) error {
	return h.Show(w, r, http.StatusOK, audiencepages.ListForm{RequestKey: rand.Text()}.Page())
}

func (h *handlers) createList(w http.ResponseWriter, r *http.Request) error {
	u, fields, err := h.Files.Receive(r)
	p := audiencepages.ListForm{Name: fields["name"], RequestKey: fields["request_key"], Errors: shell.FieldsOf(err)}
	if p.Errors == nil && err != nil {
		return err
	}
	if p.Errors == nil {
		_, j, err := h.Segments.CreateList(r.Context(), shell.Actor(r), p.Name, u.ID, fileKey(p.RequestKey, u))
		if err == nil {
			return h.Done(w, r, pageparts.Work{Job: j}.URL(), ui.Good, shell.Say(r, "segments.reading"))
		}
		h.Files.Remove(r, u.ID)
		if status, list := h.refusedList(w, err); list != nil {
			p.Errors = list
			return h.Show(w, r, status, p.Page())
		}
		return err
	}
	return h.Show(w, r, http.StatusUnprocessableEntity, p.Page())
}

// refusedList returns the errors of the form of a list, or of its file, and the status of the
// answer; nil for other errors.
func (h *handlers) refusedList(w http.ResponseWriter, err error) (status int, list []fault.Field) {
	if list := shell.FieldsOf(err); list != nil {
		return http.StatusUnprocessableEntity, list
	}
	if errors.Is(err, job.ErrBusy) {
		return upload.Refused(w, err)
	}
	return 0, nil
}

// fileKey returns the idempotency key of a form with a file: pressing the button twice is one
// request; sending the form again with another file is another request.
func fileKey(form string, u job.Upload) string {
	if form == "" {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte(form), u.SHA256...)))
}

func (h *handlers) fileForm(w http.ResponseWriter, r *http.Request) error {
	g, err := h.fillable(r)
	if err != nil {
		return h.refuseFile(w, r, g, err)
	}
	return h.Show(w, r, http.StatusOK, audiencepages.ListForm{Segment: g, RequestKey: rand.Text()}.Page())
}

// fillable returns the list in the address if users can be added to it.
func (h *handlers) fillable(r *http.Request) (segment.Segment, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return segment.Segment{}, err
	}
	return h.Segments.MayAdd(r.Context(), shell.Actor(r), id)
}

// refuseFile redirects to the list, which shows the error.
func (h *handlers) refuseFile(w http.ResponseWriter, r *http.Request, g segment.Segment, err error) error {
	if !errors.Is(err, segment.ErrListInUse) {
		return err
	}
	return h.Done(w, r, fmt.Sprintf("/segments/%d", g.ID), ui.Bad, shell.Say(r, "fault.list_in_use"))
}

func (h *handlers) addFile(w http.ResponseWriter, r *http.Request) error {
	g, err := h.fillable(r)
	if err != nil {
		return h.refuseFile(w, r, g, err)
	}
	u, fields, err := h.Files.Receive(r)
	if list := shell.FieldsOf(err); list != nil {
		return h.Show(w, r, http.StatusUnprocessableEntity, audiencepages.ListForm{Segment: g, RequestKey: fields["request_key"], Errors: list}.Page())
	}
	if err != nil {
		return err
	}
	j, err := h.Segments.AddFile(r.Context(), shell.Actor(r), g.ID, u.ID, fileKey(fields["request_key"], u))
	if err != nil {
		h.Files.Remove(r, u.ID)
		if status, list := h.refusedList(w, err); list != nil {
			return h.Show(w, r, status, audiencepages.ListForm{Segment: g, RequestKey: fields["request_key"], Errors: list}.Page())
		}
		return h.refuseFile(w, r, g, err)
	}
	return h.Done(w, r, pageparts.Work{Job: j}.URL(), ui.Good, shell.Say(r, "segments.reading"))
}

// listFiles returns the files of a list with their outcomes.
func (h *handlers) listFiles(r *http.Request, id int64) (files []audiencepages.ListFile, err error) {
	jobs, err := h.Segments.Files(r.Context(), shell.Actor(r), id)
	for _, j := range jobs {
		files = append(files, audiencepages.ListFile{Job: j, Open: j.Visible(shell.Actor(r)) == nil})
	}
	return files, err
}
