package campaigns

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

// Words is a text in the default language, or one per language.
type Words map[string]string

// UnmarshalJSON takes a string or an object of strings by language tag.
func (w *Words) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*w = Words{"": one}
		return nil
	}
	var many map[string]string
	if json.Unmarshal(b, &many) != nil || many == nil {
		return errors.New("must be a string, or an object of strings by language tag")
	}
	if text, ok := many["default"]; ok {
		delete(many, "default")
		many[""] = text
	}
	*w = many
	return nil
}

// MarshalJSON writes a string where there is one language only.
func (w Words) MarshalJSON() ([]byte, error) {
	if text, ok := w[""]; ok && len(w) == 1 {
		return json.Marshal(text)
	}
	named := make(map[string]string, len(w))
	for tag, text := range w {
		if tag == "" {
			tag = "default"
		}
		named[tag] = text
	}
	return json.Marshal(named)
}

// Schema describes both forms.
func (w Words) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString},
		{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}}},
		Description: "Text in the default language, or an object of texts by language tag, \"default\" being one of them. " +
			"Variables: {{name}}, {{coupon.name}}, {{shop.name}}, {{opens_at}}, {{ends_at}}, {{link}}; {{name|friend}} is \"friend\" where the value is missing.",
		Examples: []any{"Spring sale, {{name|dear customer}}"}}
}

// CampaignAudience says which users a campaign is for; exactly one field is given.
type CampaignAudience struct {
	All                bool     `json:"all,omitempty" doc:"Every known user."`
	UserIDs            []string `json:"user_ids,omitempty" maxItems:"100000" doc:"These users." nullable:"false"`
	ReservedTemplateID string   `json:"reserved_template_id,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"All users with a reservation of the template."`
	HoldsTemplateID    string   `json:"holds_template_id,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"All users with an unused coupon of the template."`
	SegmentID          string   `json:"segment_id,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"The members of the segment."`
	ListID             string   `json:"list_id,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"The users of an uploaded list."`
}

func (w CampaignAudience) audience() (campaign.Audience, error) {
	var found []campaign.Audience
	var errs []error
	if w.All {
		found = append(found, campaign.Audience{Kind: campaign.Everybody})
	}
	if w.UserIDs != nil {
		a := campaign.Audience{Kind: campaign.Named}
		for _, s := range w.UserIDs {
			id, err := user.ParseID(s)
			if err != nil {
				errs = append(errs, pipeline.Refused("body.audience.user_ids", "each "+pipeline.IDInBody))
				break
			}
			a.Users = append(a.Users, id)
		}
		found = append(found, a)
	}
	for _, one := range []struct {
		kind campaign.AudienceKind
		id   string
	}{{campaign.Reserved, w.ReservedTemplateID}, {campaign.Holds, w.HoldsTemplateID}, {campaign.Segment, w.SegmentID}, {campaign.List, w.ListID}} {
		if one.id != "" {
			id, err := pipeline.ParseID("body.audience."+string(one.kind), one.id)
			errs = append(errs, err)
			found = append(found, campaign.Audience{Kind: one.kind, ID: id})
		}
	}
	if len(found) != 1 {
		errs = append(errs, pipeline.Refused("body.audience", "say exactly one of all, user_ids, reserved_template_id, holds_template_id, segment_id, list_id"))
		return campaign.Audience{}, pipeline.Merge(errs...)
	}
	return found[0], pipeline.Merge(errs...)
}

func audienceJSON(a campaign.Audience) CampaignAudience {
	w := CampaignAudience{All: a.Kind == campaign.Everybody}
	for _, id := range a.Users {
		w.UserIDs = append(w.UserIDs, id.String())
	}
	switch a.Kind {
	case campaign.Reserved:
		w.ReservedTemplateID = pipeline.Decimal(a.ID)
	case campaign.Holds:
		w.HoldsTemplateID = pipeline.Decimal(a.ID)
	case campaign.Segment:
		w.SegmentID = pipeline.Decimal(a.ID)
	case campaign.List:
		w.ListID = pipeline.Decimal(a.ID)
	}
	return w
}

// CampaignVariant is a second content to compare with the first.
type CampaignVariant struct {
	Title   Words  `json:"title"`
	Body    Words  `json:"body"`
	Blocks  Blocks `json:"blocks,omitempty" doc:"As blocks of the campaign."`
	Percent int    `json:"percent" minimum:"1" maximum:"99" doc:"The percentage of recipients who get this one; of a test, of the recipients in the test." example:"50"`
}

// CampaignWish is a campaign to be created.
type CampaignWish struct {
	Name            string           `json:"name" doc:"For staff; at most 120 characters." example:"Spring"`
	Title           Words            `json:"title"`
	Body            Words            `json:"body"`
	Channel         string           `json:"channel" enum:"app,email,sms,webpush,webhook" example:"app"`
	Audience        CampaignAudience `json:"audience"`
	GrantTemplateID *string          `json:"grant_template_id,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"Each recipient first gets a coupon of this template; users who cannot get one are skipped." nullable:"true"`
	StartsAt        time.Time        `json:"starts_at" doc:"Start of sending; an instant in the past means at publication." example:"2027-01-01T12:00:00Z"`
	EndsAt          time.Time        `json:"ends_at" doc:"Nothing is sent from then on." example:"2027-01-02T12:00:00Z"`
	RatePerSecond   int              `json:"rate_per_second,omitempty" doc:"The most messages per second; 0 = as fast as the channel." example:"100"`
	ShopNumber      *string          `json:"shop_number,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"The campaign's shop; if absent, that of its template, else none." nullable:"true"`
	VariantB        *CampaignVariant `json:"variant_b,omitempty" doc:"A second content for a part of the recipients."`
	HoldOutPercent  int              `json:"hold_out_percent,omitempty" minimum:"0" maximum:"90" doc:"The percentage of the audience that gets nothing, for comparison."`
	Blocks          Blocks           `json:"blocks,omitempty" doc:"The blocks of a mail by language tag, \"default\" being one of them. Absent = title, body and a button. Other channels show the body, which may be empty in a mail with blocks."`
	Link            string           `json:"link,omitempty" maxLength:"500" doc:"The https address to which {{link}} and the button lead; absent = the claim page of the campaign's template. Every http and https address in the texts is tracked too." example:"https://shop.example/spring"`
	Test            *VersionTest     `json:"test,omitempty" doc:"Sends both contents to a share of the recipients first, and the one that wins to the others."`
}

// CampaignPatch is a change of a campaign: absent fields stay as they are.
type CampaignPatch struct {
	Name            pipeline.Optional[string]           `json:"name,omitempty"`
	Title           pipeline.Optional[Words]            `json:"title,omitempty"`
	Body            pipeline.Optional[Words]            `json:"body,omitempty"`
	Channel         pipeline.Optional[string]           `json:"channel,omitempty" enum:"app,email,sms,webpush,webhook"`
	Audience        pipeline.Optional[CampaignAudience] `json:"audience,omitempty"`
	GrantTemplateID pipeline.Optional[string]           `json:"grant_template_id,omitempty" pattern:"^[1-9][0-9]{0,18}$"`
	StartsAt        pipeline.Optional[time.Time]        `json:"starts_at,omitempty"`
	EndsAt          pipeline.Optional[time.Time]        `json:"ends_at,omitempty"`
	RatePerSecond   pipeline.Optional[int]              `json:"rate_per_second,omitempty"`
	ShopNumber      pipeline.Optional[string]           `json:"shop_number,omitempty" pattern:"^[1-9][0-9]{0,18}$"`
	VariantB        pipeline.Optional[CampaignVariant]  `json:"variant_b,omitempty" doc:"null = one content for all."`
	HoldOutPercent  pipeline.Optional[int]              `json:"hold_out_percent,omitempty"`
	Blocks          pipeline.Optional[Blocks]           `json:"blocks,omitempty" doc:"null = title, body and a button."`
	Link            pipeline.Optional[string]           `json:"link,omitempty" doc:"null = the claim page of the template."`
	Test            pipeline.Optional[VersionTest]      `json:"test,omitempty" doc:"null = no test: both contents go to their percentages at once."`
}

// Campaign is a campaign as staff see it.
type Campaign struct {
	ID    string `json:"id" example:"1"`
	State string `json:"state" enum:"draft,scheduled,running,paused,finished,cancelled,failed" example:"draft"`
	CampaignWish
	Reason         string           `json:"reason,omitempty" doc:"Why it was cancelled or failed."`
	Version        int64            `json:"version" doc:"Grows with every change; send it as If-Match." example:"1"`
	CreatedBy      string           `json:"created_by" example:"staff:1 Li"`
	CreatedAt      time.Time        `json:"created_at"`
	UpdatedAt      time.Time        `json:"updated_at"`
	PublishedAt    *time.Time       `json:"published_at,omitempty"`
	StartedAt      *time.Time       `json:"started_at,omitempty"`
	EndedAt        *time.Time       `json:"ended_at,omitempty"`
	AwaitsApproval bool             `json:"awaits_approval,omitempty" doc:"Its publication waits for approval by a second person."`
	HeldAt         *time.Time       `json:"held_at,omitempty" doc:"Since when it is paused because its audience is larger than may be reached without approval; …/approval has the numbers, and …/approve resumes it."`
	ApprovedBy     string           `json:"approved_by,omitempty" doc:"The member who approved the publication; absent before." example:"staff:2 Ada"`
	Segment        *FrozenRule      `json:"segment,omitempty" doc:"The version of its segment that the campaign is sent by: the one at publication, even if the segment has changed since."`
	Progress       CampaignProgress `json:"progress"`
}

// CampaignProgress counts the outcomes of the audience so far.
type CampaignProgress struct {
	Audience int64 `json:"audience" doc:"Users cut so far; always the sum of the five that follow." example:"1000"`
	Sent     int64 `json:"sent" example:"640"`
	Skipped  int64 `json:"skipped" example:"3"`
	Expired  int64 `json:"expired" example:"0"`
	Dead     int64 `json:"dead" example:"1"`
	InFlight int64 `json:"in_flight" example:"356"`
	Waiting  int64 `json:"waiting,omitempty" doc:"Users in flight who wait for the end of their quiet hours; only in the answer for one running campaign. eta_seconds does not include them." example:"12"`
	// WaitingUntil is nil if no recipient waits.
	WaitingUntil *time.Time `json:"waiting_until,omitempty" doc:"When the first of these quiet hours ends."`
	Complete     bool       `json:"audience_complete" doc:"Whether the whole audience is known."`
	Rate         float64    `json:"rate" doc:"Recipients settled per second lately." example:"99.5"`
	ETASeconds   *float64   `json:"eta_seconds" doc:"Until all recipients have an outcome at this rate; null while there is no estimate." nullable:"true" example:"3.6"`
}

func (w CampaignWish) spec() (campaign.Spec, error) {
	s := campaign.Spec{Name: w.Name, StartsAt: w.StartsAt.UTC().Truncate(time.Microsecond), EndsAt: w.EndsAt.UTC().Truncate(time.Microsecond),
		RatePerSecond: w.RatePerSecond, Content: delivery.Copy{HoldOut: w.HoldOutPercent}}
	channel, err1 := delivery.ParseChannel(w.Channel)
	if err1 != nil {
		err1 = pipeline.Refused("body.channel", "unknown channel; use one of app, email, sms, webpush, webhook")
	}
	audience, err2 := w.Audience.audience()
	s.Channel, s.Audience = channel, audience
	s.Content.Link, s.Content.Test = w.Link, w.Test.test()
	first := delivery.Variant{Percent: 100, Texts: texts(w.Title, w.Body, w.Blocks)}
	if w.VariantB != nil {
		first.Percent = 100 - w.VariantB.Percent
	}
	s.Content.Variants = append(s.Content.Variants, first)
	if w.VariantB != nil {
		s.Content.Variants = append(s.Content.Variants, delivery.Variant{Percent: w.VariantB.Percent, Texts: texts(w.VariantB.Title, w.VariantB.Body, w.VariantB.Blocks)})
	}
	var err3, err4 error
	if w.GrantTemplateID != nil && *w.GrantTemplateID != "" {
		s.GrantTemplate, err3 = pipeline.ParseID("body.grant_template_id", *w.GrantTemplateID)
	}
	if w.ShopNumber != nil && *w.ShopNumber != "" {
		s.Shop, err4 = pipeline.ParseID("body.shop_number", *w.ShopNumber)
	}
	return s, pipeline.Merge(err1, err2, err3, err4)
}

// texts joins titles, bodies and blocks by language; a missing one is refused later.
func texts(title, body Words, blocks Blocks) map[string]delivery.Text {
	list := map[string]delivery.Text{}
	for tag, s := range title {
		list[tag] = delivery.Text{Title: s}
	}
	for tag, s := range body {
		t := list[tag]
		t.Body = s
		list[tag] = t
	}
	for tag, of := range blocks {
		if tag == "default" {
			tag = ""
		}
		t := list[tag]
		for _, b := range of {
			t.Blocks = append(t.Blocks, message.Block{Type: message.BlockType(b.Type), Text: b.Text, URL: b.URL})
		}
		list[tag] = t
	}
	return list
}

func words(texts map[string]delivery.Text) (title, body Words, blocks Blocks) {
	title, body = Words{}, Words{}
	for tag, t := range texts {
		title[tag], body[tag] = t.Title, t.Body
		for _, b := range t.Blocks {
			if blocks == nil {
				blocks = Blocks{}
			}
			name := cmp.Or(tag, "default")
			blocks[name] = append(blocks[name], CampaignBlock{string(b.Type), b.Text, b.URL})
		}
	}
	return title, body, blocks
}

// wishOf is the inverse of [CampaignWish.spec].
func wishOf(s campaign.Spec) CampaignWish {
	w := CampaignWish{Name: s.Name, Channel: s.Channel.String(), Audience: audienceJSON(s.Audience), StartsAt: s.StartsAt.UTC(),
		EndsAt: s.EndsAt.UTC(), RatePerSecond: s.RatePerSecond, HoldOutPercent: s.Content.HoldOut}
	w.Title, w.Body, w.Blocks = words(s.Content.Variants[0].Texts)
	w.Link, w.Test = s.Content.Link, testJSON(s.Content.Test)
	if len(s.Content.Variants) > 1 {
		b := s.Content.Variants[1]
		w.VariantB = &CampaignVariant{Percent: b.Percent}
		w.VariantB.Title, w.VariantB.Body, w.VariantB.Blocks = words(b.Texts)
	}
	if s.GrantTemplate != 0 {
		w.GrantTemplateID = new(pipeline.Decimal(s.GrantTemplate))
	}
	if s.Shop != 0 {
		w.ShopNumber = new(pipeline.Decimal(s.Shop))
	}
	return w
}

// apply returns the spec with the patch applied.
func (p CampaignPatch) apply(s campaign.Spec) (campaign.Spec, error) {
	w := wishOf(s)
	p.Name.Into(&w.Name)
	p.Title.Into(&w.Title)
	p.Body.Into(&w.Body)
	p.Channel.Into(&w.Channel)
	p.Audience.Into(&w.Audience)
	p.StartsAt.Into(&w.StartsAt)
	p.EndsAt.Into(&w.EndsAt)
	p.RatePerSecond.Into(&w.RatePerSecond)
	p.HoldOutPercent.Into(&w.HoldOutPercent)
	p.Link.Into(&w.Link)
	if p.Blocks.Set {
		w.Blocks = p.Blocks.Value
	}
	if p.Test.Set {
		if w.Test = &p.Test.Value; p.Test.Null {
			w.Test = nil
		}
	}
	if p.GrantTemplateID.Set {
		w.GrantTemplateID = &p.GrantTemplateID.Value
	}
	if p.ShopNumber.Set {
		w.ShopNumber = &p.ShopNumber.Value
	}
	if p.VariantB.Set {
		if w.VariantB = &p.VariantB.Value; p.VariantB.Null {
			w.VariantB = nil
		}
	}
	return w.spec()
}

func campaignJSON(st campaign.Status) Campaign {
	c := st.Campaign
	if c.ApprovalAskedAt != nil {
		c.ApprovedBy = "" // until it is approved, that is the requester
	}
	return Campaign{ID: pipeline.Decimal(c.ID), State: string(c.State), CampaignWish: wishOf(c.Spec), Reason: c.Reason, Version: c.Version,
		CreatedBy: c.CreatedBy, CreatedAt: c.CreatedAt.UTC(), UpdatedAt: c.UpdatedAt.UTC(), PublishedAt: pipeline.UTC(c.PublishedAt),
		StartedAt: pipeline.UTC(c.StartedAt), EndedAt: pipeline.UTC(c.EndedAt), AwaitsApproval: c.ApprovalAskedAt != nil, ApprovedBy: c.ApprovedBy, HeldAt: pipeline.UTC(c.HeldAt), Segment: frozenJSON(c.Rule),
		Progress: progressJSON(st.Progress)}
}

func progressJSON(p campaign.Progress) CampaignProgress {
	w := CampaignProgress{Audience: p.Reserved, Sent: p.Sent, Skipped: p.Skipped, Expired: p.Expired, Dead: p.Dead, InFlight: p.InFlight,
		Complete: p.CutDone, Rate: math.Round(p.PerSecond*10) / 10}
	if p.Left >= 0 {
		w.ETASeconds = new(math.Round(p.Left.Seconds()*10) / 10)
	}
	return w
}

// ofCampaign places the fields that a rule has named: one of them is itself called body. more are further names with
// those that the API has for them.
func ofCampaign(err error, more ...string) error {
	fields, ok := errors.AsType[*fault.Fields](err)
	if !ok {
		return err
	}
	out := &fault.Fields{}
	named := strings.NewReplacer(append(more, "test_share", "test.share_percent", "test_by", "test.by", "test_minutes", "test.minutes")...)
	for _, f := range fields.List {
		out.Add("body."+named.Replace(f.Name), f.Key, "%s", f.Message)
	}
	return out
}
