package campaigns

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/increment"
	"dropbell/domain/staff"
	campaignpages "dropbell/views/pages/campaigns"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// earlierCampaigns is how many ended campaigns of the shop are shown next to a campaign.
const earlierCampaigns = 3

func (h *handlers) listCampaigns(w http.ResponseWriter, r *http.Request) error {
	if r.FormValue("view") == "month" {
		return h.campaignCalendar(w, r)
	}
	p, campaigns := h.campaigns(r)
	past, paged, err := campaigns.Page(r)
	if err != nil {
		return err
	}
	if p.Paged = paged; len(p.Errors) == 0 {
		p.Export = shell.ExportURL(r)
	}
	p.Brought, p.Audiences = make(map[int64]campaign.Results, len(past)), campaignpages.AudienceNames{}
	for _, c := range past {
		p.List = append(p.List, c.Row.Status)
		p.Brought[c.Row.ID] = c.Row.Results
		h.cells[c.Cell].addNames(r, p.Audiences, c.Row.Audience)
	}
	return h.Listed(w, r, p.Results(), p.Page())
}

// campaigns returns the campaigns of all databases that the filter of the list selects, with their
// results.
func (h *handlers) campaigns(r *http.Request) (campaignpages.Campaigns, shell.List[shell.Found[campaign.Past], string]) {
	p := campaignpages.Campaigns{Search: strings.TrimSpace(r.FormValue("q")), From: r.FormValue("from"), To: r.FormValue("to")}
	f := h.Filter(r)
	p.States = shell.Chosen(f, "state", campaign.States())
	q := campaign.Query{Search: p.Search, States: p.States}
	// Each campaign has its shop's days, as in the calendar.
	f.Zone, q.Zone = time.UTC, h.DefaultZone
	q.FirstDay, q.AfterDay = f.Days()
	return p, shell.Joined(h.Shell, r, h.cells, func(h *handlers, r *http.Request) shell.List[campaign.Past, int64] {
		return shell.List[campaign.Past, int64]{Keys: shell.IDs(), Broken: f.Broken.List, Read: func(before int64, limit int) ([]campaign.Past, error) {
			q := q
			q.BeforeID, q.Limit = before, limit
			list, err := h.Campaigns.Campaigns(r.Context(), shell.Actor(r), q)
			if err != nil {
				return nil, err
			}
			return h.Campaigns.WithResults(r.Context(), list)
		}, KeyOf: func(c campaign.Past) int64 { return c.ID }}
	}, func(a, b campaign.Past) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
}

// exportCampaigns sends the campaigns that the filter of the list selects. The columns after
// the balance are the orders of recipients who were not held out, what text messages cost, and what
// the messages brought; amounts are minor units.
func (h *handlers) exportCampaigns(w http.ResponseWriter, r *http.Request) error {
	_, l := h.campaigns(r)
	if len(l.Broken) > 0 {
		return &fault.Fields{List: l.Broken}
	}
	head := []string{"id", "shop_number", "shop_name", "name", "state", "channel", "audience", "starts_at", "ends_at", "reserved", "sent", "skipped", "expired", "dead", "in_flight", "currency", "orders", "ordered", "discount", "revenue"}
	return shell.FileOf("campaigns", slices.Concat(head, shell.SMSHead(), shell.IncrementHead()), func(found shell.Found[campaign.Past]) []any {
		p := found.Row
		n, s := p.Progress, p.Results.Meant().Spent
		cells := []any{p.ID, p.Shop, p.ShopName, p.Name, string(p.State), p.Channel.String(), string(p.Audience.Kind), p.StartsAt, p.EndsAt,
			n.Reserved, n.Sent, n.Skipped, n.Expired, n.Dead, n.InFlight, s.Currency, s.Orders, int64(s.Ordered), int64(s.Discount), int64(s.Revenue())}
		var brought *increment.Increment
		if i, ok := p.Results.Increment(); ok {
			brought = &i
		}
		return slices.Concat(cells, shell.SMSCells(p.Results.SMS), shell.IncrementCells(brought))
	}).Send(h.Shell, w, r, func(write func(shell.Found[campaign.Past]) error) error {
		return l.Pages(func(list []shell.Found[campaign.Past]) error { return shell.Each(list)(write) })
	})
}

// audienceNames returns the names of the segments and drops of the audiences, as far as the viewer may
// see them; without a name the number is shown.
func (h *handlers) audienceNames(r *http.Request, list ...campaign.Audience) campaignpages.AudienceNames {
	names := campaignpages.AudienceNames{}
	h.addNames(r, names, list...)
	return names
}

func (h *handlers) addNames(r *http.Request, names campaignpages.AudienceNames, list ...campaign.Audience) {
	for _, a := range list {
		key := campaignpages.AudienceKey(a)
		if _, known := names[key]; known || a.ID == 0 {
			continue
		}
		names[key] = ""
		if campaignpages.OfTemplate(string(a.Kind)) {
			if t, err := shell.VisibleTemplate(r, h.Templates, a.ID); err == nil && t != nil {
				names[key] = t.Name
			}
		} else if h.Segments != nil {
			if s, err := h.Segments.Segment(r.Context(), shell.Actor(r), a.ID); err == nil {
				names[key] = s.Name
			}
		}
	}
}

func (h *handlers) loadCampaign(r *http.Request) (campaign.Status, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return campaign.Status{}, err
	}
	return h.Campaigns.Campaign(r.Context(), shell.Actor(r), id)
}

func (h *handlers) showCampaign(w http.ResponseWriter, r *http.Request) error {
	st, err := h.loadCampaign(r)
	if errors.Is(err, campaign.ErrNotFound) {
		return h.showDeleted(w, r)
	}
	if err != nil {
		return err
	}
	return h.drawCampaign(w, r, http.StatusOK, campaignpages.Campaign{Status: st})
}

// drawCampaign shows the page of a campaign. What the page consists of is read at the same time.
func (h *handlers) drawCampaign(w http.ResponseWriter, r *http.Request, status int, p campaignpages.Campaign) error {
	ctx, by, st := r.Context(), shell.Actor(r), p.Status
	p.Zone = h.ShopZone(st.ShopTimezone)
	p.Course = campaignpages.CampaignCourse{Status: st, Zone: p.Zone}
	err := shell.Together(append(h.resultReads(r, &p),
		func() (err error) { p.Carrier, err = h.carrier(r, st); return err },
		func() (err error) { p.Waiting, err = h.Campaigns.Waiting(ctx, st); return err },
		func() (err error) {
			p.Course.Series, p.Course.Looks, err = h.Campaigns.Course(ctx, by, st.ID)
			return err
		},
		func() (err error) { p.Previews, err = h.storedTexts(r, st.Campaign); return err },
		func() (err error) { p.Requests, err = h.Approvals.Requests(ctx, st.Campaign, 1); return err },
		func() (err error) {
			if p.SegmentNow, err = h.Campaigns.SegmentRule(ctx, st.Audience); err != nil {
				return err
			}
			if rule := cmp.Or(st.Rule, p.SegmentNow); rule != nil {
				p.Names = h.DropNames(r, rule.Rule.Templates())
			}
			return nil
		},
		func() error { p.AudienceNames = h.audienceNames(r, st.Audience); return nil },
		func() (err error) {
			p.Earlier, err = h.Campaigns.Earlier(ctx, by, st.Campaign, 0, earlierCampaigns)
			return err
		},
	)...)
	if err != nil {
		return err
	}
	return h.Show(w, r, status, p.Page())
}

// storedTexts returns the messages of a stored campaign.
func (h *handlers) storedTexts(r *http.Request, c campaign.Campaign) (campaignpages.Texts, error) {
	s, err := h.sendingOf(r, c)
	if err != nil {
		return campaignpages.Texts{}, err
	}
	texts, err := h.texts(r, s)
	if c.Shop == 0 { // members of some shops send no text that is of none
		texts.MayTry = texts.MayTry && ui.MayEverywhere(r.Context(), staff.ManageCampaigns)
	}
	return texts, err
}

// campaignProgress is the part of the page that keeps itself up to date.
func (h *handlers) campaignProgress(w http.ResponseWriter, r *http.Request) error {
	st, err := h.loadCampaign(r)
	if err != nil {
		return err
	}
	if !shell.Partial(r) {
		shell.Redirect(w, r, pageparts.CampaignURL(st.ID, ""))
		return nil
	}
	if shown := r.FormValue("state"); shown != "" && shown != string(st.State) {
		w.Header().Set("HX-Trigger", shell.ReloadEvent) // other things can be done now
	}
	p := campaignpages.Campaign{Status: st, Zone: h.ShopZone(st.ShopTimezone)}
	if p.Carrier, err = h.carrier(r, st); err != nil {
		return err
	}
	if p.Waiting, err = h.Campaigns.Waiting(r.Context(), st); err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, p.ProgressCard())
}

// carrier returns the state of the campaign's channel.
func (h *handlers) carrier(r *http.Request, st campaign.Status) (delivery.ChannelStatus, error) {
	all, err := h.States.Get(r.Context())
	return all[st.Channel], err
}

func campaignCrumbs(r *http.Request, cp campaign.Campaign) []ui.Crumb {
	return []ui.Crumb{{Label: shell.Say(r, "nav.campaigns"), URL: "/campaigns"}, {Label: cp.Name, URL: pageparts.CampaignURL(cp.ID, "")}}
}

func (h *handlers) testCampaign(w http.ResponseWriter, r *http.Request, st campaign.Status) error {
	p := campaignpages.Campaign{Status: st, TestTo: strings.TrimSpace(r.PostFormValue("user_id")), TestVariant: r.PostFormValue("test_variant")}
	e := &fault.Fields{}
	to := h.NamedUser(r, p.TestTo, e)
	if to == 0 {
		p.TestError = shell.Say(r, "required.user_id")
		if len(e.List) > 0 {
			p.TestError = ui.FieldText(r.Context(), e.List[0])
		}
		return h.drawCampaign(w, r, http.StatusUnprocessableEntity, p)
	}
	var variant *int
	if n, ok := campaignpages.VariantNames()[p.TestVariant]; ok {
		variant = &n
	}
	sent, err := h.Campaigns.Test(r.Context(), shell.Actor(r), st.ID, to, variant)
	if shell.FieldsOf(err) != nil {
		p.TestError = shell.Say(r, "rule.kind")
		return h.drawCampaign(w, r, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	o, err := h.Campaigns.TestOutcome(r.Context(), sent, to)
	if err != nil {
		return err
	}
	tone, text := campaignpages.TestTold(r.Context(), o)
	return h.Done(w, r, pageparts.CampaignURL(st.ID, ""), tone, text)
}

// changeRate changes the rate of a running campaign. A concurrent change of the rate is not
// overwritten; a concurrent change of state does not prevent the change.
func (h *handlers) changeRate(w http.ResponseWriter, r *http.Request, st campaign.Status) error {
	typed := strings.TrimSpace(r.PostFormValue("rate_per_second"))
	refuse := func(status int, was, why string) error {
		return h.drawCampaign(w, r, status, campaignpages.Campaign{Status: st, Rate: campaignpages.TypedRate{Value: typed, Was: was, Error: why}})
	}
	rate, err := strconv.Atoi(shell.Narrow(typed))
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return refuse(http.StatusUnprocessableEntity, r.PostFormValue("was_rate_per_second"), shell.Say(r, "rule.number"))
	}
	if was := shell.ShownRate(r); was != nil && *was != st.RatePerSecond && rate != st.RatePerSecond {
		now := strconv.Itoa(st.RatePerSecond)
		return refuse(http.StatusConflict, now, shell.Say(r, "rule.changed_to", now))
	}
	spec := st.Spec
	spec.RatePerSecond = rate
	_, err = h.Campaigns.Edit(r.Context(), shell.Actor(r), st.ID, st.Version, spec)
	if fields := shell.FieldsOf(err); fields != nil {
		return h.Done(w, r, pageparts.CampaignURL(st.ID, ""), ui.Bad, ui.Labelled(r.Context(), campaignpages.CampaignLabel(r.Context(), fields[0].Name), ui.FieldText(r.Context(), fields[0])))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, pageparts.CampaignURL(st.ID, ""), ui.Good, shell.Say(r, "campaign.done.rate"))
}
