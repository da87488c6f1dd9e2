package campaigns

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/views/i18n"
	campaignpages "dropbell/views/pages/campaigns"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// campaignQuestion returns the confirmation of a step with its effects. If the state does not allow
// the step, it has no submit button.
func (h *handlers) campaignQuestion(r *http.Request, st campaign.Status) pageparts.Confirmation {
	step, l, zone := r.PathValue("step"), shell.Frame(r).Locale, h.ShopZone(st.ShopTimezone)
	if no := st.Allows(campaign.Transition(step)); no != nil {
		return pageparts.Confirmation{Active: "campaigns", Crumbs: campaignCrumbs(r, st.Campaign), ConfirmProps: ui.ConfirmProps{
			Title: l.T("confirm.not."+step, st.Name), Points: []string{ui.FaultText(r.Context(), no)}, Cancel: pageparts.CampaignURL(st.ID, ""), NoReason: true}}
	}
	points, hidden := []string{}, [][2]string{{"version", strconv.FormatInt(st.Version, 10)}}
	var typed templ.Component
	kind, keep, submit, wrong := "primary", "", l.T("campaign.do."+step), ""
	switch campaign.Transition(step) {
	case campaign.Publishing:
		if wrong = h.emptyLink(r, st); wrong != "" {
			submit = ""
		}
		if st.StartsAt.After(h.Now()) {
			points = append(points, l.T("campaign.confirm.publish.1", l.DateTime(st.StartsAt, zone)+" "+l.Zone(st.StartsAt, zone)))
		} else {
			points = append(points, l.T("campaign.confirm.publish.now"))
		}
		above, unknown := h.Campaigns.ApprovalAbove(r.Context(), shell.Actor(r), st.Shop)
		if unknown == nil {
			hidden = append(hidden, [2]string{"alone_up_to", strconv.FormatInt(above, 10)})
		}
		if n, exact, err := h.Campaigns.Estimate(r.Context(), shell.Actor(r), st.Audience); err == nil {
			points = append(points, reachPoint(l, n, exact))
			if st.Audience.Kind == campaign.Everybody && submit != "" {
				typed = campaignpages.TypedReach(n, r.PostFormValue("reach_typed"))
			}
			if unknown == nil && above > 0 && n > above {
				points = append(points, l.T("campaign.confirm.publish.ask", above))
				if st.Creator != shell.Actor(r).Label {
					points = append(points, l.T("campaign.confirm.publish.not_yours"))
				}
			}
		}
		if carrier, err := h.carrier(r, st); err == nil {
			if halted := pageparts.ChannelHalted(r.Context(), carrier, h.Now(), zone); halted != "" {
				points = append(points, halted)
			}
		}
		points = append(points, languagePoints(r, st.Content)...)
		points = append(points, h.leftOutPoints(r, st)...)
		points = append(points, l.T("campaign.confirm.publish.2"))
	case campaign.Pausing:
		points = append(points, l.T("campaign.confirm.pause.1"))
	case campaign.Resuming:
		points = append(points, l.T("campaign.confirm.resume.1"))
	case campaign.Cancelling:
		points, kind, keep = append(points, l.T("campaign.confirm.cancel.1")), "danger", l.T("confirm.keep")
	}
	return pageparts.Confirmation{Active: "campaigns", Crumbs: campaignCrumbs(r, st.Campaign), Inside: typed, ConfirmProps: ui.ConfirmProps{
		Title: l.T("campaign.confirm."+step+".title", st.Name), Points: points, Action: pageparts.CampaignURL(st.ID, step),
		Cancel: pageparts.CampaignURL(st.ID, ""), Keep: keep, Submit: submit, Kind: kind,
		Hidden: hidden, Error: wrong}}
}

// emptyLink says which text of the campaign shows a link that leads nowhere; "" = none does.
func (h *handlers) emptyLink(r *http.Request, st campaign.Status) string {
	broken, err := h.Campaigns.Check(r.Context(), shell.Actor(r), st.Spec)
	if err != nil {
		return "" // the publication itself says what is wrong
	}
	for _, f := range broken {
		if f.Key == "rule.empty_link" {
			return ui.Labelled(r.Context(), campaignpages.CampaignLabel(r.Context(), typedField(f, nil)), ui.FieldText(r.Context(), f))
		}
	}
	return ""
}

// typedReach returns the number of users that a form showed for sending to everybody, and the typed
// number, which may have marks between thousands.
func typedReach(r *http.Request) (t campaign.TypedReach) {
	number := func(text string) *int64 {
		digits := strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, shell.Narrow(text))
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return nil
		}
		return &n
	}
	t.Shown, t.Typed = number(r.PostFormValue("reach_shown")), number(r.PostFormValue("reach_typed"))
	return t
}

// shownAbove returns the number of users above which approval is required, as the form showed it;
// nil if the form has no number.
func shownAbove(r *http.Request) *int64 {
	n, err := strconv.ParseInt(r.PostFormValue("alone_up_to"), 10, 64)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// languagePoints list the languages of the campaign, if there are several.
func languagePoints(r *http.Request, c delivery.Copy) []string {
	l := shell.Frame(r).Locale
	var names []string
	for _, v := range c.Variants {
		for _, tag := range tagsOf(v) {
			if name := l.LanguageName(tag); tag != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{l.T("campaign.confirm.languages", strings.Join(names, l.T("ui.list_join")))}
}

// leftOutPoints say which users of the audience get no message: the hold-out group, or users
// without a coupon when the stock is too small.
func (h *handlers) leftOutPoints(r *http.Request, st campaign.Status) (points []string) {
	l := shell.Frame(r).Locale
	if st.Content.HoldOut > 0 {
		points = append(points, l.T("campaign.confirm.hold_out", st.Content.HoldOut))
	}
	if st.GrantTemplate == 0 {
		return points
	}
	// Checked with the viewer's permissions: the campaign belongs to the template's shop.
	t, err := h.Templates.Template(r.Context(), shell.Actor(r), st.GrantTemplate)
	if err != nil {
		return points // the publication itself says what is wrong with it
	}
	return append(points, l.T("campaign.confirm.grant", t.Name, l.Number(t.StockLeft())), l.T("campaign.confirm.grant_short"))
}

// reachPoint names the users that a publication writes to.
func reachPoint(l *i18n.Locale, n int64, exact bool) string {
	if exact {
		return l.N("campaign.confirm.reach", n)
	}
	return l.N("campaign.confirm.reach_about", n)
}

func (h *handlers) confirmCampaignStep(w http.ResponseWriter, r *http.Request) error {
	st, err := h.loadCampaign(r)
	if err != nil {
		return err
	}
	wait, err := h.Campaigns.NeedsApproval(r.Context(), shell.Actor(r), st, campaign.Transition(r.PathValue("step")))
	if err != nil {
		return err
	}
	if wait {
		shell.Redirect(w, r, pageparts.CampaignURL(st.ID, "approval"))
		return nil
	}
	return h.AskStep(w, r, h.campaignQuestion(r, st))
}

func (h *handlers) takeCampaignStep(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	step := r.PathValue("step")
	st, outcome, err := h.Campaigns.Take(r.Context(), shell.Actor(r), id, campaign.Wish{Step: campaign.Transition(step),
		Version: shell.ShownVersion(r), AloneUpTo: shownAbove(r), Reach: typedReach(r), Reason: shell.Reason(r)})
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.Invalid {
		return h.refuseCampaignStep(w, r, st, err)
	}
	if err != nil {
		return err
	}
	said := "campaign.done." + step
	switch outcome {
	case campaign.NeedsApproval:
		shell.Redirect(w, r, pageparts.CampaignURL(st.ID, "approval"))
		return nil
	case campaign.Changed: // show what there is now
		return h.refuseCampaignStep(w, r, st, fault.ErrStale)
	case campaign.Asked:
		said = "campaign.done.ask"
	}
	if step == string(campaign.Pausing) && outcome == campaign.Taken {
		return h.DoneUndoable(w, r, pageparts.CampaignURL(st.ID, ""), shell.Say(r, said, st.Name),
			ui.Undo{Action: pageparts.CampaignURL(st.ID, "undo"), Fields: [][2]string{{"version", strconv.FormatInt(st.Version, 10)}}})
	}
	return h.Done(w, r, pageparts.CampaignURL(st.ID, ""), ui.Good, shell.Say(r, said, st.Name))
}

// refuseCampaignStep shows the confirmation again with the error.
func (h *handlers) refuseCampaignStep(w http.ResponseWriter, r *http.Request, st campaign.Status, cause error) error {
	return h.StepRefused(w, r, h.campaignQuestion(r, st), cause, campaignpages.CampaignLabel)
}

// kept redirects to the campaign after its form was saved, and schedules it if the form asks for that
// and showed from how many users on approval is needed. The confirmation asks where more is to be said:
// sending to everybody, or at once. A campaign that may not be scheduled stays a draft. If the form is
// sent again, it finds the campaign saved and goes on here.
func (h *handlers) kept(w http.ResponseWriter, r *http.Request, c campaign.Campaign) error {
	url, above := pageparts.CampaignURL(c.ID, ""), shownAbove(r)
	if r.PostFormValue("publish") == "" {
		return h.Done(w, r, url, ui.Good, shell.Say(r, "campaign.done.save", c.Name))
	}
	if above == nil || c.Audience.Kind == campaign.Everybody || !c.StartsAt.After(h.Now()) {
		return h.Done(w, r, pageparts.CampaignURL(c.ID, string(campaign.Publishing)), ui.Good, shell.Say(r, "campaign.done.save", c.Name))
	}
	_, outcome, err := h.Campaigns.Take(r.Context(), shell.Actor(r), c.ID, campaign.Wish{Step: campaign.Publishing, Version: c.Version, AloneUpTo: above})
	if outcome == campaign.Changed {
		err = fault.ErrStale
	}
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.Invalid {
		return h.Done(w, r, url, ui.Warn, shell.Say(r, "campaign.done.not_scheduled", c.Name, ui.FaultText(r.Context(), err)))
	}
	switch {
	case err != nil:
		return err
	case outcome == campaign.NeedsApproval:
		shell.Redirect(w, r, pageparts.CampaignURL(c.ID, "approval"))
		return nil
	case outcome == campaign.Asked:
		return h.Done(w, r, url, ui.Good, shell.Say(r, "campaign.done.ask", c.Name))
	}
	return h.Done(w, r, url, ui.Good, shell.Say(r, "campaign.done.publish", c.Name))
}
