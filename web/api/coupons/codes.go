package coupons

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/redeemcode"
	"dropbell/web/api/pipeline"
)

// CodeBatch is a number of redeem codes made together.
type CodeBatch struct {
	ID           string     `json:"id" example:"1"`
	TemplateID   string     `json:"template_id" example:"1"`
	Count        int64      `json:"count" doc:"How many codes." example:"1000"`
	State        string     `json:"state" enum:"generating,ready,stopped,revoked" doc:"Codes work, and can be exported, when ready; stopped: the job failed or was cancelled."`
	Generated    int64      `json:"generated" doc:"How many are made and checked." example:"1000"`
	Used         int64      `json:"used" doc:"How many a coupon was issued for." example:"12"`
	JobID        string     `json:"job_id" doc:"The background job." example:"7"`
	ProgressURL  string     `json:"progress_url" doc:"Where its progress is." example:"/api/v1/admin/templates/1/codes/1"`
	CreatedAt    time.Time  `json:"created_at"`
	ReadyAt      *time.Time `json:"ready_at,omitempty"`
	RevokedAt    *time.Time `json:"revoked_at,omitempty"`
	RevokeReason string     `json:"revoke_reason,omitempty"`
}

// CodeBatchList is one page of batches.
type CodeBatchList struct {
	Batches     []CodeBatch `json:"batches" nullable:"false" doc:"The newest first."`
	Outstanding int64       `json:"outstanding" doc:"Unused codes of batches that are not revoked." example:"988"`
	StockLeft   int64       `json:"stock_left" doc:"Coupons that are not issued. If there are fewer than codes outstanding, late redemptions are refused with sold_out; the code stays valid." example:"988"`
	Next        string      `json:"next,omitempty" doc:"Pass as before to get the next page; absent on the last one."`
}

// CodeWish is the request for a batch of codes.
type CodeWish struct {
	Count int64 `json:"count" minimum:"1" maximum:"1000000" doc:"How many." example:"1000"`
}

// CodeBatchRef names a batch in the path.
type CodeBatchRef struct {
	ID    string `path:"id" pattern:"^[1-9][0-9]{0,18}$"`
	Batch string `path:"batch" pattern:"^[1-9][0-9]{0,18}$"`
}

type codeBatchAnswer struct {
	Status   int
	Location string `header:"Location"`
	Body     CodeBatch
}

func (h *handlers) codeRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/templates/{id}/codes", "generate-codes", "Generate redeem codes",
		pipeline.Route{Description: "In the background, for a template that is obtained by code; progress_url has the progress. More codes than " +
			"stock are allowed: late redemptions are refused with sold_out.",
			Status: http.StatusAccepted, Example: `{"count":1000}`,
			Codes: []string{"template_not_found", "template_not_open", "not_by_code", "codes_not_configured", "codes_exhausted"}}), h.generateCodes)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/templates/{id}/codes", "list-codes", "List batches of redeem codes with their progress",
		pipeline.Route{Codes: []string{"template_not_found"}}), h.listCodes)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/templates/{id}/codes/{batch}", "get-codes", "Show a batch of redeem codes",
		pipeline.Route{Codes: []string{"template_not_found", "code_batch_not_found"}}), h.getCodes)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/templates/{id}/codes/{batch}/revoke", "revoke-codes", "Revoke the unused codes of a batch",
		pipeline.Route{Description: "This cannot be undone. Coupons that were issued stay.",
			Example: `{"reason":"sent to the wrong partner"}`, Codes: []string{"template_not_found", "code_batch_not_found", "codes_revoked"}}), h.revokeCodes)
	// The codes themselves are worth money: an export needs the right to manage
	// templates, and every export is in the audit log.
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/templates/{id}/codes.csv", "export-codes", "Export redeem codes as CSV",
		pipeline.Route{Traits: pipeline.Traits{Stream: true},
			Description: "All batches that are not revoked, or the one given; a heading, then a line for each code: code,batch_id. The codes are worth " +
				"money: every export is recorded in the audit log. An answer that breaks off is incomplete; repeat the request.",
			Codes: []string{"template_not_found", "code_batch_not_found", "no_codes", "codes_not_ready", "codes_revoked", "code_key_missing"},
			File:  "text/csv", FileText: "The codes."}), h.exportCodes)
}

func (h *handlers) exportCodes(ctx context.Context, in *struct {
	pipeline.Ref
	Batch string `query:"batch" pattern:"^[1-9][0-9]{0,18}$" doc:"Only this batch."`
}) (*pipeline.Stream, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	batch, err := pipeline.OptionalID("query.batch", in.Batch)
	if err != nil {
		return nil, err
	}
	x, err := h.Codes.Export(ctx, pipeline.ActorOf(ctx), id, batch)
	if errors.Is(err, redeemcode.ErrNotReady) {
		err = &fault.RetryAfter{Err: err, After: time.Second}
	}
	if err != nil {
		return nil, err
	}
	return h.SendFile(fmt.Sprintf("codes-%d.csv", x.TemplateID), func(ctx context.Context, to io.Writer) error { return h.Codes.Write(ctx, x, to) }), nil
}

func (h *handlers) generateCodes(ctx context.Context, in *struct {
	pipeline.Ref
	Body CodeWish
}) (*codeBatchAnswer, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	b, err := h.Codes.Generate(ctx, pipeline.ActorOf(ctx), id, in.Body.Count, pipeline.RequestKey(ctx))
	if err != nil {
		return nil, err
	}
	body := codeBatchJSON(b)
	return &codeBatchAnswer{http.StatusAccepted, body.ProgressURL, body}, nil
}

func (h *handlers) listCodes(ctx context.Context, in *struct {
	pipeline.Ref
	Before string `query:"before" pattern:"^[1-9][0-9]{0,18}$" doc:"The value of next on the previous page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}) (*struct{ Body CodeBatchList }, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	q := redeemcode.Query{TemplateID: id, Limit: in.Limit}
	if q.Before, err = pipeline.OptionalID("query.before", in.Before); err != nil {
		return nil, err
	}
	batches, err := h.Codes.Batches(ctx, pipeline.ActorOf(ctx), q)
	if err != nil {
		return nil, err
	}
	supply, err := h.Codes.Supply(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	list := CodeBatchList{Batches: make([]CodeBatch, len(batches)), Outstanding: supply.Outstanding, StockLeft: supply.Left}
	for i, b := range batches {
		list.Batches[i] = codeBatchJSON(b)
	}
	if n := len(batches); n == in.Limit {
		list.Next = pipeline.Decimal(batches[n-1].ID)
	}
	return &struct{ Body CodeBatchList }{list}, nil
}

func (in CodeBatchRef) parse() (template, batch int64, err error) {
	template, err1 := pipeline.ParseID("path.id", in.ID)
	batch, err2 := pipeline.ParseID("path.batch", in.Batch)
	return template, batch, pipeline.Merge(err1, err2)
}

func (h *handlers) getCodes(ctx context.Context, in *CodeBatchRef) (*codeBatchAnswer, error) {
	template, batch, err := in.parse()
	if err != nil {
		return nil, err
	}
	b, err := h.Codes.Batch(ctx, pipeline.ActorOf(ctx), template, batch)
	return &codeBatchAnswer{Status: http.StatusOK, Body: codeBatchJSON(b)}, err
}

func (h *handlers) revokeCodes(ctx context.Context, in *struct {
	CodeBatchRef
	Body struct {
		Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit log."`
	} `nameHint:"RevokeCodes"`
}) (*codeBatchAnswer, error) {
	template, batch, err := in.parse()
	if err != nil {
		return nil, err
	}
	b, err := h.Codes.Revoke(ctx, pipeline.ActorOf(ctx), template, batch, in.Body.Reason)
	if err != nil && pipeline.Recovering(ctx) && b.State == redeemcode.Revoked {
		err = nil
	}
	return &codeBatchAnswer{Status: http.StatusOK, Body: codeBatchJSON(b)}, err
}

func codeBatchJSON(b redeemcode.Batch) CodeBatch {
	state := string(b.State)
	if b.Stopped() {
		state = "stopped"
	}
	return CodeBatch{ID: pipeline.Decimal(b.ID), TemplateID: pipeline.Decimal(b.TemplateID), Count: b.Count, State: state, Generated: b.Generated, Used: b.Used,
		JobID: pipeline.Decimal(b.JobID), ProgressURL: fmt.Sprintf("/api/v1/admin/templates/%d/codes/%d", b.TemplateID, b.ID),
		CreatedAt: b.CreatedAt.UTC(), ReadyAt: pipeline.UTC(b.ReadyAt), RevokedAt: pipeline.UTC(b.RevokedAt), RevokeReason: b.RevokeReason}
}
