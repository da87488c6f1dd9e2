package campaigns

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
	campaignpages "dropbell/views/pages/campaigns"
	pageparts "dropbell/views/pages/parts"
	"dropbell/web/console/shell"
)

const (
	// firstRecipients is how many recipients the campaign's own page shows.
	firstRecipients = 10
	// recipientExport is how many recipients an export reads at a time.
	recipientExport = 5000
	// comparedChoice is how many earlier campaigns a page offers to choose from.
	comparedChoice = 20
)

// resultReads returns the reads of the results of the last count, of the first recipients and, if
// the request asks for it, of a new balance. They set fields of p.
func (h *handlers) resultReads(r *http.Request, p *campaignpages.Campaign) []func() error {
	if p.StartedAt == nil {
		return nil
	}
	ctx, by := r.Context(), shell.Actor(r)
	return []func() error{
		func() (err error) { _, p.Results, err = h.Campaigns.Results(ctx, by, p.ID); return err },
		func() error {
			list, err := h.Campaigns.RecipientsOf(ctx, p.Campaign, campaign.RecipientQuery{Limit: firstRecipients})
			p.Recipients = campaignpages.CampaignRecipients{Status: p.Status, Zone: p.Zone, List: list.List, Part: true}
			shell.NameEach(h.Shell, r, list.List, recipientOf)
			return err
		},
		func() error {
			if r.FormValue("account") != "now" {
				return nil
			}
			b, err := h.Campaigns.Balance(ctx, by, p.ID)
			p.Balance = &b
			return err
		},
	}
}

// campaignResults renders the part of the page with the campaign's results.
func (h *handlers) campaignResults(w http.ResponseWriter, r *http.Request, st campaign.Status) error {
	if !shell.Partial(r) {
		shell.Redirect(w, r, pageparts.CampaignURL(st.ID, ""))
		return nil
	}
	_, results, err := h.Campaigns.Results(r.Context(), shell.Actor(r), st.ID)
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, campaignpages.CampaignResults{Status: st, Results: results, Zone: h.ShopZone(st.ShopTimezone)}.Card())
}

// campaignRecipientQuery reads the filter of recipients, and returns the fields that cannot be
// read.
func (h *handlers) campaignRecipientQuery(r *http.Request) (f campaignpages.RecipientFilter, q campaign.RecipientQuery, broken []fault.Field) {
	e := &fault.Fields{}
	f.User = strings.TrimSpace(r.FormValue("user"))
	q.Only = h.NamedUser(r, f.User, e)
	unknown := func(name string) { e.Add(name, "rule.kind", "must be one of the choices") }
	switch o := r.FormValue("outcome"); {
	case o == "":
	case o == pageparts.HeldOutOutcome:
		f.Outcome, q.Outcome, q.Reason = o, delivery.Skipped, delivery.ReasonHoldOut
	case o == pageparts.WaitingOutcome:
		f.Outcome, q.Outcome, q.Reason = o, delivery.Failed, delivery.ReasonQuietHours
	case o == pageparts.UndecidedOutcome:
		f.Outcome, q.Outcome, q.Reason = o, delivery.Failed, delivery.ReasonTest
	case o == string(delivery.Failed):
		f.Outcome, q.Outcome, q.Awake = o, delivery.Failed, true
	case slices.Contains(delivery.ListedOutcomes(), delivery.Outcome(o)):
		f.Outcome, q.Outcome = o, delivery.Outcome(o)
	default:
		unknown("outcome")
	}
	switch reason := r.FormValue("reason"); {
	case reason == "":
	case !slices.Contains(campaign.Reasons(), reason):
		unknown("reason")
	case q.Reason == "": // being held out, or asleep, is a reason already
		f.Reason, q.Reason = reason, reason
	}
	if name := r.FormValue("variant"); name != "" {
		variant, ok := campaignpages.VariantNames()[name]
		if f.Variant, q.Variant = name, &variant; !ok {
			unknown("variant")
		}
	}
	return f, q, e.List
}

func (h *handlers) listCampaignRecipients(w http.ResponseWriter, r *http.Request) error {
	st, err := h.loadCampaign(r)
	if err != nil {
		return err
	}
	f, q, broken := h.campaignRecipientQuery(r)
	p := campaignpages.CampaignRecipients{Status: st, Zone: h.ShopZone(st.ShopTimezone), Filter: f}
	p.Errors, q.After, q.Limit = broken, shell.UserIDs().In(r), shell.PageSize
	if len(broken) == 0 {
		page, err := h.Campaigns.Recipients(r.Context(), shell.Actor(r), st.ID, q)
		if err != nil {
			return err
		}
		p.List, p.Paged = page.List, shell.UserIDs().Paged(r, len(page.List), page.More, page.Next)
		p.Export = shell.ExportURL(r)
		shell.NameEach(h.Shell, r, p.List, recipientOf)
	}
	return h.Listed(w, r, p.Results(), p.Page())
}

func recipientOf(o campaign.Outcome) user.ID { return o.UserID }

func (h *handlers) exportCampaignRecipients(w http.ResponseWriter, r *http.Request, id int64) error {
	_, q, broken := h.campaignRecipientQuery(r)
	if len(broken) > 0 {
		return &fault.Fields{List: broken}
	}
	q.Limit = recipientExport
	names := map[int]string{0: "a", 1: "b", delivery.HeldOut: "hold_out", delivery.Remaining: "remaining"}
	head := []string{"user_id", "outcome", "reason", "variant", "channel", "recorded_at", "attempts", "detail", "next_retry_at", "opened_at", "batch_id", "not_before", "not_after", "reported", "cause"}
	return shell.FileOf(fmt.Sprintf("campaign-%d-recipients", id), head, func(o campaign.Outcome) []any {
		return []any{int64(o.UserID), string(o.Outcome), o.Reason, names[o.Variant], o.Channel.String(), o.At, o.Attempts, o.Detail, o.NextRetryAt, o.OpenedAt, o.BatchID,
			o.NotBefore, o.NotAfter, string(o.Reported), o.Cause}
	}).Send(h.Shell, w, r, func(write func(campaign.Outcome) error) error {
		return h.Campaigns.EachRecipient(r.Context(), shell.Actor(r), id, q, write)
	})
}

// compareCampaign compares a campaign with chosen campaigns of its shop; by default with the last
// campaigns.
func (h *handlers) compareCampaign(w http.ResponseWriter, r *http.Request, st campaign.Status) error {
	ctx, by := r.Context(), shell.Actor(r)
	_, results, err := h.Campaigns.Results(ctx, by, st.ID)
	if err != nil {
		return err
	}
	p := campaignpages.CampaignCompare{Campaign: st.Campaign, Zone: h.ShopZone(st.ShopTimezone), List: []campaign.Past{{Status: st, Results: results}}}
	var older int64
	before, _ := strconv.ParseInt(r.FormValue("before"), 10, 64) // nonsense is the beginning
	if p.Others, err = h.Campaigns.Earlier(ctx, by, st.Campaign, max(0, before), comparedChoice+1); err != nil {
		return err
	}
	if len(p.Others) > comparedChoice {
		p.Others = p.Others[:comparedChoice]
		older = p.Others[comparedChoice-1].ID
	}
	var with []campaign.Past
	if asked := r.Form["with"]; len(asked) > 0 {
		var ids []int64
		unreadable := 0
		for _, s := range asked {
			if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 0 {
				ids = append(ids, n)
			} else {
				unreadable++
			}
		}
		if with, p.LeftOut, err = h.Campaigns.Compared(ctx, by, st.Campaign, ids); err != nil {
			return err
		}
		p.LeftOut += unreadable
	} else if with, err = h.Campaigns.Earlier(ctx, by, st.Campaign, 0, earlierCampaigns); err != nil {
		return err
	}
	for _, x := range with {
		p.Chosen = append(p.Chosen, x.ID)
	}
	if older > 0 {
		p.Next = p.PageURL(older)
	}
	if before > 0 {
		p.First = p.PageURL(0)
	}
	p.List = append(p.List, with...)
	return h.Show(w, r, http.StatusOK, p.Page())
}
