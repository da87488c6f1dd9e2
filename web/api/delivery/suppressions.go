package delivery

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/delivery/feedback"
	"dropbell/web/api/pipeline"
)

// Suppression is a mail address that nothing is sent to.
type Suppression struct {
	Address  string    `json:"address" doc:"In lower case." example:"ann@example.com"`
	Reason   string    `json:"reason" enum:"bounced,soft_bounced,complained,staff" doc:"soft_bounced: five mails in a row were refused for a reason that may pass."`
	Provider string    `json:"provider,omitempty" example:"ses"`
	Cause    string    `json:"cause,omitempty" doc:"The provider's words, or those given here." example:"550 5.1.1 unknown user"`
	Since    time.Time `json:"since"`
}

// SuppressionList is one page of suppressed addresses.
type SuppressionList struct {
	Suppressions []Suppression `json:"suppressions" nullable:"false" doc:"By address."`
	Next         string        `json:"next,omitempty" doc:"Pass as after to get the next page; absent on the last one."`
}

// SuppressionWish is an address to be suppressed.
type SuppressionWish struct {
	Address string `json:"address" maxLength:"254" example:"ann@example.com"`
	Cause   string `json:"cause,omitempty" maxLength:"200" doc:"Why; part of the audit log." example:"asked by phone"`
}

func suppressionJSON(s feedback.Suppression) Suppression {
	return Suppression{s.Address, s.Reason, s.Provider, s.Cause, s.Since.UTC()}
}

func (h *handlers) suppressionRoutes() {
	const path = "/admin/suppressions"
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, path, "list-suppressions", "List suppressed mail addresses",
		pipeline.Route{Description: "Addresses that nothing is sent to: recipients with one are skipped with the reason suppressed."}), h.listSuppressions)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, path, "add-suppression", "Suppress a mail address",
		pipeline.Route{Description: "An address that is suppressed already stays as it is.", Example: `{"address":"ann@example.com","cause":"asked by phone"}`}), h.addSuppression)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodDelete, path, "release-suppression", "Release a suppressed mail address",
		pipeline.Route{Description: "Mails are sent to it again, until a later report suppresses it anew.", Status: http.StatusNoContent,
			Codes: []string{"suppression_not_found"}}), h.releaseSuppression)
}

func (h *handlers) listSuppressions(ctx context.Context, in *struct {
	Prefix string `query:"prefix" maxLength:"254" doc:"Only addresses that begin so." example:"ann@"`
	After  string `query:"after" maxLength:"254" doc:"The value of next on the previous page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}) (*struct{ Body SuppressionList }, error) {
	if err := pipeline.Merge(pipeline.CheckText("query.prefix", in.Prefix), pipeline.CheckText("query.after", in.After)); err != nil {
		return nil, err
	}
	list, err := h.Suppressions.List(ctx, pipeline.ActorOf(ctx), in.Prefix, in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	next := pipeline.Next(list, in.Limit, func(last feedback.Suppression) string { return last.Address })
	return &struct{ Body SuppressionList }{SuppressionList{pipeline.Each(list, suppressionJSON), next}}, nil
}

func (h *handlers) addSuppression(ctx context.Context, in *struct{ Body SuppressionWish }) (*struct{ Body Suppression }, error) {
	if err := pipeline.Merge(pipeline.CheckText("address", in.Body.Address), pipeline.CheckText("cause", in.Body.Cause)); err != nil {
		return nil, err
	}
	s, _, err := h.Suppressions.Add(ctx, pipeline.ActorOf(ctx), in.Body.Address, in.Body.Cause)
	return &struct{ Body Suppression }{suppressionJSON(s)}, err
}

func (h *handlers) releaseSuppression(ctx context.Context, in *struct {
	Address string `query:"address" required:"true" maxLength:"254" example:"ann@example.com"`
}) (*struct{}, error) {
	if err := pipeline.CheckText("query.address", in.Address); err != nil {
		return nil, err
	}
	return nil, h.Suppressions.Release(ctx, pipeline.ActorOf(ctx), in.Address)
}
