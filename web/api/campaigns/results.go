package campaigns

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/web/api/parts"
	"dropbell/web/api/pipeline"
)

// CampaignResults are the results of a campaign.
type CampaignResults struct {
	CampaignID  string               `json:"campaign_id" example:"1"`
	CountedTo   *time.Time           `json:"counted_to" nullable:"true" doc:"Everything before this instant is counted; null = not counted yet."`
	Until       *time.Time           `json:"until" nullable:"true" doc:"Later actions do not count; null until the campaign has ended."`
	Final       bool                 `json:"final" doc:"Whether the numbers are final."`
	Goal        string               `json:"goal,omitempty" enum:"opened,claimed,used" doc:"The measure the campaign is judged by."`
	Groups      []CampaignGroup      `json:"groups" nullable:"false" doc:"a, b if there is a second content, remaining if there is a test (those who are not in it), hold_out if a part gets nothing."`
	Comparisons []CampaignComparison `json:"comparisons" nullable:"false" doc:"b against a, and all others against the held out, per measure."`
	Increment   *parts.Increment     `json:"increment,omitempty" doc:"What the messages brought: users who were meant to get one against those who were held out. Absent without a hold-out or orders, and for results that were final before comparisons existed and whose orders are no longer stored as they were."`
	parts.Reported
	SMS      []parts.SMSCost `json:"sms" nullable:"false" doc:"What the campaign's text messages cost, by currency, as of now; empty for other channels, and without SMS_PRICES and a budget."`
	Looks    []CampaignLook  `json:"looks" nullable:"false" doc:"The looks at the test, with the numbers that decided it; empty without a test."`
	Series   []CampaignPoint `json:"series" nullable:"false" doc:"What recipients did over time, as of counted_to; spans without anything are absent."`
	Currency string          `json:"currency,omitempty" doc:"Of the amounts in series." example:"CNY"`
}

// CampaignGroup counts the actions of one group of recipients.
type CampaignGroup struct {
	Group    string `json:"group" enum:"a,b,remaining,hold_out" example:"a"`
	Assigned int64  `json:"assigned" doc:"Users of the audience in this group." example:"5000"`
	Sent     int64  `json:"sent" doc:"Those of them whom the message reached." example:"4800"`
	Opened   *Rate  `json:"opened,omitempty" doc:"Users who followed their link, of those who were sent to. This and the following are absent where the campaign's template, or its lack, makes them meaningless."`
	Reserved *Rate  `json:"reserved,omitempty" doc:"Users who have reserved the campaign's template since the start, of all assigned."`
	Claimed  *Rate  `json:"claimed,omitempty" doc:"Users who got a coupon of it since the start, also from the campaign itself, of all assigned."`
	Used     *Rate  `json:"used,omitempty" doc:"Users who used one since the start, of all assigned."`
	Spent    *Spent `json:"spent,omitempty" doc:"The orders in which these users used coupons of it since the start; absent where nothing was counted."`
}

// Spent are the orders of a group, in minor units. Refunded orders do not count, and an order with
// several coupons is one order.
type Spent struct {
	Currency   string `json:"currency" example:"CNY"`
	Orders     int64  `json:"orders" example:"120"`
	Ordered    int64  `json:"ordered" doc:"Before discounts." example:"1200000"`
	Discount   int64  `json:"discount" example:"120000"`
	Revenue    int64  `json:"revenue" doc:"ordered − discount." example:"1080000"`
	PerUser    int64  `json:"revenue_per_user" doc:"For each assigned user." example:"216"`
	PerMessage int64  `json:"revenue_per_message" doc:"For each user who was sent to; 0 for the held out." example:"225"`
}

// Rate is a number of users as a part of others.
type Rate struct {
	People int64   `json:"people" example:"240"`
	Of     int64   `json:"of" example:"4800"`
	Rate   float64 `json:"rate" example:"0.05"`
	Low    float64 `json:"low" doc:"With 95 % confidence the true rate is at least this (Wilson)." example:"0.044"`
	High   float64 `json:"high" doc:"And at most this." example:"0.0565"`
}

// CampaignComparison sets two groups side by side.
type CampaignComparison struct {
	Measure    string   `json:"measure" enum:"opened,reserved,claimed,used"`
	First      string   `json:"first" enum:"b,meant" doc:"meant = all but the held out."`
	Than       string   `json:"than" enum:"a,hold_out"`
	Difference float64  `json:"difference" doc:"The first's rate less the other's." example:"0.012"`
	Low        float64  `json:"low" doc:"With 95 % confidence the true difference is at least this (Newcombe)." example:"0.004"`
	High       float64  `json:"high" doc:"And at most this." example:"0.02"`
	Lift       *float64 `json:"lift" nullable:"true" doc:"By which part the first's rate exceeds the other's; null where the other's is 0." example:"0.3"`
	Extra      int64    `json:"extra" doc:"The difference as a number of users of the first group." example:"60"`
	Verdict    string   `json:"verdict" enum:"none,chance,more,less" doc:"none = no user did it; chance = the difference may be chance."`
}

func rateJSON(s campaign.Share) *Rate {
	low, high := s.Interval()
	return &Rate{s.K, s.N, s.Rate(), low, high}
}

// groups maps the names of a campaign's versions, and of the groups without one, to their numbers.
func groups() map[string]int {
	return map[string]int{"a": 0, "b": 1, "hold_out": delivery.HeldOut, "remaining": delivery.Remaining}
}

func groupName(variant int) string {
	for name, v := range groups() {
		if v == variant {
			return name
		}
	}
	return ""
}

func groupJSON(t campaign.Tally, measures []campaign.Measure) CampaignGroup {
	g := CampaignGroup{Group: groupName(t.Variant), Assigned: t.Assigned, Sent: t.Sent}
	for _, m := range measures {
		switch m {
		case campaign.Opening:
			if t.Variant != delivery.HeldOut {
				g.Opened = rateJSON(t.Of(m))
			}
		case campaign.Reserving:
			g.Reserved = rateJSON(t.Of(m))
		case campaign.Claiming:
			g.Claimed = rateJSON(t.Of(m))
		case campaign.Using:
			g.Used = rateJSON(t.Of(m))
		}
	}
	if s := t.Spent; s.Currency != "" {
		g.Spent = &Spent{s.Currency, s.Orders, int64(s.Ordered), int64(s.Discount), int64(s.Revenue()), int64(s.Per(t.Assigned)), int64(s.Per(t.Sent))}
	}
	return g
}

func comparisonJSON(c campaign.Comparison, first, than string) CampaignComparison {
	w := CampaignComparison{Measure: string(c.Measure), First: first, Than: than, Difference: c.Difference, Low: c.Low, High: c.High, Verdict: string(c.Verdict())}
	if part, known := c.Lift(); known {
		w.Lift = &part
	}
	w.Extra, _, _ = c.Extra()
	return w
}

func resultsJSON(c campaign.Campaign, r campaign.Results) CampaignResults {
	w := CampaignResults{CampaignID: pipeline.Decimal(c.ID), CountedTo: pipeline.UTC(r.CountedTo), Until: pipeline.UTC(r.Until), Final: r.Final, Goal: string(c.Goal()),
		Groups: []CampaignGroup{}, Comparisons: []CampaignComparison{}, Looks: []CampaignLook{}, Series: []CampaignPoint{}, Reported: parts.ReportedOf(r.Reported), SMS: parts.SMSCostsOf(r.SMS)}
	for _, t := range r.Groups {
		w.Groups = append(w.Groups, groupJSON(t, c.Measures()))
	}
	if i, ok := r.Increment(); ok {
		w.Increment = new(parts.IncrementOf(i))
	}
	for _, m := range c.Measures() {
		if x, ok := r.Versions(m); ok {
			w.Comparisons = append(w.Comparisons, comparisonJSON(x, "b", "a"))
		}
		if x, ok := r.Effect(m); ok {
			w.Comparisons = append(w.Comparisons, comparisonJSON(x, "meant", "hold_out"))
		}
	}
	return w
}

func (h *handlers) campaignResults(ctx context.Context, id int64) (*struct{ Body CampaignResults }, error) {
	c, r, err := h.Campaigns.Results(ctx, pipeline.ActorOf(ctx), id)
	w := resultsJSON(c, r)
	if err != nil {
		return &struct{ Body CampaignResults }{w}, err
	}
	series, looks, err := h.Campaigns.Course(ctx, pipeline.ActorOf(ctx), id)
	w.Series, w.Currency = seriesJSON(series), series.Currency
	if t := c.Content.Test; t != nil {
		w.Looks = looksJSON(looks, t.By)
	}
	return &struct{ Body CampaignResults }{w}, err
}

// CampaignRecipients is one page of recipients.
type CampaignRecipients struct {
	Recipients []CampaignRecipient `json:"recipients" nullable:"false" doc:"By ascending user id."`
	Next       string              `json:"next,omitempty" doc:"Pass as after to get the next page; absent on the last one. A page before the last may be short or empty if few recipients match."`
}

// RecipientFilter selects recipients of a campaign.
type RecipientFilter struct {
	Outcome string `query:"outcome" enum:"sent,skipped,expired,dead,failed,in_flight" doc:"sent includes those recovered after a failure, dead those discarded, in_flight those that wait for a retry (failed)."`
	Reason  string `query:"reason" maxLength:"60" pattern:"^[a-z_]+$" doc:"Such as opted_out, frequency_cap or hold_out." example:"opted_out"`
	Variant string `query:"variant" enum:"a,b,remaining,hold_out" doc:"Only users who get this content, wait for the decision of the test, or are held out."`
	UserID  string `query:"user_id" pattern:"^[1-9][0-9]{0,18}$" doc:"Only this user."`
}

func (in *RecipientFilter) query() (q campaign.RecipientQuery, err error) {
	q = campaign.RecipientQuery{Outcome: delivery.Outcome(in.Outcome), Reason: in.Reason}
	if in.Variant != "" {
		q.Variant = new(groups()[in.Variant])
	}
	if in.Reason != "" && !slices.Contains(campaign.Reasons(), in.Reason) {
		err = pipeline.Refused("query.reason", "must be one of %s", strings.Join(campaign.Reasons(), ", "))
	}
	only, wrong := pipeline.OptionalID("query.user_id", in.UserID)
	q.Only = user.ID(only)
	return q, pipeline.Merge(err, wrong)
}

func (h *handlers) campaignRecipients(ctx context.Context, in *struct {
	pipeline.Ref
	RecipientFilter
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	After string `query:"after" pattern:"^[1-9][0-9]{0,18}$" doc:"The value of next on the previous page."`
}) (*struct{ Body CampaignRecipients }, error) {
	id, err1 := pipeline.ParseID("path.id", in.ID)
	q, err2 := in.query()
	after, err3 := pipeline.OptionalID("query.after", in.After)
	if err := pipeline.Merge(err1, err2, err3); err != nil {
		return nil, err
	}
	q.Limit, q.After = in.Limit, user.ID(after)
	page, err := h.Campaigns.Recipients(ctx, pipeline.ActorOf(ctx), id, q)
	if err != nil {
		return nil, err
	}
	out := CampaignRecipients{Recipients: pipeline.Each(page.List, recipientJSON)}
	if page.More {
		out.Next = page.Next.String()
	}
	return &struct{ Body CampaignRecipients }{out}, nil
}

// resultRoutes returns the routes of a campaign's results; op completes a route.
func (h *handlers) resultRoutes(op func(method, path, id, summary string, more pipeline.Route) pipeline.Route) {
	pipeline.Register(h.Pipeline, op(http.MethodGet, "/{id}/results", "campaign-results", "Show the results of a campaign", pipeline.Route{
		Description: "By content and hold-out, counted by a worker: every half minute while the campaign goes out, ever less often for seven days " +
			"after its end. Every number counts users, each once; all groups are observed over the same time."}), pipeline.ByID(h.campaignResults))
	pipeline.Register(h.Pipeline, op(http.MethodGet, "/{id}/recipients", "campaign-recipients", "List a campaign's recipients with their outcomes", pipeline.Route{
		Description: "The users of the audience as far as it has been cut into batches; empty once its batches are past their retention."}), h.campaignRecipients)
	file := op(http.MethodGet, "/{id}/recipients.csv", "export-campaign-recipients", "Export a campaign's recipients as CSV", pipeline.Route{
		Description: "A heading, then a line for each recipient that the filter selects, by ascending user id, with the values that the list of recipients shows. " +
			"Text that a spreadsheet would take for a formula has an apostrophe before it. An answer that breaks off is not complete; ask again.",
		File: "text/csv", FileText: "The recipients."})
	file.Stream = true
	pipeline.Register(h.Pipeline, file, h.exportRecipients)
	pipeline.Register(h.Pipeline, op(http.MethodGet, "/{id}/recipients/{user_id}", "campaign-recipient", "Show the outcome of one recipient",
		pipeline.Route{Codes: []string{"recipient_not_found"}}), h.campaignRecipient)
}
