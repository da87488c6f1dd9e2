// Package upload receives files for jobs of several subjects, and stores the previews that pages
// show.
package upload

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// Files receives uploaded files.
type Files struct {
	Uploads Uploads
	// Tables reads the files as tables.
	Tables job.Tables
	Log    *slog.Logger
}

// Uploads stores files that jobs read.
type Uploads interface {
	// Upload returns a file without its content, or [job.ErrUploadNotFound].
	Upload(ctx context.Context, id int64) (job.Upload, error)
	// SaveUpload stores the content of r. More than limit bytes are [job.ErrUploadTooLarge].
	SaveUpload(ctx context.Context, name string, r io.Reader, limit int64, by staff.Actor) (job.Upload, error)
	// SavePreviews stores the previews that the page of a file shows.
	SavePreviews(ctx context.Context, id int64, previews []job.Preview) error
	// RemoveUpload removes a file that was refused.
	RemoveUpload(ctx context.Context, id int64) error
}

// maxUpload bounds a file of users or ids, in bytes.
const maxUpload = 512 << 20

var (
	errNoFile    = &fault.Fields{List: []fault.Field{{Name: "file", Key: "rule.file", Message: "choose a file"}}}
	errEmptyFile = &fault.Fields{List: []fault.Field{{Name: "file", Key: "rule.file_empty", Message: "the file is empty; choose one with a row of names and rows below it"}}}
)

// unreadable returns why the file cannot be read, as the error of the file's field.
func unreadable(err error) []fault.Field {
	f := fault.Field{Key: "rule.file_unreadable", Message: err.Error()}
	if why, ok := errors.AsType[*fault.Fields](err); ok && len(why.List) > 0 {
		f = why.List[0]
	}
	f.Name = "file"
	return []fault.Field{f}
}

// Receive stores the file of a form and returns the form's other fields. Only fields before the
// file are complete.
func (f *Files) Receive(r *http.Request) (u job.Upload, fields map[string]string, err error) {
	fields = map[string]string{}
	parts, err := r.MultipartReader()
	if err != nil {
		return u, fields, shell.ErrMalformed
	}
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return u, fields, errNoFile
		}
		if err != nil {
			return u, fields, shell.ErrMalformed
		}
		if part.FormName() != "file" {
			raw, err := io.ReadAll(io.LimitReader(part, 4<<10))
			if err != nil {
				return u, fields, shell.ErrMalformed
			}
			fields[part.FormName()] = strings.ToValidUTF8(strings.ReplaceAll(string(raw), "\x00", ""), "")
			continue
		}
		if part.FileName() == "" {
			return u, fields, errNoFile
		}
		u, err = f.Uploads.SaveUpload(r.Context(), part.FileName(), part, maxUpload, shell.Actor(r))
		if errors.Is(err, job.ErrUploadTooLarge) {
			return u, fields, &fault.Fields{List: []fault.Field{{Name: "file", Key: "rule.file_size", Message: "must have at most 512 MiB"}}}
		}
		if err == nil && u.Bytes == 0 {
			return u, fields, errEmptyFile
		}
		return u, fields, err
	}
}

// Refused returns the error about a file, for its field in the form, and the status of the answer.
// list is nil for an error that is not about the file.
func Refused(w http.ResponseWriter, err error) (status int, list []fault.Field) {
	switch {
	case errors.Is(err, job.ErrBusy):
		w.Header().Set("Retry-After", "5")
		return http.StatusServiceUnavailable, []fault.Field{{Name: "file", Key: "rule.file_busy", Message: err.Error()}}
	case fault.KindOf(err) == fault.Invalid:
		return http.StatusUnprocessableEntity, unreadable(err)
	}
	return 0, nil
}

// Remove removes a refused upload. If that fails, housekeeping removes it later.
func (f *Files) Remove(r *http.Request, upload int64) {
	if upload == 0 {
		return
	}
	if err := f.Uploads.RemoveUpload(context.WithoutCancel(r.Context()), upload); err != nil {
		f.Log.WarnContext(r.Context(), "a refused upload could not be removed", "upload", upload, "error", err)
	}
}
