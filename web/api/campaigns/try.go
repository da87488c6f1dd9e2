package campaigns

import (
	"context"

	"dropbell/domain/campaign"
	"dropbell/domain/fault"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

var errNoRecipient = fault.New(fault.NotFound, "recipient_not_found", "the user is not in the campaign's audience, or it has not been cut yet; ask again once the campaign has started")

func (h *handlers) testCampaign(ctx context.Context, in *struct {
	pipeline.Ref
	Body struct {
		UserID  string `json:"user_id" pattern:"^[1-9][0-9]{0,18}$" example:"1001"`
		Variant string `json:"variant,omitempty" enum:"a,b" doc:"Which of two versions; absent = the one that the user gets."`
	} `nameHint:"CampaignTest"`
}) (*struct{ Body CampaignRecipient }, error) {
	id, err1 := pipeline.ParseID("path.id", in.ID)
	to, err2 := pipeline.ParseID("body.user_id", in.Body.UserID)
	if err := pipeline.Merge(err1, err2); err != nil {
		return nil, err
	}
	var variant *int
	if in.Body.Variant != "" {
		variant = new(groups()[in.Body.Variant])
	}
	c, err := h.Campaigns.Test(ctx, pipeline.ActorOf(ctx), id, user.ID(to), variant)
	if err != nil {
		return nil, ofCampaign(err)
	}
	o, err := h.Campaigns.TestOutcome(ctx, c, user.ID(to))
	return &struct{ Body CampaignRecipient }{recipientJSON(o)}, err
}

func (h *handlers) previewCampaign(ctx context.Context, in *struct {
	pipeline.Ref
	UserID string `query:"user_id" pattern:"^[1-9][0-9]{0,18}$" doc:"The user to render it for; absent = a user without stored data."`
	Locale string `query:"locale" maxLength:"35" doc:"Without user_id: the reader's language." example:"zh-CN"`
}) (*struct{ Body CampaignPreview }, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	to, err := pipeline.OptionalID("query.user_id", in.UserID)
	if err != nil {
		return nil, err
	}
	if err := pipeline.CheckText("query.locale", in.Locale); err != nil {
		return nil, err
	}
	p, err := h.Campaigns.Preview(ctx, pipeline.ActorOf(ctx), id, user.ID(to), in.Locale)
	if err != nil {
		return nil, err
	}
	return &struct{ Body CampaignPreview }{CampaignPreview{p.Title, p.Text, p.HTML, groupName(p.Variant), p.Locale, p.Unknown}}, nil
}

// ShopRef names a shop in the path.
type ShopRef struct {
	Number string `path:"number" pattern:"^(0|[1-9][0-9]{0,18})$" doc:"0 = campaigns of no shop."`
}

func (r ShopRef) number() (int64, error) {
	if r.Number == "0" {
		return 0, nil
	}
	return pipeline.ParseID("path.number", r.Number)
}

func (h *handlers) campaignLimits(ctx context.Context, in *ShopRef) (*struct{ Body CampaignLimits }, error) {
	shop, err := in.number()
	if err != nil {
		return nil, err
	}
	l, err := h.Campaigns.Limits(ctx, pipeline.ActorOf(ctx), shop)
	return &struct{ Body CampaignLimits }{CampaignLimits{l.PerDay, l.PerWeek, l.ApprovalAbove}}, err
}

func (h *handlers) setCampaignLimits(ctx context.Context, in *struct {
	ShopRef
	Body CampaignLimits
}) (*struct{ Body CampaignLimits }, error) {
	shop, err := in.number()
	if err != nil {
		return nil, err
	}
	l := campaign.Limits{PerDay: in.Body.PerDay, PerWeek: in.Body.PerWeek, ApprovalAbove: in.Body.ApprovalAbove}
	if err := h.Campaigns.SetLimits(ctx, pipeline.ActorOf(ctx), shop, nil, l); err != nil {
		return nil, ofCampaign(err)
	}
	return &struct{ Body CampaignLimits }{in.Body}, nil
}
