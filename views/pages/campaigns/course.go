package campaigns

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/views/ui"
)

// CampaignCourse is the picture of what a campaign brought about over time, and of its test.
type CampaignCourse struct {
	campaign.Status
	Series campaign.Series
	Looks  []campaign.TestDecision
	Zone   *time.Location
}

// A courseLine is one number of the picture with its growth.
type courseLine struct {
	name, label, value, note string
	points                   []int64 // sums, by point
	// plain says that the growth is not drawn: all messages are sent, and arrive, within the first minutes.
	plain bool
}

// fewestEvents is from how many events on a rate is drawn with its confidence interval.
const fewestEvents = 5

// lines are the numbers that the campaign can have. Amounts are in the currency of its template.
func (p CampaignCourse) lines(ctx context.Context) []courseLine {
	sum, l := p.Series.Total(), ui.From(ctx).Locale
	grow := func(of func(campaign.Point) int64) (list []int64) {
		total := int64(0)
		for _, x := range p.Series.Points {
			total += of(x)
			list = append(list, total)
		}
		return list
	}
	list := []courseLine{
		{"sent", l.T("course.sent"), l.Number(sum.Sent), "", grow(func(x campaign.Point) int64 { return x.Sent }), true},
		{"opened", l.T("course.opened"), l.Number(sum.Opened), l.Percent(sum.Opened, sum.Sent), grow(func(x campaign.Point) int64 { return x.Opened }), false},
	}
	if p.arrivals() {
		list = slices.Insert(list, 1, courseLine{"delivered", l.T("course.delivered"), l.Number(sum.Delivered), l.Percent(sum.Delivered, sum.Sent), grow(func(x campaign.Point) int64 { return x.Delivered }), true})
	}
	if p.Series.Currency == "" {
		return list
	}
	if p.claims() {
		list = append(list, courseLine{"claimed", l.T("course.claimed"), l.Number(sum.Claimed), l.Percent(sum.Claimed, sum.Sent), grow(func(x campaign.Point) int64 { return x.Claimed }), false})
	}
	return append(list,
		courseLine{"earned", l.T("course.earned"), l.Sum(money.Amount(sum.Earned), p.Series.Currency), "", grow(func(x campaign.Point) int64 { return x.Earned }), false})
}

// arrivals reports whether the provider reports arrivals, as not all do: at least of a tenth of the messages.
func (p CampaignCourse) arrivals() bool {
	sum := p.Series.Total()
	return sum.Delivered > 0 && 10*sum.Delivered >= sum.Sent
}

// claims reports whether the number of claims says something about the campaign.
func (p CampaignCourse) claims() bool {
	return p.Series.Currency != "" && slices.Contains(told(p.Spec), campaign.Claiming)
}

const courseWidth, courseHeight = 600.0, 80.0

// last is the end of the drawing: the last point, or the end of its span.
func (p CampaignCourse) last() time.Time {
	points := p.Series.Points
	return points[len(points)-1].At.Add(campaign.SeriesSpan(points[len(points)-1].At.Sub(*p.StartedAt)))
}

// paths returns the line and the area of a number, from the start of the campaign.
func (p CampaignCourse) paths(points []int64) (line, area string) {
	top, whole := max(1, points[len(points)-1]), p.last().Sub(*p.StartedAt).Seconds()
	y := func(n int64) float64 { return courseHeight - (courseHeight-4)*float64(n)/float64(top) }
	var b strings.Builder
	fmt.Fprintf(&b, "M0 %.1f", courseHeight)
	before := int64(0)
	for i, n := range points {
		x := courseWidth * max(0, p.Series.Points[i].At.Sub(*p.StartedAt).Seconds()) / max(1, whole)
		fmt.Fprintf(&b, " L%.1f %.1f L%.1f %.1f", x, y(before), x, y(n))
		before = n
	}
	fmt.Fprintf(&b, " L%.1f %.1f", courseWidth, y(before))
	return b.String(), b.String() + fmt.Sprintf(" L%.1f %.1f Z", courseWidth, courseHeight)
}

// testText says what the test does, or did.
func (p CampaignCourse) testText(ctx context.Context) string {
	t, l := p.Content.Test, ui.From(ctx).Locale
	by := l.T("campaign.test_by." + t.By)
	last, decided := p.decision()
	switch {
	case !decided:
		return l.T("course.test.open", l.Thousandths(int64(t.Share)*10), by, l.DateTime(p.StartedAt.Add(t.Lasts()), p.Zone))
	case last.Look == campaign.Halfway:
		return l.T("course.test.early", p.versionText(ctx, *last.Winner), by)
	case !last.Beyond(t.By):
		return l.T("course.test.chance", p.versionText(ctx, *last.Winner), by)
	}
	return l.T("course.test.won", p.versionText(ctx, *last.Winner), by)
}

// decision returns the look that decided the test; false if there is none yet.
func (p CampaignCourse) decision() (campaign.TestDecision, bool) {
	for _, d := range p.Looks {
		if d.Winner != nil {
			return d, true
		}
	}
	return campaign.TestDecision{}, false
}

func (p CampaignCourse) versionText(ctx context.Context, variant int) string {
	return groupText(ctx, p.Content, variant)
}

// measureText writes a value of an arm: a rate, or the revenue for each recipient.
func (p CampaignCourse) measureText(ctx context.Context, a campaign.Arm, value float64) string {
	l := ui.From(ctx).Locale
	if p.Content.Test.By != delivery.ByRevenue {
		return l.Share(value)
	}
	return l.Sum(money.Amount(math.Round(value)), a.Currency)
}

// armText is the value of an arm with its interval.
func (p CampaignCourse) armText(ctx context.Context, a campaign.Arm) string {
	if a.Did < fewestEvents {
		return ui.T(ctx, "course.few", a.Did)
	}
	value, low, high := a.Value(p.Content.Test.By)
	return ui.T(ctx, "course.arm", p.measureText(ctx, a, value), p.measureText(ctx, a, low), p.measureText(ctx, a, high), a.Did)
}

// drawnArms are the arms with enough events for a confidence interval.
func drawnArms(d campaign.TestDecision) []campaign.Arm {
	return slices.DeleteFunc(slices.Clone(d.Arms), func(a campaign.Arm) bool { return a.Did < fewestEvents })
}

// armTop is the value at the end of the scale that all drawn arms share.
func (p CampaignCourse) armTop(d campaign.TestDecision) (top float64) {
	for _, x := range drawnArms(d) {
		_, _, high := x.Value(p.Content.Test.By)
		top = max(top, high)
	}
	return max(top*1.05, 1e-9)
}

// armSpan is the value of an arm with its interval, in thousandths of the scale.
func (p CampaignCourse) armSpan(d campaign.TestDecision, a campaign.Arm) rateSpan {
	value, low, high := a.Value(p.Content.Test.By)
	place := func(f float64) float64 { return 1000 * f / p.armTop(d) }
	return rateSpan{place(low), place(value), place(high)}
}
