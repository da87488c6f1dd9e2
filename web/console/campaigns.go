package console

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/views/i18n"
	"dropbell/views/pages"
	"dropbell/views/ui"
)

// earlierCampaigns is how many ended campaigns of the shop are shown beside one.
const earlierCampaigns = 3

func (c *Console) campaignRoutes() []route {
	const steps = "{step:publish|pause|resume|cancel}"
	return []route{
		get("/campaigns", staff.View, c.listCampaigns),
		get("/campaigns.csv", staff.View, c.exportCampaigns),
		post("/campaigns", staff.ManageCampaigns, c.createCampaign),
		get("/campaigns/new", staff.ManageCampaigns, c.newCampaign),
		post("/campaigns/preview", staff.ManageCampaigns, c.previewCampaign),
		get("/campaigns/{id}", staff.View, c.showCampaign),
		live(time.Second, get("/campaigns/{id}/progress", staff.View, c.campaignProgress)),
		live(10*time.Second, get("/campaigns/{id}/results", staff.View, c.campaignResults)),
		get("/campaigns/{id}/recipients", staff.View, c.listCampaignRecipients),
		get("/campaigns/{id}/recipients.csv", staff.View, c.exportCampaignRecipients),
		get("/campaigns/{id}/compare", staff.View, c.compareCampaign),
		get("/campaigns/{id}/edit", staff.ManageCampaigns, c.editCampaign),
		post("/campaigns/{id}/edit", staff.ManageCampaigns, c.saveCampaign),
		post("/campaigns/{id}/test", staff.ManageCampaigns, c.testCampaign),
		post("/campaigns/{id}/rate", staff.ManageCampaigns, c.changeRate),
		get("/campaigns/{id}/approval", staff.View, c.showApproval),
		post("/campaigns/{id}/approve", staff.ManageCampaigns, c.approveCampaign),
		post("/campaigns/{id}/refuse", staff.ManageCampaigns, c.refuseCampaign),
		post("/campaigns/{id}/ask", staff.ManageCampaigns, c.askApproval),
		get("/campaigns/{id}/"+steps, staff.ManageCampaigns, c.confirmCampaignStep),
		post("/campaigns/{id}/"+steps, staff.ManageCampaigns, c.takeCampaignStep),
	}
}

func (c *Console) listCampaigns(w http.ResponseWriter, r *http.Request) error {
	if r.FormValue("view") == "month" {
		return c.campaignCalendar(w, r)
	}
	p, q := c.campaignQuery(r)
	if len(p.Errors) > 0 {
		return c.listed(w, r, p.Results(), p.Page())
	}
	p.Export, q.Limit = exportURL(r), pageSize+1
	if n, err := strconv.ParseInt(r.FormValue("before"), 10, 64); err == nil && n > 0 {
		q.BeforeID = n
	}
	var err error
	if p.List, err = c.Campaigns.Campaigns(r.Context(), actor(r), q); err != nil {
		return err
	}
	if len(p.List) > pageSize {
		p.List = p.List[:pageSize]
		p.Next = withQuery(r, "before", strconv.FormatInt(p.List[pageSize-1].ID, 10))
	}
	if q.BeforeID != 0 {
		p.First = withQuery(r, "before", "")
	}
	return c.listed(w, r, p.Results(), p.Page())
}

// campaignQuery reads which campaigns are meant; what cannot be read is among
// the page's errors.
func (c *Console) campaignQuery(r *http.Request) (pages.Campaigns, campaign.Query) {
	p := pages.Campaigns{Search: strings.TrimSpace(r.FormValue("q")), From: r.FormValue("from"), To: r.FormValue("to")}
	f := c.filter(r)
	p.States = chosen(f, "state", campaign.States())
	q := campaign.Query{Search: p.Search, States: p.States}
	// Each campaign has its shop's days, as in the calendar.
	f.zone, q.Zone = time.UTC, c.DefaultZone
	q.FirstDay, q.AfterDay = f.days()
	p.Errors = f.broken.List
	return p, q
}

func (c *Console) loadCampaign(r *http.Request) (campaign.Status, error) {
	id, err := pathID(r)
	if err != nil {
		return campaign.Status{}, err
	}
	return c.Campaigns.Campaign(r.Context(), actor(r), id)
}

func (c *Console) campaignZone(tag string) *time.Location {
	if zone, err := time.LoadLocation(tag); err == nil && tag != "" {
		return zone
	}
	return c.DefaultZone
}

func (c *Console) showCampaign(w http.ResponseWriter, r *http.Request) error {
	st, err := c.loadCampaign(r)
	if err != nil {
		return err
	}
	return c.drawCampaign(w, r, http.StatusOK, pages.Campaign{Status: st})
}

// drawCampaign shows the page of a campaign.
func (c *Console) drawCampaign(w http.ResponseWriter, r *http.Request, status int, p pages.Campaign) (err error) {
	ctx, by, st := r.Context(), actor(r), p.Status
	p.Zone = c.campaignZone(st.ShopTimezone)
	if err := c.completeResults(r, &p); err != nil {
		return err
	}
	subject, err := c.Campaigns.Store.Subject(ctx, st.Campaign)
	if err != nil {
		return err
	}
	p.Previews = previews(subject)
	if p.Requests, err = c.Campaigns.Store.Requests(ctx, st.ID, 1); err != nil {
		return err
	}
	if p.SegmentNow, err = c.Campaigns.Store.SegmentRule(ctx, st.Audience); err != nil {
		return err
	}
	if p.Earlier, err = c.Campaigns.Earlier(ctx, by, st.Campaign, 0, earlierCampaigns); err != nil {
		return err
	}
	return c.show(w, r, status, p.Page())
}

// previews renders every text for somebody of whom nothing but the language is known.
func previews(s delivery.Subject) (list []pages.CampaignText) {
	for i, v := range s.Copy.Variants {
		var tags []string
		for tag := range v.Texts {
			tags = append(tags, tag)
		}
		slices.Sort(tags)
		for _, tag := range tags {
			list = append(list, pages.CampaignText{Locale: tag, Variant: i, Content: delivery.RenderCopy(s, i, user.User{Locale: tag}), Faults: unknownVariables(v.Texts[tag])})
		}
	}
	return list
}

// unknownVariables are the fields of a text with a variable that does not
// exist, as the check of a campaign names them.
func unknownVariables(t delivery.Text) (list []fault.Field) {
	for _, f := range []struct{ name, text string }{{"title", t.Title}, {"body", t.Body}} {
		if _, err := delivery.ParseText(f.text); err != nil {
			list = append(list, fault.Field{Name: f.name, Key: "rule.variables", Message: err.Error()})
		}
	}
	return list
}

// campaignProgress is the part of the page that keeps itself up to date.
func (c *Console) campaignProgress(w http.ResponseWriter, r *http.Request) error {
	st, err := c.loadCampaign(r)
	if err != nil {
		return err
	}
	if !partial(r) {
		redirect(w, r, pages.CampaignURL(st.ID, ""))
		return nil
	}
	if shown := r.FormValue("state"); shown != "" && shown != string(st.State) {
		w.Header().Set("HX-Trigger", reloadEvent) // other things can be done now
	}
	return c.show(w, r, http.StatusOK, pages.Campaign{Status: st, Zone: c.campaignZone(st.ShopTimezone)}.ProgressCard())
}

func (c *Console) campaignQuestion(r *http.Request, st campaign.Status) pages.Confirmation {
	step, l, zone := r.PathValue("step"), frame(r).Locale, c.campaignZone(st.ShopTimezone)
	points := []string{}
	kind := "primary"
	switch campaign.Transition(step) {
	case campaign.Publishing:
		if st.StartsAt.After(c.Now()) {
			points = append(points, l.T("campaign.confirm.publish.1", l.DateTime(st.StartsAt, zone)+" "+l.Zone(st.StartsAt, zone)))
		} else {
			points = append(points, l.T("campaign.confirm.publish.now"))
		}
		if n, exact, err := c.Campaigns.Estimate(r.Context(), actor(r), st.Audience); err == nil {
			points = append(points, reachPoint(l, n, exact))
			if above, err := c.Campaigns.ApprovalAbove(r.Context(), actor(r), st.Shop); err == nil && above > 0 && n > above {
				points = append(points, l.T("campaign.confirm.publish.ask", above))
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
	return pages.Confirmation{Active: "campaigns", Crumbs: campaignCrumbs(r, st.Campaign), ConfirmProps: ui.ConfirmProps{
		Title: l.T("campaign.confirm."+step+".title", st.Name), Points: points, Action: pages.CampaignURL(st.ID, step),
		Cancel: pages.CampaignURL(st.ID, ""), Submit: l.T("campaign.do." + step), Kind: kind}}
}

// leftOutPoints say who of the audience gets nothing: for comparison, or for
// want of coupons.
func (c *Console) leftOutPoints(r *http.Request, st campaign.Status) (points []string) {
	l := frame(r).Locale
	if st.Content.HoldOut > 0 {
		points = append(points, l.T("campaign.confirm.hold_out", st.Content.HoldOut))
	}
	if st.GrantTemplate == 0 {
		return points
	}
	// By whoever may see the campaign: its shop is that of the template.
	t, err := c.Templates.Template(r.Context(), actor(r), st.GrantTemplate)
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

func campaignCrumbs(r *http.Request, cp campaign.Campaign) []ui.Crumb {
	return []ui.Crumb{{Label: say(r, "nav.campaigns"), URL: "/campaigns"}, {Label: cp.Name, URL: pages.CampaignURL(cp.ID, "")}}
}

func (c *Console) confirmCampaignStep(w http.ResponseWriter, r *http.Request) error {
	st, err := c.loadCampaign(r)
	if err != nil {
		return err
	}
	if awaits(r, st) {
		redirect(w, r, pages.CampaignURL(st.ID, "approval"))
		return nil
	}
	return c.ask(w, r, http.StatusOK, c.campaignQuestion(r, st))
}

// awaits reports whether what is asked for is a publication that somebody has
// to approve: nobody does so without having seen what goes out.
func awaits(r *http.Request, st campaign.Status) bool {
	return campaign.Transition(r.PathValue("step")) == campaign.Publishing && st.State == campaign.Draft && st.ApprovalAskedAt != nil
}

func (c *Console) takeCampaignStep(w http.ResponseWriter, r *http.Request) error {
	st, err := c.loadCampaign(r)
	if err != nil {
		return err
	}
	if awaits(r, st) {
		redirect(w, r, pages.CampaignURL(st.ID, "approval"))
		return nil
	}
	step := r.PathValue("step")
	next, err := c.Campaigns.Do(r.Context(), actor(r), st.ID, 0, campaign.Transition(step), reason(r))
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.Invalid {
		return c.refuseCampaignStep(w, r, st, err)
	}
	if err != nil {
		return err
	}
	said := "campaign.done." + step
	if next.ApprovalAskedAt != nil {
		said = "campaign.done.ask"
	}
	return c.done(w, r, pages.CampaignURL(st.ID, ""), ui.Good, say(r, said, next.Name))
}

// refuseCampaignStep asks again and says why it was not possible.
func (c *Console) refuseCampaignStep(w http.ResponseWriter, r *http.Request, st campaign.Status, cause error) error {
	p := c.campaignQuestion(r, st)
	p.Error, p.Reason = ui.FaultText(r.Context(), cause), reason(r)
	for _, f := range fieldsOf(cause) {
		p.Error = pages.CampaignLabel(r.Context(), f.Name) + ": " + ui.FieldText(r.Context(), f)
	}
	status := http.StatusConflict
	if fault.KindOf(cause) == fault.Invalid {
		status = http.StatusUnprocessableEntity
	}
	return c.ask(w, r, status, p)
}

func (c *Console) testCampaign(w http.ResponseWriter, r *http.Request) error {
	st, err := c.loadCampaign(r)
	if err != nil {
		return err
	}
	p := pages.Campaign{Status: st, TestTo: strings.TrimSpace(r.PostFormValue("user_id")), TestVariant: r.PostFormValue("test_variant")}
	to, err := user.ParseID(p.TestTo)
	if err != nil {
		p.TestError = say(r, "rule.number")
		return c.drawCampaign(w, r, http.StatusUnprocessableEntity, p)
	}
	var variant *int
	if n, ok := pages.VariantNames()[p.TestVariant]; ok {
		variant = &n
	}
	sent, err := c.Campaigns.Test(r.Context(), actor(r), st.ID, to, variant)
	if fieldsOf(err) != nil {
		p.TestError = say(r, "rule.kind")
		return c.drawCampaign(w, r, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	o, err := c.Campaigns.TestOutcome(r.Context(), sent, to)
	if err != nil {
		return err
	}
	tone, text := pages.TestTold(r.Context(), o)
	return c.done(w, r, pages.CampaignURL(st.ID, ""), tone, text)
}

// changeRate is for campaigns that are under way. Others who changed the rate
// meanwhile are not overwritten; what a campaign does by itself is no obstacle.
func (c *Console) changeRate(w http.ResponseWriter, r *http.Request) error {
	st, err := c.loadCampaign(r)
	if err != nil {
		return err
	}
	typed := strings.TrimSpace(r.PostFormValue("rate_per_second"))
	refuse := func(status int, was, why string) error {
		return c.drawCampaign(w, r, status, pages.Campaign{Status: st, Rate: pages.TypedRate{Value: typed, Was: was, Error: why}})
	}
	rate, err := strconv.Atoi(typed)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return refuse(http.StatusUnprocessableEntity, r.PostFormValue("was_rate_per_second"), say(r, "rule.number"))
	}
	if was := shownRate(r); was != nil && *was != st.RatePerSecond && rate != st.RatePerSecond {
		now := strconv.Itoa(st.RatePerSecond)
		return refuse(http.StatusConflict, now, say(r, "rule.changed_to", now))
	}
	spec := st.Spec
	spec.RatePerSecond = rate
	_, err = c.Campaigns.Edit(r.Context(), actor(r), st.ID, st.Version, spec)
	if fields := fieldsOf(err); fields != nil {
		return c.done(w, r, pages.CampaignURL(st.ID, ""), ui.Bad, pages.CampaignLabel(r.Context(), fields[0].Name)+": "+ui.FieldText(r.Context(), fields[0]))
	}
	if err != nil {
		return err
	}
	return c.done(w, r, pages.CampaignURL(st.ID, ""), ui.Good, say(r, "campaign.done.rate"))
}
