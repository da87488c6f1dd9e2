package campaign

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// A FrozenRule is the rule of a segment in one of its versions.
type FrozenRule struct {
	SegmentID int64
	Version   int64
	Name      string
	Kind      segment.Kind
	// Rule is empty for a list, whose members are ids.
	Rule segment.Rule
	// Members is how many ids a list had when the rule was read; nil for other segments, or if
	// the number is not known.
	Members *int64
}

// Holds reports whether now still selects the users that f did. Ids are only ever added to a
// list, so a list with the same number of ids has the same ids.
func (f *FrozenRule) Holds(now *FrozenRule) bool {
	return f.Same(now) && (f == nil || f.Members == nil || now.Members == nil || *f.Members == *now.Members)
}

// Same reports whether f and o select the same users. A new name is no new rule.
func (f *FrozenRule) Same(o *FrozenRule) bool {
	if f == nil || o == nil {
		return f == o
	}
	a, err1 := json.Marshal(f.Rule)
	b, err2 := json.Marshal(o.Rule)
	return err1 == nil && err2 == nil && f.SegmentID == o.SegmentID && f.Kind == o.Kind && bytes.Equal(a, b)
}

// A Snapshot is everything that decides a campaign's messages and recipients.
type Snapshot struct {
	Spec
	// Rule is the rule of the segment that the audience names; nil if it names none.
	Rule *FrozenRule
}

// Differences returns the API names of the fields in which two snapshots differ. Texts are listed
// by language ("title", "body.zh-CN", "variant_b.title").
func (s Snapshot) Differences(o Snapshot) []string {
	var list []string
	add := func(name string, same bool) {
		if !same {
			list = append(list, name)
		}
	}
	add("name", s.Name == o.Name)
	add("shop_number", s.Shop == o.Shop)
	add("audience", s.Audience.Kind == o.Audience.Kind && s.Audience.ID == o.Audience.ID && slices.Equal(s.Audience.Users, o.Audience.Users))
	add("rule", s.Rule.Same(o.Rule))
	add("channel", s.Channel == o.Channel)
	list = append(list, copyDifferences(s.Content, o.Content)...)
	add("grant_template_id", s.GrantTemplate == o.GrantTemplate)
	add("starts_at", s.StartsAt.Equal(o.StartsAt))
	add("ends_at", s.EndsAt.Equal(o.EndsAt))
	add("rate_per_second", s.RatePerSecond == o.RatePerSecond)
	return list
}

func copyDifferences(a, b delivery.Copy) []string {
	var list []string
	for _, t := range Texts(a, b) {
		if t.Before != t.After {
			list = append(list, t.Name)
		}
	}
	if shares(a) != shares(b) {
		list = append(list, "percent")
	}
	if a.HoldOut != b.HoldOut {
		list = append(list, "hold_out_percent")
	}
	return list
}

func shares(c delivery.Copy) int {
	if len(c.Variants) < 2 {
		return 0
	}
	return c.Variants[1].Percent
}

// A TextPair is one title or body in two versions of a campaign.
type TextPair struct {
	// Name is the wire name: "title", "body.zh-CN", "variant_b.title".
	Name          string
	Variant       int
	Locale        string // "" = the default language
	Body          bool   // else a title
	Before, After string
}

// Texts pairs the texts of two contents, languages in order.
func Texts(before, after delivery.Copy) []TextPair {
	var list []TextPair
	for i := range max(len(before.Variants), len(after.Variants)) {
		a, b := textsOf(before, i), textsOf(after, i)
		tags := map[string]bool{}
		for tag := range a {
			tags[tag] = true
		}
		for tag := range b {
			tags[tag] = true
		}
		for _, tag := range slices.Sorted(maps.Keys(tags)) {
			list = append(list,
				TextPair{place("title", i, tag), i, tag, false, a[tag].Title, b[tag].Title},
				TextPair{place("body", i, tag), i, tag, true, a[tag].Body, b[tag].Body})
		}
	}
	return list
}

func textsOf(c delivery.Copy, variant int) map[string]delivery.Text {
	if variant >= len(c.Variants) {
		return nil
	}
	return c.Variants[variant].Texts
}

func place(name string, variant int, tag string) string {
	if variant > 0 {
		name = "variant_b." + name
	}
	if tag != "" {
		name += "." + tag
	}
	return name
}

// Reach is how many users an audience had at an instant.
type Reach struct {
	Users int64
	Exact bool
	At    time.Time
}

// RequestState is the state of a request.
type RequestState string

// The states of a request.
const (
	RequestAsked    RequestState = "asked"
	RequestApproved RequestState = "approved"
	RequestRefused  RequestState = "refused"
	// RequestLapsed is the state of a request whose campaign was changed or cancelled, or for
	// whose campaign a new request was made.
	RequestLapsed RequestState = "lapsed"
)

// A Request is a request to approve a campaign. It contains the campaign as it was at the
// request.
type Request struct {
	ID         int64
	CampaignID int64
	Snapshot
	Reach     Reach
	State     RequestState
	AskedBy   string // label
	AskedName string
	AskedAt   time.Time
	Reason    string
	// DecidedBy is the member who decided, DecidedAt the time of the decision and DecidedReason
	// its reason. They are empty while the request is open.
	DecidedBy     string
	DecidedAt     *time.Time
	DecidedReason string
	// Allowed is how many users could be reached without this approval, if the cut made the
	// request because the audience is larger. It is nil if a member made the request.
	Allowed *int64
}

// concerns reports whether by requested approval or created the campaign. Such a member may not
// approve it.
func (r Request) concerns(by staff.Actor, c Campaign) bool {
	return r.AskedBy == by.Label || c.Creator == by.Label
}

// A Decision ends a request.
type Decision struct {
	Request int64
	State   RequestState // approved, refused, or lapsed if it was withdrawn
	Reason  string
}

// A Review is the data for an approver's decision.
type Review struct {
	Campaign Campaign
	Now      Snapshot
	// Reach is the reach of the audience now; nil if it cannot be estimated quickly.
	Reach *Reach
	// Open is the request without a decision, nil if there is none.
	Open *Request
	// Before is the latest request that was decided or has lapsed; nil if there is none.
	Before *Request
	// Above is how many users one member may send to without approval; 0 = any number.
	Above int64
}

// Needed reports whether the campaign, as it is now, needs approval. An unknown
// reach counts as larger than any limit.
func (r Review) Needed() bool { return r.Above > 0 && (r.Reach == nil || r.Reach.Users > r.Above) }

// Late reports whether it is too late to send anything, with or without approval.
func (r Review) Late(now time.Time) bool { return !r.Campaign.EndsAt.After(now) }

// Lapsed reports whether the campaign differs from the open request. A held campaign never
// lapses: after publication only the rate can change, which needs no approval.
func (r Review) Lapsed() bool {
	return r.Open != nil && r.Campaign.HeldAt == nil && len(r.Open.Differences(r.Now)) > 0
}

// Latest returns the open request. Without an open request it returns [Review.Before], which may
// be nil.
func (r Review) Latest() *Request {
	if r.Open != nil {
		return r.Open
	}
	return r.Before
}

// Waits reports whether approval can be requested or decided: the campaign is a draft or is held.
func (r Review) Waits() bool { return r.Campaign.State == Draft || r.Campaign.HeldAt != nil }

// MayDecide reports whether by may approve or refuse the open request.
func (r Review) MayDecide(by staff.Actor) bool {
	return r.Open != nil && may(by, staff.ManageCampaigns, r.Campaign.Shop) == nil && !r.Open.concerns(by, r.Campaign)
}

// MayWithdraw reports whether by can take the open request back.
func (r Review) MayWithdraw(by staff.Actor) bool {
	return r.Open != nil && may(by, staff.ManageCampaigns, r.Campaign.Shop) == nil && r.Open.concerns(by, r.Campaign)
}

// MayAsk reports whether by may request approval again. Only members who could not approve may:
// if others requested approval, no approver might be left.
func (r Review) MayAsk(by staff.Actor) bool {
	last := r.Before
	if r.Open != nil {
		last = r.Open
	}
	return r.Waits() && (r.Open == nil || r.Lapsed()) && may(by, staff.ManageCampaigns, r.Campaign.Shop) == nil &&
		(last == nil || last.concerns(by, r.Campaign))
}

// Base returns the request with which the campaign is compared to show its changes: the open
// request if it has lapsed, otherwise the request before. It is nil at the first request.
func (r Review) Base() *Request {
	if r.Lapsed() {
		return r.Open
	}
	return r.Before
}

// A Cost is the most that the coupons of a campaign can take off.
type Cost struct {
	Coupons  int64
	Amount   money.Amount
	Currency string
}

// CostOf returns the most that coupons of t for so many users can cost: at most the coupons left
// in stock, each redeemed for the greatest amount that it takes off.
func CostOf(t template.Template, users int64) Cost {
	each := t.AmountOff
	if t.Kind == template.PercentOff {
		each = t.MaxOff
	}
	n := max(0, min(users, t.StockLeft()))
	c := Cost{Coupons: n, Currency: t.Currency, Amount: math.MaxInt64}
	if each == 0 || n <= math.MaxInt64/int64(each) {
		c.Amount = money.Amount(n) * each
	}
	return c
}

// Takes returns how long sending to so many users takes at the campaign's own rate; 0 if the
// campaign has no rate.
func (s Spec) Takes(users int64) time.Duration {
	if s.RatePerSecond <= 0 {
		return 0
	}
	seconds := users / int64(s.RatePerSecond)
	return time.Duration(min(seconds, int64(math.MaxInt64/time.Second))) * time.Second
}
