package campaigns

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	campaignpages "dropbell/views/pages/campaigns"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) approvalPage(r *http.Request) (campaignpages.Approval, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return campaignpages.Approval{}, err
	}
	ctx := r.Context()
	p := campaignpages.Approval{Reason: shell.Reason(r), ReachTyped: r.PostFormValue("reach_typed")}
	if p.Review, err = h.Approvals.Review(ctx, shell.Actor(r), id); err != nil {
		return p, err
	}
	by := shell.Actor(r)
	p.AudienceNames = h.audienceNames(r, p.Now.Audience)
	if p.Now.Rule != nil {
		p.Names = h.DropNames(r, p.Now.Rule.Rule.Templates())
	}
	p.Zone, p.Mine = h.ShopZone(p.Campaign.ShopTimezone), p.MayDecide(by)
	p.Asks, p.Withdraws = p.MayAsk(by), p.MayWithdraw(by)
	if p.Grants, err = h.grantsOf(ctx, p.Review); err != nil {
		return p, err
	}
	s, err := h.sendingOf(r, p.Campaign)
	if err != nil {
		return p, err
	}
	p.Previews, err = h.texts(r, s)
	p.Previews.MayTry = false // those who judge do not try
	return p, err
}

// grantsOf loads the templates whose coupons both versions give away. A deleted template is shown
// by its number.
func (h *handlers) grantsOf(ctx context.Context, v approval.Review) (map[int64]template.Template, error) {
	found := map[int64]template.Template{}
	ids := []int64{v.Now.GrantTemplate}
	if base := v.Base(); base != nil {
		ids = append(ids, base.GrantTemplate)
	}
	for _, id := range ids {
		if id == 0 {
			continue
		}
		t, err := h.Campaigns.Granted(ctx, id)
		if errors.Is(err, template.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[id] = t
	}
	return found, nil
}

func (h *handlers) showApproval(w http.ResponseWriter, r *http.Request, p campaignpages.Approval) error {
	p.Reason = ""
	return h.Show(w, r, http.StatusOK, p.Page())
}

// requestOf is the request that was seen; nonsense is none that exists.
func requestOf(r *http.Request) int64 {
	n, err := strconv.ParseInt(r.PostFormValue("request"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (h *handlers) approveCampaign(w http.ResponseWriter, r *http.Request) error {
	return h.decided(w, r, "campaign.done.approve", func(id int64) (campaign.Campaign, error) {
		v, err := h.Approvals.Review(r.Context(), shell.Actor(r), id)
		if err == nil {
			err = v.CheckReach(shell.Actor(r), requestOf(r), typedReach(r), h.Now())
		}
		if err != nil {
			return v.Campaign, err
		}
		return h.Approvals.Approve(r.Context(), shell.Actor(r), id, requestOf(r), shell.Reason(r))
	})
}

func (h *handlers) refuseCampaign(w http.ResponseWriter, r *http.Request) error {
	return h.decided(w, r, "campaign.done.refuse", func(id int64) (campaign.Campaign, error) {
		return h.Approvals.Refuse(r.Context(), shell.Actor(r), id, requestOf(r), shell.Reason(r))
	})
}

func (h *handlers) withdrawRequest(w http.ResponseWriter, r *http.Request) error {
	return h.decided(w, r, "campaign.done.withdraw", func(id int64) (campaign.Campaign, error) {
		return h.Approvals.Withdraw(r.Context(), shell.Actor(r), id, requestOf(r), shell.Reason(r))
	})
}

func (h *handlers) askApproval(w http.ResponseWriter, r *http.Request) error {
	return h.decided(w, r, "campaign.done.ask", func(id int64) (campaign.Campaign, error) {
		return h.Approvals.Ask(r.Context(), shell.Actor(r), id, shell.Reason(r))
	})
}

// decided takes a step of an approval. A refusal shows the current page, with both versions and the
// reason.
func (h *handlers) decided(w http.ResponseWriter, r *http.Request, said string, do func(id int64) (campaign.Campaign, error)) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	next, err := do(id)
	kind := fault.KindOf(err)
	if err != nil && kind != fault.Conflict && kind != fault.Invalid {
		return err
	}
	if err == nil {
		return h.Done(w, r, pageparts.CampaignURL(id, ""), ui.Good, shell.Say(r, said, next.Name))
	}
	p, again := h.approvalPage(r)
	if again != nil {
		return again
	}
	status := http.StatusConflict
	if p.Errors = shell.FieldsOf(err); p.Errors != nil {
		status = http.StatusUnprocessableEntity
	} else {
		p.Error = ui.FaultText(r.Context(), err)
	}
	for _, f := range p.Errors {
		if f.Name != "reason" {
			p.Error = ui.Labelled(r.Context(), campaignpages.CampaignLabel(r.Context(), f.Name), ui.FieldText(r.Context(), f))
		}
	}
	return h.Show(w, r, status, p.Page())
}
