package campaigns

import (
	"context"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/segment"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// Campaigns is the list of campaigns.
type Campaigns struct {
	List []campaign.Status
	// Brought are their results by id.
	Brought map[int64]campaign.Results
	// Audiences are the names of their audiences.
	Audiences AudienceNames
	// The filter of the list, as typed.
	Search   string
	States   []campaign.State
	From, To string
	parts.Paged
}

func (p Campaigns) filtered() bool {
	return p.Search != "" || len(p.States) > 0 || p.From != "" || p.To != ""
}

// zone names the zone of all starts; "" if the starts are in several zones.
func (p Campaigns) zone(ctx context.Context) (name string) {
	for i, c := range p.List {
		if z := ui.From(ctx).Locale.Zone(c.StartsAt, campaignZone(ctx, c.Campaign)); i == 0 {
			name = z
		} else if z != name {
			return ""
		}
	}
	return name
}

// Campaign is one campaign's page.
type Campaign struct {
	campaign.Status
	Zone *time.Location
	// Results are the results of a worker's last count. Balance is the balance recounted for this
	// page, if it was requested.
	Results campaign.Results
	Balance *campaign.Balance
	// Previews are the texts by language for one reader.
	Previews Texts
	// TestTo is the recipient of a test message, TestVariant its version, and TestError why it was
	// not sent.
	TestTo, TestVariant, TestError string
	// Rate is set where a rate was refused.
	Rate TypedRate
	// Requests hold the last request for approval, if any.
	Requests []campaign.Request
	// SegmentNow is the present rule of the campaign's segment; nil for other audiences.
	SegmentNow *campaign.FrozenRule
	// AudienceNames has the name of the audience.
	AudienceNames AudienceNames
	// Names are the names of the drops of the rule.
	Names parts.DropNames
	// Recipients are the first few.
	Recipients CampaignRecipients
	// Carrier is the state of the campaign's channel.
	Carrier delivery.ChannelStatus
	// Waiting counts the recipients in flight whose message is sent after their quiet hours.
	Waiting campaign.Waiting
	// Earlier are campaigns of the same shop that have ended.
	Earlier []campaign.Past
	// Course is what the campaign brought about.
	Course CampaignCourse
}

// account returns the difference that the last recount of the campaign found, and its time. known
// is false if the campaign was never recounted.
func (p Campaign) account(ctx context.Context) (off int64, at time.Time, known bool) {
	switch {
	case p.Balance != nil:
		return p.Balance.Difference(), ui.From(ctx).Now, true
	case p.Results.AccountOff != nil && p.Results.CountedTo != nil:
		return *p.Results.AccountOff, *p.Results.CountedTo, true
	}
	return 0, time.Time{}, false
}

// URL returns the page's address, or an address below it.
func (p Campaign) URL(below string) string {
	return parts.CampaignURL(p.ID, below)
}

// campaignZone returns the zone of the campaign's shop; without a shop it returns the console's
// zone.
func campaignZone(ctx context.Context, c campaign.Campaign) *time.Location {
	if zone, err := time.LoadLocation(c.ShopTimezone); err == nil && c.ShopTimezone != "" {
		return zone
	}
	return ui.From(ctx).Zone
}

// holding returns the request whose size holds the campaign back; nil if the campaign is not held.
func (p Campaign) holding() *campaign.Request {
	if p.HeldAt == nil || len(p.Requests) == 0 || p.Requests[0].Allowed == nil {
		return nil
	}
	return &p.Requests[0]
}

// moving reports whether the page changes without a step of staff: before the start and while the
// campaign runs.
func (p Campaign) moving() bool {
	if p.State == campaign.Draft {
		return p.ApprovalAskedAt != nil
	}
	return !p.State.Over() || p.StartedAt != nil && p.SettledAt == nil
}

// progressURL returns the address of the progress for a page in this state.
func (p Campaign) progressURL() string { return p.URL("progress") + "?state=" + string(p.State) }

func campaignTone(s campaign.State) ui.Tone {
	switch s {
	case campaign.Scheduled:
		return ui.Info
	case campaign.Running:
		return ui.Good
	case campaign.Paused:
		return ui.Warn
	case campaign.Failed, campaign.Cancelled:
		return ui.Bad
	}
	return ui.Neutral
}

// audienceText describes the audience of a campaign in a few words.
func audienceText(ctx context.Context, a campaign.Audience, names AudienceNames) string {
	if a.Kind == campaign.Named {
		return ui.N(ctx, "campaign.audience.named", int64(len(a.Users)))
	}
	text := ui.T(ctx, "campaign.audience."+string(a.Kind))
	if a.ID == 0 {
		return text
	}
	number := "#" + strconv.FormatInt(a.ID, 10)
	if name := names[AudienceKey(a)]; name != "" {
		return ui.Labelled(ctx, text, ui.Bracketed(ctx, name, number))
	}
	return text + " " + number
}

// AudienceNames are the names of the segments and drops of audiences, by [AudienceKey].
type AudienceNames map[string]string

// AudienceKey identifies a segment or a drop of an audience.
func AudienceKey(a campaign.Audience) string {
	return AudienceOf(a.Kind, strconv.FormatInt(a.ID, 10))
}

// etaText is when each recipient will have an outcome.
func etaText(ctx context.Context, p campaign.Progress) string {
	if p.Left < 0 {
		return ui.T(ctx, "campaign.eta.unknown")
	}
	return ui.From(ctx).Locale.Duration(p.Left.Round(time.Second))
}

// share is the part of the audience that was sent, in percent.
func share(ctx context.Context, p campaign.Progress) string {
	if p.Reserved == 0 {
		return "–"
	}
	return ui.From(ctx).Locale.Percent(p.Sent, p.Reserved)
}

// CampaignForm creates a campaign or edits a draft.
type CampaignForm struct {
	ID      int64
	From    int64 // which campaign a new one is a copy of, 0 = none
	Version int64
	Title   string
	Values  map[string]string
	Errors  []fault.Field
	Shops   []template.Shop
	// Channels are the channels with a configured sender.
	Channels delivery.ChannelSet
	Kinds    []campaign.AudienceKind
	// Segments can be chosen by name; others by their number.
	Segments []segment.Segment
	// Spec is the part of the typed values that could be read, in the zone of its shop.
	Spec campaign.Spec
	Zone *time.Location
	// Previews, Reach and Grant result from the typed values. Reach is nil while it is unknown.
	// Grant is nil while no coupon is given that the viewer may see.
	Previews Texts
	Reach    *campaign.Reach
	Grant    *template.Template
	// Texts is how many users of the reach text messages would go to, at most.
	Texts int64
	// About is the template that defines its audience, if the viewer may see it.
	About *template.Template
	// ApprovalAbove is how many users the shop's campaigns may reach without
	// approval; 0 = any number.
	ApprovalAbove int64
	// Looked moves all that to the top of the page, because it was requested.
	Looked bool
	// Added is whether a language was added just now.
	Added bool
	// Replanned is whether the times have moved to the zone of another shop.
	Replanned  bool
	RequestKey string
	// Reaches is about how many users of the audience each channel reaches.
	Reaches map[delivery.Channel]int64
	// Readers is about how many users of the audience read each language; nil while it is unknown.
	Readers *message.Readers
	// Shown and ShownB are the chosen tabs of the languages; see [ShownLanguage].
	Shown, ShownB string
	// Pictures is the library of the shop.
	Pictures parts.Pictures
	// Everybody is about how many users there are; nil if it is unknown.
	Everybody *campaign.Reach
}

// Action is the address that the form is sent to.
func (p CampaignForm) Action() string {
	if p.ID == 0 {
		return "/campaigns"
	}
	return parts.CampaignURL(p.ID, "edit")
}

func (p CampaignForm) back() string {
	if p.ID == 0 {
		return "/campaigns"
	}
	return parts.CampaignURL(p.ID, "")
}

// Typed are the typed values, by the names of their fields.
func (p CampaignForm) Typed() map[string]string { return p.Values }

// Place is where the form is in the navigation.
func (p CampaignForm) Place(ctx context.Context) (string, []ui.Crumb) {
	return "campaigns", []ui.Crumb{{Label: ui.T(ctx, "nav.campaigns"), URL: "/campaigns"}, {Label: p.Values["name"], URL: p.back()}}
}

func (p CampaignForm) field(ctx context.Context, name, kind string, required bool) ui.FieldProps {
	f := ui.FieldProps{Name: name, Label: ui.T(ctx, "campaign.field."+name), Value: p.Values[name], Type: kind, Required: required,
		Error: ui.ErrorOf(ctx, p.Errors, name), Autocomplete: "off"}
	if key := "campaign.help." + name; ui.From(ctx).Locale.Has(key) {
		now := ui.From(ctx)
		f.Help = ui.T(ctx, key, now.Locale.Zone(now.Now, now.Zone)) // where no shop's zone counts
	}
	return f
}

func (p CampaignForm) channelChoice(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "channel", Label: ui.T(ctx, "campaign.field.channel"), Help: ui.T(ctx, "campaign.help.channel"), Value: p.Values["channel"], Error: ui.ErrorOf(ctx, p.Errors, "channel"), Required: true}
	for _, ch := range delivery.AllChannels() {
		c.Options = append(c.Options, ui.Option{Value: ch.String(), Label: parts.ChannelLabel(ctx, ch, p.Channels), Help: p.channelReach(ctx, ch), HelpID: "reach-" + ch.String()})
	}
	return c
}

func (p CampaignForm) audienceChoice(ctx context.Context) ui.ChoiceProps {
	c := ui.ChoiceProps{Name: "audience", Label: ui.T(ctx, "campaign.field.audience"), Value: p.Values["audience"], Error: ui.ErrorOf(ctx, p.Errors, "audience"), Required: true}
	c.Options = append(c.Options, ui.Option{Label: ui.T(ctx, "campaign.audience.choose")})
	for _, k := range campaign.AudienceKinds() {
		if k == campaign.Segment || k == campaign.List { // are chosen by their names
			continue
		}
		if slices.Contains(p.Kinds, k) {
			o := ui.Option{Value: string(k), Label: ui.T(ctx, "campaign.audience."+string(k))}
			if k == campaign.Everybody && p.Everybody != nil {
				o.Label += " · " + ui.N(ctx, "campaign.audience.members", p.Everybody.Users)
			}
			c.Options = append(c.Options, o)
		}
	}
	for _, s := range p.Segments {
		kind := campaign.Segment
		if s.Kind == segment.ByList {
			kind = campaign.List
		}
		o := ui.Option{Value: AudienceOf(kind, strconv.FormatInt(s.ID, 10)), Label: ui.Labelled(ctx, ui.T(ctx, "campaign.audience."+string(kind)), s.Name)}
		if s.Members != nil {
			o.Label += " · " + ui.N(ctx, "campaign.audience.members", *s.Members)
		}
		c.Options = append(c.Options, o)
		if o.Value == AudienceOf(campaign.AudienceKind(c.Value), p.Values["audience_value"]) {
			c.Value = o.Value
		}
	}
	if id := p.Values["audience_value"]; c.Value == string(campaign.Segment) || c.Value == string(campaign.List) { // not among the last changed
		o := ui.Option{Value: AudienceOf(campaign.AudienceKind(c.Value), id), Label: ui.Labelled(ctx, ui.T(ctx, "campaign.audience."+c.Value), id)}
		c.Options, c.Value = append(c.Options, o), o.Value
	}
	return c
}

// AudienceOf names one segment or list in the form's choice of audiences.
func AudienceOf(kind campaign.AudienceKind, id string) string { return string(kind) + ":" + id }

func (p CampaignForm) shopChoice(ctx context.Context) ui.ChoiceProps {
	return ui.ChoiceProps{Name: "shop", Label: ui.T(ctx, "field.shop"), Help: ui.T(ctx, "campaign.help.shop"), Value: p.Values["shop"], Error: ui.ErrorOf(ctx, p.Errors, "shop"),
		Options: append(parts.ShopOptions(ctx, p.Shops), ui.Option{Value: "", Label: ui.T(ctx, "campaign.no_shop")})}
}

// CampaignLabel is the label of a field of the form, by its name.
func CampaignLabel(ctx context.Context, name string) string {
	if key := "campaign.field." + name; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return parts.FieldLabel(ctx, name)
}

// variantsText says which share of the recipients gets which version; the shares add up to 100 %.
func variantsText(ctx context.Context, c delivery.Copy) string {
	if !c.Divided() {
		return ui.T(ctx, "campaign.variants.same")
	}
	l := ui.From(ctx).Locale
	var parts []any
	for _, share := range c.Shares() {
		parts = append(parts, l.Thousandths(share))
	}
	switch {
	case len(c.Variants) < 2:
		return l.T("campaign.variants.held", parts...)
	case c.HoldOut == 0:
		return l.T("campaign.variants.two", parts...)
	}
	return l.T("campaign.variants.split", parts...)
}

// rule is the rule of the audience: since publication its frozen version.
func (p Campaign) rule() *campaign.FrozenRule {
	if p.Rule != nil {
		return p.Rule
	}
	return p.SegmentNow
}

// A TypedRate is a typed rate, the rate that the form first showed, and the error.
type TypedRate struct{ Value, Was, Error string }
