package campaigns

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/web/api/parts"
	"dropbell/web/api/pipeline"
)

// FrozenRule is a segment in one of its versions.
type FrozenRule struct {
	ID      string      `json:"id" example:"3"`
	Name    string      `json:"name" example:"Gold members in China"`
	Version int64       `json:"version" example:"4"`
	Rule    *parts.Rule `json:"rule,omitempty" doc:"Absent for a list, whose members are ids."`
}

// CampaignReach is how many users an audience had at an instant.
type CampaignReach struct {
	Users int64     `json:"users" example:"1204000"`
	Exact bool      `json:"exact" doc:"Large audiences are estimated."`
	At    time.Time `json:"at"`
}

// ApprovalRequest is a request for approval of a campaign as it was then.
type ApprovalRequest struct {
	ID            string        `json:"id" doc:"Send it with the decision." example:"12"`
	State         string        `json:"state" enum:"asked,approved,refused,lapsed"`
	AskedBy       string        `json:"asked_by" example:"staff:2 Ada"`
	AskedAt       time.Time     `json:"asked_at"`
	Reason        string        `json:"reason,omitempty"`
	Reach         CampaignReach `json:"reach"`
	Campaign      CampaignWish  `json:"campaign" doc:"The campaign at the time of the request."`
	Segment       *FrozenRule   `json:"segment,omitempty" doc:"The rule of the audience's segment then."`
	DecidedBy     string        `json:"decided_by,omitempty" example:"staff:1 Li"`
	DecidedAt     *time.Time    `json:"decided_at,omitempty"`
	DecidedReason string        `json:"decided_reason,omitempty"`
	Allowed       *int64        `json:"allowed,omitempty" doc:"How many users could be reached without this approval, if Dropbell requested it because the audience was larger when it was read; absent if a member requested it." example:"100000"`
}

// CampaignApproval is the information for an approver's decision.
type CampaignApproval struct {
	CampaignID string           `json:"campaign_id" example:"9"`
	Request    *ApprovalRequest `json:"request,omitempty" doc:"The one that waits for a decision."`
	Lapsed     bool             `json:"lapsed" doc:"The campaign, or the rule of its segment, has changed since the request; approval must be requested again."`
	Before     *ApprovalRequest `json:"before,omitempty" doc:"The latest one that was decided or has lapsed."`
	Now        CampaignWish     `json:"now"`
	Segment    *FrozenRule      `json:"segment,omitempty" doc:"The rule of the audience's segment now."`
	Reach      *CampaignReach   `json:"reach,omitempty" doc:"Now; absent if it cannot be estimated quickly."`
	Needed     bool             `json:"needed" doc:"Whether the campaign, as it is now, needs approval; if not, every member who may send campaigns can publish it."`
	Changed    []string         `json:"changed" nullable:"false" doc:"The fields in which now differs from the lapsed request, else from the one before." example:"[\"title\",\"starts_at\"]"`
}

func (h *handlers) approvalRoutes(op func(method, path, id, summary string, more pipeline.Route) pipeline.Route) {
	codes := []string{"invalid_transition", "approval_required", "approval_lapsed", "approval_not_asked"}
	const example = `{"request_id":"12","reason":"as agreed with the shop"}`
	pipeline.Register(h.Pipeline, op(http.MethodGet, "/{id}/approval", "campaign-approval", "Show the request for approval of a campaign",
		pipeline.Route{Description: "With the campaign as it is now beside the requested one."}), pipeline.ByID(h.campaignApproval))
	pipeline.Register(h.Pipeline, op(http.MethodPost, "/{id}/approve", "approve-campaign", "Approve a campaign, which publishes it, or resumes a held one",
		pipeline.Route{Codes: append(codes, "already_published", "list_incomplete"), Example: example,
			Description: "Approves exactly the requested version: if the campaign, or the rule of its segment, has changed since, the answer is `approval_lapsed`."}), h.decide((*approval.Service).Approve, campaign.RequestApproved))
	pipeline.Register(h.Pipeline, op(http.MethodPost, "/{id}/refuse", "refuse-campaign", "Refuse to approve a campaign",
		pipeline.Route{Codes: codes, Example: example, Description: "The reason is required. The campaign stays a draft."}), h.decide((*approval.Service).Refuse, campaign.RequestRefused))
	pipeline.Register(h.Pipeline, op(http.MethodPost, "/{id}/withdraw", "withdraw-campaign", "Withdraw a request for approval",
		pipeline.Route{Codes: codes, Example: example, Description: "For members who cannot approve it: the requester and the creator of the campaign. The campaign stays a draft; another member can request approval."}), h.decide((*approval.Service).Withdraw, campaign.RequestLapsed))
}

func (h *handlers) campaignApproval(ctx context.Context, id int64) (*struct{ Body CampaignApproval }, error) {
	v, err := h.Approvals.Review(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	out := CampaignApproval{CampaignID: pipeline.Decimal(id), Request: requestJSON(v.Open), Before: requestJSON(v.Before), Lapsed: v.Lapsed(), Needed: v.Needed(),
		Now: wishOf(v.Now.Spec), Segment: frozenJSON(v.Now.Rule), Changed: []string{}}
	if v.Reach != nil {
		out.Reach = new(reachJSON(*v.Reach))
	}
	if base := v.Base(); base != nil {
		out.Changed = append(out.Changed, base.Differences(v.Now)...)
	}
	return &struct{ Body CampaignApproval }{out}, nil
}

// ApprovalDecision names the request that was seen.
type ApprovalDecision struct {
	RequestID string `json:"request_id" pattern:"^[1-9][0-9]{0,18}$" doc:"The request that is decided." example:"12"`
	Reason    string `json:"reason,omitempty" maxLength:"500" doc:"Reason; required to refuse."`
}

type approvalWish struct {
	pipeline.Ref
	Body ApprovalDecision
}

func (in *approvalWish) read() (id, request int64, err error) {
	id, err1 := pipeline.ParseID("path.id", in.ID)
	request, err2 := pipeline.ParseID("body.request_id", in.Body.RequestID)
	return id, request, pipeline.Merge(err1, err2, pipeline.CheckText("body.reason", in.Body.Reason))
}

// decision is one of the decisions about a request for approval.
type decision func(s *approval.Service, ctx context.Context, by staff.Actor, id, request int64, reason string) (campaign.Campaign, error)

// decide takes a decision; as is the state of the approval request afterwards. If an earlier
// attempt took the decision and its answer was lost, the repetition succeeds.
func (h *handlers) decide(take decision, as campaign.RequestState) func(context.Context, *approvalWish) (*campaignAnswer, error) {
	return func(ctx context.Context, in *approvalWish) (*campaignAnswer, error) {
		id, request, err := in.read()
		if err != nil {
			return nil, err
		}
		_, err = take(h.Approvals, ctx, pipeline.ActorOf(ctx), id, request, in.Body.Reason)
		if err != nil && pipeline.Recovering(ctx) && h.Approvals.Decided(ctx, id, request, as) {
			err = nil
		}
		if err != nil {
			return nil, ofCampaign(err)
		}
		return h.campaignByID(ctx, id)
	}
}

func requestJSON(r *campaign.Request) *ApprovalRequest {
	if r == nil {
		return nil
	}
	return &ApprovalRequest{ID: pipeline.Decimal(r.ID), State: string(r.State), AskedBy: r.AskedBy + " " + r.AskedName, AskedAt: r.AskedAt.UTC(),
		Reason: r.Reason, Reach: reachJSON(r.Reach), Campaign: wishOf(r.Spec), Segment: frozenJSON(r.Rule),
		DecidedBy: r.DecidedBy, DecidedAt: pipeline.UTC(r.DecidedAt), DecidedReason: r.DecidedReason, Allowed: r.Allowed}
}

func reachJSON(r campaign.Reach) CampaignReach { return CampaignReach{r.Users, r.Exact, r.At.UTC()} }

func frozenJSON(f *campaign.FrozenRule) *FrozenRule {
	if f == nil {
		return nil
	}
	out := &FrozenRule{ID: pipeline.Decimal(f.SegmentID), Name: f.Name, Version: f.Version}
	if f.Kind == segment.ByRules {
		if raw, err := json.Marshal(f.Rule); err == nil { // strings and lists of them: always
			out.Rule = new(parts.Rule(raw))
		}
	}
	return out
}
