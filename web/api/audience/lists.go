package audience

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/web/api/pipeline"
)

// maxList bounds one file of ids, in bytes.
const maxList = 512 << 20

// ListWish is the name of a new list.
type ListWish struct {
	Name string `json:"name" minLength:"1" maxLength:"120" example:"Visitors of the fair"`
}

func (h *handlers) listRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/lists", "create-list", "Create an empty list of users",
		pipeline.Route{Status: http.StatusCreated, Example: `{"name":"Visitors of the fair"}`,
			Description: "A list is a segment whose members come from files: everything under /admin/segments is about it as well."}), h.createList)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPut, "/admin/lists/{id}/members", "add-list-members", "Add users to a list, from a file",
		pipeline.Route{Traits: pipeline.Traits{Stream: true}, Status: http.StatusAccepted,
			Description: "CSV or XLSX, of which the column user_id or id counts, or the first one; at most 512 MiB. A file that cannot be read, " +
				"is empty or has no ids at its beginning is refused. The rest is read in the background, " +
				"and adding a user again changes nothing. GET /admin/jobs/{job_id} shows the progress and the rows that could not be read, " +
				"GET /admin/segments/{id} the number of members. From when a campaign to the list is published, or waits for approval, " +
				"until its audience is read, no user can be added.",
			Codes:    []string{"segment_not_found", "segment_is_rules", "list_in_use", "unsupported_media_type", "upload_too_large", "malformed_json", "request_timeout"},
			Complete: h.describeMembers}), pipeline.ByID(h.addMembers))
}

// describeMembers describes the file of a list and the answer to it.
func (h *handlers) describeMembers(op *huma.Operation) {
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"text/csv": {
		Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}, Example: "id\n1001\n1002\n"},
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
	op.Responses["202"] = &huma.Response{Description: "The job that reads the file.", Content: map[string]*huma.MediaType{
		"application/json": {Schema: h.Schemas().Schema(reflect.TypeFor[StartedJob](), true, "")}}}
}

func (h *handlers) createList(ctx context.Context, in *struct{ Body ListWish }) (*segmentAnswer, error) {
	g, _, err := h.Segments.CreateList(ctx, pipeline.ActorOf(ctx), in.Body.Name, 0, pipeline.RequestKey(ctx))
	return answered(g), err
}

// addMembers stores the body as an upload and starts a job that adds the members.
func (h *handlers) addMembers(ctx context.Context, id int64) (*pipeline.Stream, error) {
	if err := pipeline.ActorOf(ctx).May(staff.ManageUsers, 0); err != nil {
		return nil, err
	}
	return pipeline.Streamed(func(w http.ResponseWriter, r *http.Request) {
		j, err := h.startFilling(w, r, id)
		if err != nil {
			h.Problem(r.Context(), err).Write(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(StartedJob{pipeline.Decimal(j.ID), pipeline.Decimal(id)}) // the client may be gone
	}), nil
}

func (h *handlers) startFilling(w http.ResponseWriter, r *http.Request, id int64) (job.Job, error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); strings.HasPrefix(kind, "multipart/") {
		return job.Job{}, pipeline.ErrMediaType.Because("send the file itself, as text/csv or XLSX")
	}
	by := pipeline.ActorOf(r.Context())
	if _, err := h.Segments.MayAdd(r.Context(), by, id); err != nil {
		return job.Job{}, err // before anything is stored
	}
	slow := &patient{ResponseController: http.NewResponseController(w), body: r.Body}
	u, err := h.Uploads.SaveUpload(r.Context(), "list-"+pipeline.Decimal(id), slow, maxList, by)
	if pipeline.IsTimeout(err) {
		return job.Job{}, pipeline.ErrTimeout
	}
	if err != nil && slow.broke != nil {
		return job.Job{}, pipeline.ErrMalformed.Because("the body could not be read to its end; nothing was stored")
	}
	if err != nil {
		return job.Job{}, err
	}
	j, err := h.Segments.AddFile(r.Context(), by, id, u.ID, "")
	if err != nil {
		_ = h.Uploads.RemoveUpload(context.WithoutCancel(r.Context()), u.ID) // else housekeeping does
	}
	if why, ok := errors.AsType[*fault.Fields](err); ok {
		for i := range why.List {
			why.List[i].Name = "body" // which is the file
		}
	}
	return j, err
}

// patient extends the deadline of a client that continues to send.
type patient struct {
	body io.Reader
	*http.ResponseController
	// broke is the error that ended the body early.
	broke error
}

// Read extends the deadline by the time that the next batch may take.
func (p *patient) Read(b []byte) (int, error) {
	at := time.Now().Add(pipeline.Stall)
	_ = p.SetReadDeadline(at)
	_ = p.SetWriteDeadline(at.Add(pipeline.Stall))
	n, err := p.body.Read(b)
	if err != nil && err != io.EOF {
		p.broke = err
	}
	return n, err
}
