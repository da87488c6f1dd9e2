// Package campaigns holds the part of the API about campaigns, their approval, their
// results, recipes, and the limits of shops.
package campaigns

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/delivery"
	"dropbell/domain/recipe"
	"dropbell/domain/user"
	"dropbell/web/api/parts"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// CampaignList is one page of campaigns.
type CampaignList struct {
	Campaigns []Campaign `json:"campaigns" nullable:"false" doc:"The newest first."`
	Next      string     `json:"next,omitempty" doc:"Pass as before to get the next page; absent on the last one."`
}

// CampaignBalance is a campaign's account, recomputed from the rows.
type CampaignBalance struct {
	CampaignID string        `json:"campaign_id" example:"1"`
	Balanced   bool          `json:"balanced"`
	Difference int64         `json:"difference"`
	Counted    parts.Account `json:"counted" doc:"The sums over messages, bitmaps and exception rows."`
	Kept       parts.Account `json:"kept" doc:"The values of the counters."`
	Twice      int64         `json:"twice" doc:"Users in more than one batch."`
}

// CampaignPreview is a message as one reader gets it.
type CampaignPreview struct {
	Title   string `json:"title"`
	Text    string `json:"text"`
	HTML    string `json:"html" doc:"The whole mail."`
	Variant string `json:"variant" enum:"a,b,remaining,hold_out" doc:"Which content the user gets."`
	Locale  string `json:"locale" doc:"The language whose text is shown; empty = the default language, also where nothing is written in the reader's." example:"zh-CN"`
	Unknown bool   `json:"user_unknown,omitempty" doc:"The user is unknown: the text is rendered without a name, in the default language."`
}

// CampaignRecipient is the outcome of a campaign for one user.
type CampaignRecipient struct {
	UserID      string     `json:"user_id" example:"1001"`
	Outcome     string     `json:"outcome" enum:"in_flight,sent,failed,recovered,skipped,expired,dead,discarded" doc:"failed waits for a retry or for the end of quiet hours; recovered was sent after a failure."`
	Reason      string     `json:"reason,omitempty" example:"opted_out"`
	Detail      string     `json:"detail,omitempty" doc:"The provider's last answer."`
	Attempts    int        `json:"attempts,omitempty"`
	BatchID     string     `json:"batch_id" example:"1"`
	At          *time.Time `json:"at" nullable:"true" doc:"When the outcome was recorded; null while there is none, and for a message sent at the first attempt, whose time lies between not_before and not_after."`
	NotBefore   *time.Time `json:"not_before,omitempty" doc:"Where at is null, the outcome came about at this instant or later."`
	NotAfter    *time.Time `json:"not_after,omitempty" doc:"Where at is null, the outcome came about at this instant or earlier."`
	NextRetryAt *time.Time `json:"next_retry_at,omitempty"`
	Channel     string     `json:"channel" enum:"app,email,sms,webpush,webhook"`
	Variant     string     `json:"variant" enum:"a,b,remaining,hold_out" doc:"Which content the user gets."`
	OpenedAt    *time.Time `json:"opened_at,omitempty" doc:"When the user first followed the message's link."`
	Reported    string     `json:"reported,omitempty" enum:"delivered,bounced,soft_bounced,complained" doc:"The provider's later report on a sent message."`
	Cause       string     `json:"cause,omitempty" doc:"The words of that report."`
}

// AudienceEstimate says how many users an audience has.
type AudienceEstimate struct {
	Users int64 `json:"users" example:"12000"`
	Exact bool  `json:"exact" doc:"Large audiences are estimated."`
}

// CampaignLimits are the limits that a shop sets to its campaigns.
type CampaignLimits struct {
	PerDay        int   `json:"per_day" minimum:"0" doc:"The largest number of campaign messages to one user in 24 hours; 0 = no limit." example:"1"`
	PerWeek       int   `json:"per_week" minimum:"0" doc:"In seven days; 0 = no limit." example:"3"`
	ApprovalAbove int64 `json:"approval_above" minimum:"0" doc:"Campaigns to more users than this need approval by a second person; 0 = never." example:"100000"`
}

type campaignAnswer = pipeline.Versioned[Campaign]

const campaignExample = `{"name":"Spring","title":"Spring sale","body":"Hello {{name|there}}, everything is 20 % off.","channel":"app",` +
	`"audience":{"all":true},"starts_at":"2027-01-01T12:00:00Z","ends_at":"2027-01-02T12:00:00Z","rate_per_second":100}`

// Deps are the use cases of this package. All are required.
type Deps struct {
	Campaigns *campaign.Service
	Approvals *approval.Service
	Recipes   *recipe.Service
}

type handlers struct {
	*pipeline.Pipeline
	Deps
}

// Routes registers the operations.
func Routes(pl *pipeline.Pipeline, d Deps) {
	h := &handlers{pl, d}
	op := func(method, path, id, summary string, more pipeline.Route) pipeline.Route {
		more = pipeline.Staff(method, "/admin/campaigns"+path, id, summary, more)
		if path != "" && path != "/estimate" {
			more.Codes = append(more.Codes, "campaign_not_found")
		}
		return more
	}
	pipeline.Register(h.Pipeline, op(http.MethodPost, "", "create-campaign", "Create a campaign",
		pipeline.Route{Status: http.StatusCreated, Example: campaignExample, Description: "It is a draft until it is published.", Codes: []string{"shop_moved"}}), h.createCampaign)
	pipeline.Register(h.Pipeline, op(http.MethodGet, "", "list-campaigns", "List campaigns", pipeline.Route{Description: "The newest first.", Cells: &cells.List{At: "created_at", ID: "id"}}), h.listCampaigns)
	pipeline.Register(h.Pipeline, op(http.MethodPost, "/estimate", "estimate-audience", "Say about how many users an audience has",
		pipeline.Route{Example: `{"audience":{"all":true}}`, Codes: []string{"segment_not_found", "template_not_found"}}), h.estimateAudience)
	pipeline.Register(h.Pipeline, op(http.MethodGet, "/{id}", "get-campaign", "Show a campaign and its progress", pipeline.Route{}), pipeline.ByID(h.campaignByID))
	pipeline.Register(h.Pipeline, op(http.MethodPatch, "/{id}", "change-campaign", "Change a campaign", pipeline.Route{
		Description: "A draft may change in every way; once published, only its rate, until it is over.",
		Codes:       []string{"precondition_required", "stale_version", "invalid_transition"}, Example: `{"rate_per_second":50}`}), pipeline.Patching(h.changeCampaign))
	for _, step := range []struct {
		name  campaign.Transition
		text  string
		codes []string
	}{
		{campaign.Publishing, "Publish a campaign, which starts at starts_at", []string{"already_published", "list_incomplete"}},
		{campaign.Pausing, "Pause a campaign", nil},
		{campaign.Resuming, "Resume a paused campaign", nil},
		{campaign.Cancelling, "Cancel a campaign; its remaining recipients are skipped", nil},
	} {
		pipeline.Register(h.Pipeline, op(http.MethodPost, "/{id}/"+string(step.name), string(step.name)+"-campaign", step.text,
			pipeline.Route{Codes: append([]string{"stale_version", "invalid_transition", "approval_required", "approval_lapsed"}, step.codes...), Example: `{"reason":"as planned"}`}), h.campaignStep(step.name))
	}
	h.approvalRoutes(op)
	pipeline.Register(h.Pipeline, op(http.MethodPost, "/{id}/test", "test-campaign", "Send the message to one user now",
		pipeline.Route{Codes: []string{"channel_unavailable"}, Example: `{"user_id":"1001"}`,
			Description: "In any state of the campaign. The answer contains the outcome after at most three seconds."}), h.testCampaign)
	pipeline.Register(h.Pipeline, op(http.MethodGet, "/{id}/preview", "preview-campaign", "Render the message as a user gets it", pipeline.Route{}), h.previewCampaign)
	pipeline.Register(h.Pipeline, op(http.MethodGet, "/{id}/balance", "campaign-balance", "Recompute a campaign's account",
		pipeline.Route{Description: "audience = sent + skipped + expired + dead + in flight, counted from the rows."}), pipeline.ByID(h.campaignBalance))
	h.resultRoutes(op)
	h.recipeRoutes()
	const limits = "/admin/shops/{number}/campaign-limits"
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, limits, "get-campaign-limits", "Show the limits of a shop's campaigns", pipeline.Route{}), h.campaignLimits)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPut, limits, "set-campaign-limits", "Change the limits of a shop's campaigns", pipeline.Route{
		Description: "For admins only, so that a marketer cannot raise the limit of their own campaigns.", Example: `{"per_day":1,"per_week":3,"approval_above":0}`}), h.setCampaignLimits)
}

func (h *handlers) createCampaign(ctx context.Context, in *struct{ Body CampaignWish }) (*campaignAnswer, error) {
	spec, err := in.Body.spec()
	if err != nil {
		return nil, err
	}
	c, err := h.Campaigns.Create(ctx, pipeline.ActorOf(ctx), spec, pipeline.RequestKey(ctx))
	if err != nil {
		return nil, ofCampaign(err)
	}
	return pipeline.AtVersion(c.Version, campaignJSON(campaign.Status{Campaign: c})), nil
}

// campaignByID answers with one campaign as it is now.
func (h *handlers) campaignByID(ctx context.Context, id int64) (*campaignAnswer, error) {
	st, err := h.Campaigns.Campaign(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	w, err := h.Campaigns.Waiting(ctx, st)
	if err != nil {
		return nil, err
	}
	st.Progress = st.Progress.Awake(w.Users)
	answer := campaignJSON(st)
	if answer.Progress.Waiting = w.Users; w.Users > 0 {
		answer.Progress.WaitingUntil = new(w.Next.UTC())
	}
	return pipeline.AtVersion(st.Version, answer), nil
}

func (h *handlers) changeCampaign(ctx context.Context, id, version int64, patch CampaignPatch) (*campaignAnswer, error) {
	old, err := h.Campaigns.Campaign(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	spec, err := patch.apply(old.Spec)
	if err != nil {
		return nil, err
	}
	if _, err := h.Campaigns.Edit(ctx, pipeline.ActorOf(ctx), id, version, spec); err != nil {
		return nil, ofCampaign(err)
	}
	return h.campaignByID(ctx, id)
}

// CampaignReason is why a step of a campaign is taken.
type CampaignReason struct{ pipeline.Reason }

func (h *handlers) campaignStep(step campaign.Transition) func(context.Context, *pipeline.Step[CampaignReason]) (*campaignAnswer, error) {
	return pipeline.Stepping[CampaignReason](func(ctx context.Context, id, version int64, reason string) (*campaignAnswer, error) {
		take := h.Campaigns.Do
		if pipeline.Recovering(ctx) {
			take = h.Campaigns.Redo
		}
		if _, err := take(ctx, pipeline.ActorOf(ctx), id, version, step, reason); err != nil {
			return nil, ofCampaign(err)
		}
		return h.campaignByID(ctx, id)
	})
}

type campaignFilter struct {
	State   []string `query:"state" nullable:"false" doc:"Only these states, separated by commas." enum:"draft,scheduled,running,paused,finished,cancelled,failed"`
	Shop    string   `query:"shop" pattern:"^[1-9][0-9]{0,18}$" doc:"Only this shop."`
	Channel string   `query:"channel" enum:"app,email,sms,webpush,webhook"`
	Q       string   `query:"q" maxLength:"120" doc:"A part of the name, or the id."`
	From    string   `query:"from" doc:"Only starts from this instant on." example:"2027-01-01T00:00:00Z"`
	To      string   `query:"to" doc:"Only starts before this instant." example:"2027-02-01T00:00:00Z"`
	Limit   int      `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Before  string   `query:"before" pattern:"^[1-9][0-9]{0,18}$" doc:"The value of next on the previous page."`
}

func (in *campaignFilter) query() (campaign.Query, error) {
	q := campaign.Query{Search: in.Q, Limit: in.Limit}
	for _, s := range in.State {
		q.States = append(q.States, campaign.State(s))
	}
	errs := []error{pipeline.CheckText("query.q", in.Q)}
	var err error
	if in.Shop != "" {
		shop, err := pipeline.ParseID("query.shop", in.Shop)
		q.Shops, errs = []int64{shop}, append(errs, err)
	}
	if in.Channel != "" {
		c, err := delivery.ParseChannel(in.Channel)
		q.Channel, errs = &c, append(errs, err)
	}
	q.BeforeID, err = pipeline.OptionalID("query.before", in.Before)
	errs = append(errs, err)
	q.From, err = pipeline.ParseInstant("query.from", in.From)
	errs = append(errs, err)
	q.To, err = pipeline.ParseInstant("query.to", in.To)
	return q, pipeline.Merge(append(errs, err)...)
}

func (h *handlers) listCampaigns(ctx context.Context, in *campaignFilter) (*struct{ Body CampaignList }, error) {
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	list, err := h.Campaigns.Campaigns(ctx, pipeline.ActorOf(ctx), q)
	if err != nil {
		return nil, err
	}
	next := pipeline.Next(list, in.Limit, func(last campaign.Status) string { return pipeline.Decimal(last.ID) })
	return &struct{ Body CampaignList }{CampaignList{pipeline.Each(list, campaignJSON), next}}, nil
}

func (h *handlers) estimateAudience(ctx context.Context, in *struct {
	Body struct {
		Audience CampaignAudience `json:"audience"`
	} `nameHint:"AudienceQuestion"`
}) (*struct{ Body AudienceEstimate }, error) {
	audience, err := in.Body.Audience.audience()
	if err != nil {
		return nil, err
	}
	n, exact, err := h.Campaigns.Estimate(ctx, pipeline.ActorOf(ctx), audience)
	return &struct{ Body AudienceEstimate }{AudienceEstimate{n, exact}}, ofCampaign(err)
}

func (h *handlers) campaignBalance(ctx context.Context, id int64) (*struct{ Body CampaignBalance }, error) {
	b, err := h.Campaigns.Balance(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &struct{ Body CampaignBalance }{CampaignBalance{pipeline.Decimal(id), b.Difference() == 0, b.Difference(), parts.AccountOf(b.Counted), parts.AccountOf(b.Kept), b.Twice}}, nil
}

func recipientJSON(o campaign.Outcome) CampaignRecipient {
	w := CampaignRecipient{UserID: o.UserID.String(), Outcome: string(o.Outcome), Reason: o.Reason, Detail: o.Detail, Attempts: o.Attempts,
		BatchID: pipeline.Decimal(o.BatchID), NextRetryAt: pipeline.UTC(o.NextRetryAt), Channel: o.Channel.String(), Variant: groupName(o.Variant), OpenedAt: pipeline.UTC(o.OpenedAt),
		NotBefore: pipeline.UTC(o.NotBefore), NotAfter: pipeline.UTC(o.NotAfter), Reported: string(o.Reported), Cause: o.Cause}
	if !o.At.IsZero() {
		w.At = pipeline.UTC(&o.At)
	}
	return w
}

type campaignUser struct {
	pipeline.Ref
	UserID string `path:"user_id" pattern:"^[1-9][0-9]{0,18}$"`
}

func (h *handlers) campaignRecipient(ctx context.Context, in *campaignUser) (*struct{ Body CampaignRecipient }, error) {
	id, err1 := pipeline.ParseID("path.id", in.ID)
	to, err2 := pipeline.ParseID("path.user_id", in.UserID)
	if err := pipeline.Merge(err1, err2); err != nil {
		return nil, err
	}
	o, found, err := h.Campaigns.Recipient(ctx, pipeline.ActorOf(ctx), id, user.ID(to))
	if err == nil && !found {
		err = errNoRecipient
	}
	if err != nil {
		return nil, err
	}
	return &struct{ Body CampaignRecipient }{recipientJSON(o)}, nil
}
