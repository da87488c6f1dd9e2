package api

import (
	"context"
	"encoding/csv"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"dropbell/domain/campaign"
	"dropbell/domain/staff"
	"dropbell/web/api/pipeline"
	"dropbell/web/spreadsheet"
)

// recipientsPage is how many recipients a file reads at a time.
const recipientsPage = 5000

// recipientsHead names the columns of the file of recipients.
var recipientsHead = []string{"user_id", "outcome", "reason", "variant", "channel", "at", "attempts", "detail", "next_retry_at", "opened_at", "batch_id",
	"not_before", "not_after", "reported", "cause"}

// recipientsRoute serves all recipients at once; op completes a route.
func (a *API) recipientsRoute(op func(method, path, id, summary string, more pipeline.Route) pipeline.Route) {
	r := op(http.MethodGet, "/{id}/recipients.csv", "export-campaign-recipients", "Export a campaign's recipients as CSV", pipeline.Route{
		Description: "A heading, then a line for each recipient that the filter selects, by ascending user id, with the values that the list of recipients shows. " +
			"Text that a spreadsheet would take for a formula has an apostrophe before it. An answer that breaks off is not complete; ask again."})
	r.Stream = true
	o := a.Operation(r)
	o.Responses["200"] = &huma.Response{Description: "The recipients.", Content: map[string]*huma.MediaType{"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}}}
	pipeline.Register(a.Pipeline, o, a.exportRecipients)
}

func (a *API) exportRecipients(ctx context.Context, in *struct {
	CampaignRef
	RecipientFilter
}) (*struct{ Body func(huma.Context) }, error) {
	id, err1 := pipeline.ParseID("path.id", in.ID)
	q, err2 := in.query()
	if err := pipeline.Merge(err1, err2); err != nil {
		return nil, err
	}
	q.Limit = recipientsPage
	by := pipeline.ActorOf(ctx)
	return &struct{ Body func(huma.Context) }{func(hc huma.Context) {
		r, w := humachi.Unwrap(hc)
		a.sendRecipients(w, r, by, id, q)
	}}, nil
}

func (a *API) sendRecipients(w http.ResponseWriter, r *http.Request, by staff.Actor, id int64, q campaign.RecipientQuery) {
	a.sendRows(w, r, "campaign-"+pipeline.Decimal(id)+"-recipients.csv", recipientsHead, func(row func(...any) error) error {
		return a.Campaigns.EachRecipient(r.Context(), by, id, q, func(o campaign.Outcome) error {
			return row(int64(o.UserID), string(o.Outcome), o.Reason, groupName(o.Variant), o.Channel.String(), o.At, o.Attempts, o.Detail,
				o.NextRetryAt, o.OpenedAt, o.BatchID, o.NotBefore, o.NotAfter, string(o.Reported), o.Cause)
		})
	})
}

// sendRows answers with a CSV file of the rows that each hands over. It is cut
// when one cannot be read, so that no part is taken for the whole.
func (a *API) sendRows(w http.ResponseWriter, r *http.Request, name string, head []string, each func(row func(...any) error) error) {
	answer := &csvAnswer{w: w, control: http.NewResponseController(w), name: name}
	out := csv.NewWriter(answer)
	err := out.Write(head)
	if err == nil {
		cells := make([]string, 0, len(head))
		err = each(func(values ...any) error {
			cells = cells[:0]
			for _, v := range values {
				cells = append(cells, spreadsheet.Cell(v))
			}
			return out.Write(cells)
		})
	}
	if err == nil {
		out.Flush()
		err = out.Error()
	}
	switch {
	case err == nil:
	case !answer.begun:
		a.Problem(r.Context(), err).Write(w)
	default:
		if r.Context().Err() == nil {
			a.Logger().ErrorContext(r.Context(), "export broke off", "file", name, "err", err)
		}
		panic(http.ErrAbortHandler)
	}
}
