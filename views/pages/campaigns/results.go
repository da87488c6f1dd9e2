package campaigns

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// CampaignResults is the card with the results of a campaign.
type CampaignResults struct {
	campaign.Status
	Results campaign.Results
	Zone    *time.Location
}

// amount writes one of the amounts of the orders.
func (p CampaignResults) amount(ctx context.Context, n money.Amount) string {
	return ui.From(ctx).Locale.Sum(n, p.Results.Meant().Spent.Currency)
}

// counting reports whether the card's numbers still change.
func (p CampaignResults) counting() bool { return p.StartedAt != nil && !p.Results.Final }

// groupText names a group of recipients.
func groupText(ctx context.Context, c delivery.Copy, variant int) string {
	switch {
	case variant == delivery.HeldOut:
		return ui.T(ctx, "results.group.hold_out")
	case variant == delivery.Remaining:
		return ui.T(ctx, "results.group.remaining")
	case len(c.Variants) < 2 && c.HoldOut == 0:
		return ui.T(ctx, "results.group.all")
	case len(c.Variants) < 2:
		return ui.T(ctx, "results.group.meant")
	case variant == 1:
		return ui.T(ctx, "results.group.b")
	}
	return ui.T(ctx, "results.group.a")
}

// resultFigure names a number of a group.
func resultFigure(t campaign.Tally, name string) string {
	return fmt.Sprintf("results:%d:%s", t.Variant, name)
}

// measureText is the head of a measure's column. If the campaign itself gives coupons, the measure
// Claiming is called getting a coupon.
func measureText(ctx context.Context, s campaign.Spec, m campaign.Measure) string {
	if m == campaign.Claiming && s.GrantTemplate != 0 {
		return ui.T(ctx, "results.measure.granted")
	}
	return ui.T(ctx, "results.measure."+string(m))
}

// counts reports whether the measure applies to the group.
func counts(m campaign.Measure, variant int) bool {
	return m != campaign.Opening || variant != delivery.HeldOut
}

func partText(ctx context.Context, s campaign.Share) string {
	return ui.From(ctx).Locale.Share(s.Rate())
}

func intervalText(ctx context.Context, s campaign.Share) string {
	l := ui.From(ctx).Locale
	low, high := s.Interval()
	return l.T("results.interval", l.Share(low), l.Share(high))
}

// A resultFinding is one sentence about a difference.
type resultFinding struct {
	tone ui.Tone
	text string
}

// findings returns the conclusions that the counted numbers support, the goal first.
func (p CampaignResults) findings(ctx context.Context) (list []resultFinding) {
	goal := p.Goal()
	if c, ok := p.Results.Effect(goal); ok {
		list = append(list, effectFinding(ctx, c))
	}
	measures := []campaign.Measure{goal}
	if goal != campaign.Opening {
		measures = append(measures, campaign.Opening)
	}
	for _, m := range measures {
		if c, ok := p.Results.Versions(m); ok {
			list = append(list, versionsFinding(ctx, c))
		}
	}
	return list
}

func findingTone(v campaign.Verdict) ui.Tone {
	switch v {
	case campaign.More:
		return ui.Good
	case campaign.Less:
		return ui.Warn
	}
	return ui.Neutral
}

// effectFinding compares the users who were meant to get the message with the hold-out group.
func effectFinding(ctx context.Context, c campaign.Comparison) resultFinding {
	l, v := ui.From(ctx).Locale, c.Verdict()
	n, low, high := c.Extra()
	if v == campaign.Less {
		n, low, high = -n, -high, -low
	}
	return resultFinding{findingTone(v), l.T("results.effect."+string(v), l.T("results.did."+string(c.Measure)), partText(ctx, c.First), partText(ctx, c.Than),
		l.Points(c.Low), l.Points(c.High), n, low, high)}
}

// versionsFinding compares B with A.
func versionsFinding(ctx context.Context, c campaign.Comparison) resultFinding {
	l, v := ui.From(ctx).Locale, c.Verdict()
	tone, low, high := findingTone(v), c.Low, c.High
	if v == campaign.Less { // it is worded from A's point of view
		tone, low, high = ui.Good, -c.High, -c.Low
	}
	return resultFinding{tone, l.T("results.versions."+string(v), l.T("results.did."+string(c.Measure)), partText(ctx, c.First), partText(ctx, c.Than),
		l.Points(low), l.Points(high))}
}

// liftText says by how much more often a group did m than the hold-out group, or "".
func (p CampaignResults) liftText(ctx context.Context, t campaign.Tally, m campaign.Measure) string {
	held, ok := p.Results.Group(delivery.HeldOut)
	if !ok || t.Variant == delivery.HeldOut || m == campaign.Opening {
		return ""
	}
	part, known := campaign.Compare(m, t, held).Lift()
	if !known {
		return ""
	}
	if part > 1 {
		return ui.T(ctx, "results.times", ui.Ratio(ctx, 1+part))
	}
	return ui.T(ctx, "results.lift", liftPercent(ctx, part))
}

func liftPercent(ctx context.Context, part float64) string {
	l := ui.From(ctx).Locale
	if part < 0 {
		return "−" + l.Share(-part)
	}
	return "+" + l.Share(part)
}

// spanScale returns the rate at the right end of the charts of m: slightly above the highest rate
// within any group's confidence interval.
func (p CampaignResults) spanScale(m campaign.Measure) float64 {
	top := 0.0
	for _, t := range p.Results.Groups {
		if s := t.Of(m); counts(m, t.Variant) && s.K >= fewestEvents {
			_, high := s.Interval()
			top = max(top, high)
		}
	}
	return min(1, max(0.001, top*1.05))
}

// A rateSpan is a rate with its interval, in thousandths of the chart's width.
type rateSpan struct{ low, at, high float64 }

func spanOf(s campaign.Share, scale float64) rateSpan {
	low, high := s.Interval()
	place := func(rate float64) float64 { return 1000 * min(1, rate/scale) }
	return rateSpan{place(low), place(s.Rate()), place(high)}
}

func tenth(f float64) string { return fmt.Sprintf("%.1f", f) }

// further reports whether the orders are compared with the control group's, or providers report.
func (p CampaignResults) further() bool {
	_, compared := p.Results.Increment()
	return compared || p.Results.Incomparable() || p.Results.Reported.Any()
}

// agree reports whether the numbers of recipients and messages equal the numbers of the campaign's
// progress. Otherwise the card does not show them.
func (p CampaignResults) agree() bool { return p.Results.Agree(p.Progress) }

// countedText says up to which time the numbers are counted.
func (p CampaignResults) countedText(ctx context.Context) string {
	l := ui.From(ctx).Locale
	switch {
	case p.Results.CountedTo != nil && !p.agree():
		sum := p.Results.Total()
		return l.T("results.behind", l.DateTime(p.Results.CountedTo.Truncate(time.Second), p.Zone), sum.Sent, sum.Assigned)
	case p.Results.CountedTo == nil && p.Results.Final:
		return l.T("results.never")
	case p.Results.CountedTo == nil && p.State == campaign.Failed:
		return l.T("results.failed")
	case p.Results.CountedTo == nil:
		return l.T("results.soon")
	case p.Results.Final:
		return l.T("results.final", l.DateTime(p.Results.CountedTo.Truncate(time.Second), p.Zone))
	case p.Results.Until != nil:
		return l.T("results.until", l.DateTime(p.Results.CountedTo.Truncate(time.Second), p.Zone), l.DateTime(p.Results.Until.Truncate(time.Second), p.Zone))
	}
	return l.T("results.going", l.DateTime(p.Results.CountedTo.Truncate(time.Second), p.Zone))
}

// CampaignCompare compares a campaign with earlier campaigns of its shop.
type CampaignCompare struct {
	campaign.Campaign
	Zone *time.Location
	// List begins with the campaign itself.
	List []campaign.Past
	// Others are the campaigns to choose from; Chosen are the ids of the chosen campaigns.
	Others      []campaign.Past
	Chosen      []int64
	LeftOut     int
	First, Next string
}

// PageURL returns the address of the candidates before a campaign (0 = the latest candidates), with
// the chosen campaigns.
func (p CampaignCompare) PageURL(before int64) string {
	q := url.Values{}
	for _, id := range p.Chosen {
		q.Add("with", strconv.FormatInt(id, 10))
	}
	if before > 0 {
		q.Set("before", strconv.FormatInt(before, 10))
	}
	return parts.CampaignURL(p.ID, "compare") + "?" + q.Encode()
}

// anyMeasure reports whether one of the campaigns counts m.
func anyMeasure(list []campaign.Past, m campaign.Measure) bool {
	for _, p := range list {
		if measures(p.Spec, m) {
			return true
		}
	}
	return false
}

func measures(s campaign.Spec, m campaign.Measure) bool { return slices.Contains(told(s), m) }

// comparedMeasures are the columns that a comparison of the list has.
func comparedMeasures(list []campaign.Past) (has []campaign.Measure) {
	for _, m := range []campaign.Measure{campaign.Opening, campaign.Reserving, campaign.Claiming, campaign.Using} {
		if anyMeasure(list, m) {
			has = append(has, m)
		}
	}
	return has
}

// A comparedCell is one share in a comparison. width is the length of its bar in thousandths of the
// full bar.
type comparedCell struct {
	known bool
	share campaign.Share
	width float64
}

func sentShare(p campaign.Past) campaign.Share {
	return campaign.Share{K: p.Progress.Sent, N: p.Progress.Reserved}
}

func failedShare(p campaign.Past) campaign.Share {
	return campaign.Share{K: p.Progress.Dead, N: p.Progress.Reserved}
}

// cells returns the column of one share. With whole a full bar is 100 %, otherwise the greatest
// rate of the column.
func cells(list []campaign.Past, whole bool, of func(campaign.Past) (campaign.Share, bool)) []comparedCell {
	column, top := make([]comparedCell, len(list)), 0.0
	if whole {
		top = 1
	}
	for i, p := range list {
		s, known := of(p)
		column[i] = comparedCell{known: known && s.N > 0, share: s}
		if column[i].known {
			top = max(top, s.Rate())
		}
	}
	for i := range column {
		if top > 0 {
			column[i].width = 1000 * column[i].share.Rate() / top
		}
	}
	return column
}

func measured(m campaign.Measure) func(campaign.Past) (campaign.Share, bool) {
	return func(p campaign.Past) (campaign.Share, bool) {
		return p.Results.Meant().Of(m), measures(p.Spec, m) && len(p.Results.Groups) > 0
	}
}

func always(of func(campaign.Past) campaign.Share) func(campaign.Past) (campaign.Share, bool) {
	return func(p campaign.Past) (campaign.Share, bool) { return of(p), true }
}

func durationText(ctx context.Context, p campaign.Past) string {
	if p.StartedAt == nil {
		return parts.OrDash("")
	}
	d := p.Duration(ui.From(ctx).Now)
	if d < time.Second {
		return ui.T(ctx, "compare.instant")
	}
	return ui.From(ctx).Locale.Duration(d.Round(time.Second))
}

// pastPace is how many were sent per second while the campaign went out.
func pastPace(ctx context.Context, p campaign.Past) string {
	d := p.Duration(ui.From(ctx).Now)
	if d <= 0 || p.Progress.Sent == 0 {
		return "–"
	}
	rate := float64(p.Progress.Sent) / d.Seconds()
	if rate < 10 {
		return ui.T(ctx, "campaign.rate.value", strconv.FormatFloat(rate, 'f', 1, 64))
	}
	return ui.T(ctx, "campaign.rate.value", ui.Num(ctx, int64(rate+0.5)))
}

// chosen reports whether the campaign is among the compared campaigns.
func (p CampaignCompare) chosen(id int64) bool {
	for _, c := range p.Chosen {
		if c == id {
			return true
		}
	}
	return false
}

// elsewhere returns the chosen campaigns that this page of candidates does not show.
func (p CampaignCompare) elsewhere() (ids []int64) {
	shown := map[int64]bool{}
	for _, o := range p.Others {
		shown[o.ID] = true
	}
	for _, c := range p.Chosen {
		if !shown[c] {
			ids = append(ids, c)
		}
	}
	return ids
}

// told are the measures that say something about the campaign: users who have a coupon need not reserve or claim it.
func told(s campaign.Spec) []campaign.Measure {
	if s.GrantTemplate == 0 && s.Audience.Kind == campaign.Holds {
		return []campaign.Measure{campaign.Opening, campaign.Using}
	}
	return s.Measures()
}
