package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/domain/segment"
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

// RuleStore reads the rules of segments.
type RuleStore interface {
	// SegmentRule returns the present rule of the segment or list that the audience names; nil
	// for other audiences and for a segment or list that does not exist any more.
	SegmentRule(ctx context.Context, a Audience) (*FrozenRule, error)
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
	if a.Link != b.Link {
		list = append(list, "link")
	}
	if !a.Test.Same(b.Test) {
		list = append(list, "test")
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
				TextPair{place("body", i, tag), i, tag, true, a[tag].Plain(), b[tag].Plain()})
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

// A Decision ends a request.
type Decision struct {
	Request int64
	State   RequestState // approved, refused, or lapsed if it was withdrawn
	Reason  string
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
