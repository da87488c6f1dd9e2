package campaigns

import (
	"errors"
	"net/http"

	"dropbell/domain/campaign"
	"dropbell/domain/fault"
	campaignpages "dropbell/views/pages/campaigns"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) undoPause(w http.ResponseWriter, r *http.Request, id int64) error {
	c, undone, err := h.Campaigns.UndoPause(r.Context(), shell.Actor(r), id, shell.ShownVersion(r))
	if err != nil {
		return h.NotUndone(w, r, pageparts.CampaignURL(id, ""), err)
	}
	return h.Undone(w, r, pageparts.CampaignURL(id, ""), c.Name, undone)
}

// deleteQuestion returns the confirmation of deleting a draft. For a campaign that is no draft it
// has no submit button.
func (h *handlers) deleteQuestion(r *http.Request, c campaign.Campaign) pageparts.Confirmation {
	return pageparts.DeleteDraft(r.Context(), pageparts.Draft{Active: "campaigns", Crumbs: campaignCrumbs(r, c), Name: c.Name,
		URL: pageparts.CampaignURL(c.ID, ""), Version: c.Version, Refusal: c.Deletable()})
}

func (h *handlers) confirmDelete(w http.ResponseWriter, r *http.Request, st campaign.Status) error {
	return h.AskStep(w, r, h.deleteQuestion(r, st.Campaign))
}

func (h *handlers) deleteDraft(w http.ResponseWriter, r *http.Request, id int64) error {
	c, err := h.Campaigns.Delete(r.Context(), shell.Actor(r), id, shell.ShownVersion(r), shell.Reason(r))
	switch {
	case errors.Is(err, campaign.ErrNotFound): // the form was sent twice
		return h.showDeleted(w, r)
	case fault.KindOf(err) == fault.Conflict:
		if now, again := h.loadCampaign(r); again == nil {
			c = now.Campaign
		}
		return h.StepRefused(w, r, h.deleteQuestion(r, c), err, campaignpages.CampaignLabel)
	case err != nil:
		return err
	}
	return h.DoneUndoable(w, r, "/campaigns", shell.Say(r, "draft.deleted", c.Name), ui.Undo{Action: pageparts.CampaignURL(id, "restore")})
}

// showDeleted shows how a deleted draft can be restored.
func (h *handlers) showDeleted(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	d, err := h.Campaigns.DeletedDraft(r.Context(), shell.Actor(r), id)
	if fault.KindOf(err) == fault.Denied {
		err = campaign.ErrNotFound
	}
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusGone, pageparts.Deleted{DeletedDraft: d, Active: "campaigns", URL: pageparts.CampaignURL(id, ""), List: "/campaigns"}.Page())
}

func (h *handlers) restoreDraft(w http.ResponseWriter, r *http.Request, id int64) error {
	c, undone, err := h.Campaigns.Restore(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	return h.Undone(w, r, pageparts.CampaignURL(id, ""), c.Name, undone)
}
