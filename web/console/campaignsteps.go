package console

import (
	"net/http"
	"strconv"

	"dropbell/domain/campaign"
	"dropbell/domain/fault"
	"dropbell/views/i18n"
	campaignpages "dropbell/views/pages/campaigns"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// campaignQuestion asks before a step and says what it will do; where the state
// does not allow it there is nothing to submit.
func (c *Console) campaignQuestion(r *http.Request, st campaign.Status) pageparts.Confirmation {
	step, l, zone := r.PathValue("step"), shell.Frame(r).Locale, c.campaignZone(st.ShopTimezone)
	if no := st.Allows(campaign.Transition(step)); no != nil {
		return pageparts.Confirmation{Active: "campaigns", Crumbs: campaignCrumbs(r, st.Campaign), ConfirmProps: ui.ConfirmProps{
			Title: l.T("confirm.not."+step, st.Name), Points: []string{ui.FaultText(r.Context(), no)}, Cancel: pageparts.CampaignURL(st.ID, ""), NoReason: true}}
	}
	points, hidden := []string{}, [][2]string{{"version", strconv.FormatInt(st.Version, 10)}}
	kind := "primary"
	switch campaign.Transition(step) {
	case campaign.Publishing:
		if st.StartsAt.After(c.Now()) {
			points = append(points, l.T("campaign.confirm.publish.1", l.DateTime(st.StartsAt, zone)+" "+l.Zone(st.StartsAt, zone)))
		} else {
			points = append(points, l.T("campaign.confirm.publish.now"))
		}
		above, unknown := c.Campaigns.ApprovalAbove(r.Context(), shell.Actor(r), st.Shop)
		if unknown == nil {
			hidden = append(hidden, [2]string{"alone_up_to", strconv.FormatInt(above, 10)})
		}
		if n, exact, err := c.Campaigns.Estimate(r.Context(), shell.Actor(r), st.Audience); err == nil {
			points = append(points, reachPoint(l, n, exact))
			if unknown == nil && above > 0 && n > above {
				points = append(points, l.T("campaign.confirm.publish.ask", above))
				if st.Creator != shell.Actor(r).Label {
					points = append(points, l.T("campaign.confirm.publish.not_yours"))
				}
			}
		}
		if carrier, err := c.carrier(r, st); err == nil {
			if halted := pageparts.ChannelHalted(r.Context(), carrier, c.Now(), zone); halted != "" {
				points = append(points, halted)
			}
		}
		points = append(points, c.leftOutPoints(r, st)...)
		points = append(points, l.T("campaign.confirm.publish.2"))
	case campaign.Pausing:
		points = append(points, l.T("campaign.confirm.pause.1"))
	case campaign.Resuming:
		points = append(points, l.T("campaign.confirm.resume.1"))
	case campaign.Cancelling:
		points, kind = append(points, l.T("campaign.confirm.cancel.1")), "danger"
	}
	return pageparts.Confirmation{Active: "campaigns", Crumbs: campaignCrumbs(r, st.Campaign), ConfirmProps: ui.ConfirmProps{
		Title: l.T("campaign.confirm."+step+".title", st.Name), Points: points, Action: pageparts.CampaignURL(st.ID, step),
		Cancel: pageparts.CampaignURL(st.ID, ""), Submit: l.T("campaign.do." + step), Kind: kind,
		Hidden: hidden}}
}

// shownAbove is up to how many users one person may send to alone, as the
// question before the step said.
func shownAbove(r *http.Request) (int64, error) {
	n, err := strconv.ParseInt(r.PostFormValue("alone_up_to"), 10, 64)
	if err != nil || n < 0 {
		return 0, fault.ErrStale
	}
	return n, nil
}

// leftOutPoints say who of the audience gets nothing: for comparison, or for
// want of coupons.
func (c *Console) leftOutPoints(r *http.Request, st campaign.Status) (points []string) {
	l := shell.Frame(r).Locale
	if st.Content.HoldOut > 0 {
		points = append(points, l.T("campaign.confirm.hold_out", st.Content.HoldOut))
	}
	if st.GrantTemplate == 0 {
		return points
	}
	// By whoever may see the campaign: its shop is that of the template.
	t, err := c.Templates.Template(r.Context(), shell.Actor(r), st.GrantTemplate)
	if err != nil {
		return points // the publication itself says what is wrong with it
	}
	return append(points, l.T("campaign.confirm.grant", t.Name, l.Number(t.StockLeft())), l.T("campaign.confirm.grant_short"))
}

// reachPoint says whom a publication writes to.
func reachPoint(l *i18n.Locale, n int64, exact bool) string {
	if exact {
		return l.N("campaign.confirm.reach", n)
	}
	return l.N("campaign.confirm.reach_about", n)
}

func (c *Console) confirmCampaignStep(w http.ResponseWriter, r *http.Request) error {
	st, err := c.loadCampaign(r)
	if err != nil {
		return err
	}
	if wait, err := c.awaits(r, st); err != nil {
		return err
	} else if wait {
		shell.Redirect(w, r, pageparts.CampaignURL(st.ID, "approval"))
		return nil
	}
	return c.askStep(w, r, c.campaignQuestion(r, st))
}

// awaits reports whether what is asked for is a publication that somebody has
// to approve: nobody does so without having seen what goes out. Once the limit
// or the audience is such that one person alone may send it, nobody has to.
func (c *Console) awaits(r *http.Request, st campaign.Status) (bool, error) {
	if campaign.Transition(r.PathValue("step")) != campaign.Publishing || st.State != campaign.Draft || st.ApprovalAskedAt == nil {
		return false, nil
	}
	v, err := c.Campaigns.Review(r.Context(), shell.Actor(r), st.ID)
	return v.Needed(), err
}

func (c *Console) takeCampaignStep(w http.ResponseWriter, r *http.Request) error {
	st, err := c.loadCampaign(r)
	if err != nil {
		return err
	}
	if wait, err := c.awaits(r, st); err != nil {
		return err
	} else if wait {
		shell.Redirect(w, r, pageparts.CampaignURL(st.ID, "approval"))
		return nil
	}
	step := r.PathValue("step")
	if campaignStepTaken(st, campaign.Transition(step)) { // a form that was sent twice, or a colleague
		return c.Done(w, r, pageparts.CampaignURL(st.ID, ""), ui.Good, shell.Say(r, "campaign.done."+step, st.Name))
	}
	version, err := shell.ShownVersion(r, step == string(campaign.Publishing))
	if err != nil {
		return c.refuseCampaignStep(w, r, st, err)
	}
	next, err := c.campaignStep(r, st.ID, version, campaign.Transition(step))
	if fault.KindOf(err) == fault.Conflict { // show what there is now
		cause := err
		if st, err = c.loadCampaign(r); err != nil {
			return err
		}
		switch wait, err := c.awaits(r, st); {
		case err != nil:
			return err
		case wait:
			shell.Redirect(w, r, pageparts.CampaignURL(st.ID, "approval"))
			return nil
		case campaignStepTaken(st, campaign.Transition(step)):
			return c.Done(w, r, pageparts.CampaignURL(st.ID, ""), ui.Good, shell.Say(r, "campaign.done."+step, st.Name))
		}
		return c.refuseCampaignStep(w, r, st, cause)
	}
	if fault.KindOf(err) == fault.Invalid {
		return c.refuseCampaignStep(w, r, st, err)
	}
	if err != nil {
		return err
	}
	said := "campaign.done." + step
	if next.ApprovalAskedAt != nil {
		said = "campaign.done.ask"
	}
	return c.Done(w, r, pageparts.CampaignURL(st.ID, ""), ui.Good, shell.Say(r, said, next.Name))
}

// campaignStep takes the step. A publication depends on what the question said.
func (c *Console) campaignStep(r *http.Request, id, version int64, step campaign.Transition) (campaign.Campaign, error) {
	if step != campaign.Publishing {
		return c.Campaigns.Do(r.Context(), shell.Actor(r), id, version, step, shell.Reason(r))
	}
	shown, err := shownAbove(r)
	if err != nil {
		return campaign.Campaign{}, err
	}
	return c.Campaigns.Publish(r.Context(), shell.Actor(r), id, version, shown, shell.Reason(r))
}

// campaignStepTaken reports whether what the step is for is so already.
func campaignStepTaken(st campaign.Status, step campaign.Transition) bool {
	switch step {
	case campaign.Publishing:
		return st.State == campaign.Scheduled || st.State == campaign.Running
	case campaign.Pausing:
		return st.State == campaign.Paused
	case campaign.Cancelling:
		return st.State == campaign.Cancelled
	}
	return false
}

// refuseCampaignStep asks again and says why it was not possible.
func (c *Console) refuseCampaignStep(w http.ResponseWriter, r *http.Request, st campaign.Status, cause error) error {
	return c.stepRefused(w, r, c.campaignQuestion(r, st), cause, campaignpages.CampaignLabel)
}
