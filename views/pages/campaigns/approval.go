package campaigns

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// Approval is the page on which an approver sees the messages to be sent, and decides.
type Approval struct {
	approval.Review
	Zone *time.Location
	// Mine is true for members who may decide, Asks for members who may request approval again, and
	// Withdraws for members who may withdraw the request.
	Mine, Asks, Withdraws bool
	// Grants are the templates whose coupons are given away, by id.
	Grants   map[int64]template.Template
	Previews Texts
	// Reason is the typed reason; Error and Errors say why the decision was refused.
	Reason string
	// AudienceNames has the name of the audience.
	AudienceNames AudienceNames
	// Names are the names of the drops of the rule.
	Names parts.DropNames
	// ReachTyped is the typed number of users.
	ReachTyped string
	Error      string
	Errors     []fault.Field
}

func (p Approval) url(below string) string { return parts.CampaignURL(p.Campaign.ID, below) }

// heldText says how large the audience of a held campaign has become.
func heldText(ctx context.Context, r campaign.Request) string {
	return ui.T(ctx, "campaign.held_text", ui.Num(ctx, r.Reach.Users), ui.Num(ctx, *r.Allowed))
}

func (p Approval) approveLabel(ctx context.Context) string {
	if p.Campaign.HeldAt != nil {
		return ui.T(ctx, "approval.approve_held")
	}
	return ui.T(ctx, "approval.approve")
}

// latest returns the request that the page is about: the open request, otherwise the last request.
func (p Approval) latest() *campaign.Request { return p.Latest() }

// may reports whether the viewer may send campaigns of this shop.
func (p Approval) may(ctx context.Context) bool {
	return ui.May(ctx, staff.ManageCampaigns, p.Campaign.Shop)
}

// standing returns the state of the request as a colour and a text.
func (p Approval) standing(ctx context.Context) (ui.Tone, string) {
	r := p.latest()
	switch {
	case p.Lapsed():
		return ui.Warn, ui.T(ctx, "approval.state.lapsed")
	case r.State == campaign.RequestApproved:
		return ui.Good, ui.T(ctx, "approval.state.approved")
	case r.State == campaign.RequestAsked:
		return ui.Info, ui.T(ctx, "approval.state.asked")
	case r.State == campaign.RequestRefused:
		return ui.Bad, ui.T(ctx, "approval.state.refused")
	}
	return ui.Warn, ui.T(ctx, "approval.state.lapsed")
}

// beforeLabel is the head of the column with the requested values.
func (p Approval) beforeLabel(ctx context.Context) string {
	base := p.Base()
	return ui.T(ctx, "approval.asked_at", ui.From(ctx).Locale.DateTime(base.AskedAt, p.Zone))
}

func reachText(ctx context.Context, r *campaign.Reach) string {
	switch {
	case r == nil:
		return ui.T(ctx, "approval.reach_unknown")
	case r.Exact:
		return ui.N(ctx, "approval.reach", r.Users)
	}
	return ui.N(ctx, "approval.reach_about", r.Users)
}

// costText returns the maximum cost of the coupons, "" if the campaign gives none.
func (p Approval) costText(ctx context.Context, users int64) string {
	t, ok := p.Grants[p.Now.GrantTemplate]
	if !ok {
		return ""
	}
	c := campaign.CostOf(t, users)
	return ui.T(ctx, "approval.cost_text", c.Coupons, ui.From(ctx).Locale.Money(c.Amount, c.Currency))
}

func (p Approval) takesText(ctx context.Context) string {
	if d := p.Now.Takes(p.Users()); d > 0 {
		return ui.T(ctx, "approval.takes", ui.From(ctx).Locale.Duration(d))
	}
	return ""
}

// An approvalRow is one field in both versions.
type approvalRow struct {
	label         string
	before, after string
	changed       bool
}

// rows returns all fields that decide what is sent, changed or not.
func (p Approval) rows(ctx context.Context) []approvalRow {
	now, base := p.Now, p.Now
	if r := p.Base(); r != nil {
		base = r.Snapshot
	}
	differs := base.Differences(now)
	var list []approvalRow
	add := func(name, label string, show func(campaign.Snapshot) string) {
		list = append(list, approvalRow{label, show(base), show(now), slices.Contains(differs, name)})
	}
	field := func(name, key string, show func(campaign.Snapshot) string) {
		add(name, ui.T(ctx, "campaign.field."+key), show)
	}
	field("name", "name", func(s campaign.Snapshot) string { return s.Name })
	field("shop_number", "shop", func(s campaign.Snapshot) string { return p.shopText(ctx, s.Shop) })
	field("channel", "channel", func(s campaign.Snapshot) string { return ui.T(ctx, "channel."+s.Channel.String()) })
	field("audience", "audience", func(s campaign.Snapshot) string { return p.snapshotAudience(ctx, s) })
	if base.Rule != nil || now.Rule != nil {
		add("rule", ui.T(ctx, "approval.rule"), func(s campaign.Snapshot) string { return p.frozenText(ctx, s.Rule) })
	}
	for _, t := range campaign.Texts(base.Content, now.Content) {
		list = append(list, approvalRow{textLabel(ctx, t), t.Before, t.After, t.Before != t.After})
	}
	if len(base.Content.Variants)+len(now.Content.Variants) > 2 {
		field("percent", "percent_b", func(s campaign.Snapshot) string { return shareText(ctx, s.Content) })
	}
	if base.Content.HoldOut+now.Content.HoldOut > 0 {
		field("hold_out_percent", "hold_out", func(s campaign.Snapshot) string { return parts.PercentText(ctx, s.Content.HoldOut) })
	}
	field("grant_template_id", "grant_template_id", func(s campaign.Snapshot) string { return p.grantText(ctx, s.GrantTemplate) })
	field("starts_at", "starts_at", func(s campaign.Snapshot) string { return p.when(ctx, s.StartsAt) })
	field("ends_at", "ends_at", func(s campaign.Snapshot) string { return p.when(ctx, s.EndsAt) })
	field("rate_per_second", "rate_per_second", func(s campaign.Snapshot) string { return paceLimit(ctx, s.RatePerSecond) })
	return list
}

func (p Approval) when(ctx context.Context, t time.Time) string {
	l := ui.From(ctx).Locale
	return l.DateTime(t, p.Zone) + " " + l.Zone(t, p.Zone)
}

func (p Approval) grantText(ctx context.Context, id int64) string {
	if id == 0 {
		return ui.T(ctx, "approval.no_grant")
	}
	if t, ok := p.Grants[id]; ok {
		return t.Name + " (#" + strconv.FormatInt(id, 10) + "): " + parts.Worth(ctx, t.Spec)
	}
	return "#" + strconv.FormatInt(id, 10)
}

// shopText is the shop's name. Only the campaign's own shop is known by name.
func (p Approval) shopText(ctx context.Context, shop int64) string {
	if shop != 0 && shop == p.Campaign.Shop && p.Campaign.ShopName != "" {
		return p.Campaign.ShopName
	}
	return numberOr(shop, ui.T(ctx, "campaign.no_shop"))
}

func numberOr(n int64, none string) string {
	if n == 0 {
		return none
	}
	return strconv.FormatInt(n, 10)
}

func (p Approval) snapshotAudience(ctx context.Context, s campaign.Snapshot) string {
	if s.Rule != nil {
		return ui.Labelled(ctx, ui.T(ctx, "campaign.audience."+string(s.Audience.Kind)), ui.Bracketed(ctx, s.Rule.Name, ui.T(ctx, "approval.rule_version", s.Rule.Version)))
	}
	text := audienceText(ctx, s.Audience, p.AudienceNames)
	if s.Audience.Kind == campaign.Named { // the recipients, as far as there is room
		const shown = 20
		ids := make([]string, 0, shown)
		for _, id := range s.Audience.Users[:min(shown, len(s.Audience.Users))] {
			ids = append(ids, id.String())
		}
		text = ui.Labelled(ctx, text, strings.Join(ids, ui.T(ctx, "ui.list_join")))
		if len(s.Audience.Users) > shown {
			text += " …"
		}
	}
	return text
}

// frozenText reads a rule aloud, a line a condition.
func (p Approval) frozenText(ctx context.Context, f *campaign.FrozenRule) string {
	switch {
	case f == nil:
		return parts.OrDash("")
	case f.Kind == segment.ByList:
		return ui.T(ctx, "approval.rule_list")
	}
	return strings.Join(parts.RuleLines(ctx, f.Rule, "", p.Names), "\n")
}

func textLabel(ctx context.Context, t campaign.TextPair) string {
	key := "campaign.field.title"
	if t.Body {
		key = "campaign.field.body"
	}
	label := ui.T(ctx, key)
	if t.Locale != "" {
		label = ui.Bracketed(ctx, label, parts.LanguageName(ctx, t.Locale))
	}
	if t.Variant > 0 {
		label += " · " + ui.T(ctx, "campaign.preview.b")
	}
	return label
}

func shareText(ctx context.Context, c delivery.Copy) string {
	if len(c.Variants) < 2 {
		return parts.OrDash("")
	}
	return parts.PercentText(ctx, c.Variants[1].Percent)
}

func paceLimit(ctx context.Context, n int) string {
	if n == 0 {
		return ui.T(ctx, "campaign.rate.unlimited")
	}
	return ui.T(ctx, "campaign.rate.value", ui.Num(ctx, int64(n)))
}

// parted divides two texts into their common beginning head, their differences gone and come, and
// their common end tail. It divides at the ends of words, in languages that separate words by
// spaces.
func parted(before, after string) (head, gone, come, tail string) {
	a, b := []rune(before), []rune(after)
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	j := 0
	for j < n-i && a[len(a)-1-j] == b[len(b)-1-j] {
		j++
	}
	inWord := func(r []rune, at int) bool { // whether the place lies between two letters of a word
		return at > 0 && at < len(r) && wordRune(r[at-1]) && wordRune(r[at])
	}
	for i > 0 && (inWord(a, i) || inWord(b, i)) {
		i--
	}
	for j > 0 && (inWord(a, len(a)-j) || inWord(b, len(b)-j)) {
		j--
	}
	return string(a[:i]), string(a[i : len(a)-j]), string(b[i : len(b)-j]), string(a[len(a)-j:])
}

// wordRune reports whether r belongs to a word that is separated by spaces; Chinese words are not.
func wordRune(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r)) && !unicode.Is(unicode.Han, r)
}

// changed counts the fields that differ.
func (p Approval) changed(ctx context.Context) (n int) {
	for _, row := range p.rows(ctx) {
		if row.changed {
			n++
		}
	}
	return n
}

func (p Approval) reasonField(ctx context.Context, key, help string) ui.FieldProps {
	return ui.FieldProps{Name: "reason", Label: ui.T(ctx, key), Help: help, Value: p.Reason, Error: ui.ErrorOf(ctx, p.Errors, "reason"),
		MaxLength: "500", Autocomplete: "off"}
}

// refusal returns the last request if it was refused and there is no newer request.
func (p Campaign) refusal() *campaign.Request {
	if p.State == campaign.Draft && len(p.Requests) > 0 && p.Requests[0].State == campaign.RequestRefused {
		return &p.Requests[0]
	}
	return nil
}

// ruleText says which version of the segment applies.
func (p Campaign) ruleText(ctx context.Context) string {
	r := p.rule()
	switch {
	case p.Rule == nil:
		return ui.T(ctx, "campaign.rule.now", r.Version)
	case p.SegmentNow != nil && p.SegmentNow.Version != r.Version && r.Kind == segment.ByRules:
		return ui.T(ctx, "campaign.rule.kept", r.Version, p.SegmentNow.Version)
	}
	return ui.T(ctx, "campaign.rule.published", r.Version)
}
