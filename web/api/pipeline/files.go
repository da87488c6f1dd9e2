package pipeline

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/web/spreadsheet"
)

// Stall is how long a client may take for the next part of a long request or answer.
const Stall = 60 * time.Second

// Stream is an answer that its operation writes itself.
type Stream struct{ Body func(huma.Context) }

// Streamed returns the answer that write writes.
func Streamed(write func(w http.ResponseWriter, r *http.Request)) *Stream {
	return &Stream{func(hc huma.Context) {
		r, w := humachi.Unwrap(hc)
		write(w, r)
	}}
}

// file is a CSV file being sent. Until its first byte is written, a problem can be answered
// instead.
type file struct {
	w       http.ResponseWriter
	control *http.ResponseController
	name    string
	begun   bool
}

// Write is part of [io.Writer].
func (f *file) Write(p []byte) (int, error) {
	if !f.begun {
		h := f.w.Header()
		h.Set("Content-Type", "text/csv; charset=utf-8")
		h.Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
		f.begun = true
	}
	_ = f.control.SetWriteDeadline(time.Now().Add(Stall)) // not every writer has one
	return f.w.Write(p)
}

// SendFile answers with a CSV file of this name; write writes its content. If write fails after the
// first byte, the answer is cut off, so that no client takes a part for the whole file.
func (pl *Pipeline) SendFile(name string, write func(ctx context.Context, to io.Writer) error) *Stream {
	return Streamed(func(w http.ResponseWriter, r *http.Request) {
		out := &file{w: w, control: http.NewResponseController(w), name: name}
		err := write(r.Context(), out)
		switch {
		case err == nil:
		case !out.begun:
			pl.Problem(r.Context(), err).Write(w)
		default:
			if r.Context().Err() == nil {
				pl.log.ErrorContext(r.Context(), "export broke off", "file", name, "err", err)
			}
			panic(http.ErrAbortHandler)
		}
	})
}

// SendRows answers with a CSV file of the rows that each hands over, below the head.
func (pl *Pipeline) SendRows(name string, head []string, each func(ctx context.Context, row func(...any) error) error) *Stream {
	return pl.SendFile(name, func(ctx context.Context, to io.Writer) error {
		out := csv.NewWriter(to)
		if err := out.Write(head); err != nil {
			return err
		}
		cells := make([]string, 0, len(head))
		if err := each(ctx, func(values ...any) error {
			cells = cells[:0]
			for _, v := range values {
				cells = append(cells, spreadsheet.Cell(v))
			}
			return out.Write(cells)
		}); err != nil {
			return err
		}
		out.Flush()
		return out.Error()
	})
}

// Uploads keeps files that jobs read; see [workdb.Uploads].
type Uploads interface {
	SaveUpload(ctx context.Context, name string, r io.Reader, limit int64, by staff.Actor) (job.Upload, error)
	// RemoveUpload removes a file that was refused.
	RemoveUpload(ctx context.Context, id int64) error
}
