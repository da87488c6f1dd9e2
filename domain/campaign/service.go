package campaign

import (
	"context"
	"errors"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/detach"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A Change is everything one save stores in one transaction.
type Change struct {
	// Campaign is the new value; its Version is the version it is based on.
	Campaign Campaign
	// Step is the transition that makes the change, "" for an edit.
	Step  Transition
	Event string // name of the event to announce
	Entry staff.Entry
	// RequestKey makes a creation repeatable: a second creation with the same key returns the
	// campaign of the first. Empty = not repeatable.
	RequestKey string
	// Rule is the rule of the segment on which a publication is based; nil = any rule. If the
	// segment has another rule when the change is stored, [fault.ErrStale] is returned.
	Rule *FrozenRule
	// Ask is the request for approval that the change makes, Decision the decision about the open
	// request. With neither, the open request lapses unless the campaign still waits for it.
	Ask      *Request
	Decision *Decision
}

// A Query selects campaigns, the newest first.
type Query struct {
	Search   string
	States   []State
	Channel  *delivery.Channel
	Shops    []int64    // empty = all, those of no shop included
	From, To *time.Time // instants between which they start
	// FirstDay and AfterDay are midnight UTC of dates. They select campaigns that start on the
	// days from FirstDay to before AfterDay, by the date in their shop's zone, or in Zone if they
	// belong to no shop.
	FirstDay, AfterDay *time.Time
	Zone               *time.Location
	// Spans is set by the service: the days in every zone.
	Spans    []Span
	Started  bool  // only those that have begun to go out
	BeforeID int64 // keyset: only older ones; 0 = from the newest
	Limit    int
}

// A Status is a campaign with how far it has come.
type Status struct {
	Campaign
	Progress Progress
}

// Store keeps campaigns.
type Store interface {
	DraftStore
	RuleStore
	CalendarStore
	segment.TemplateStore
	// Campaign returns [ErrNotFound] if there is none.
	Campaign(ctx context.Context, id int64) (Campaign, error)
	Campaigns(ctx context.Context, q Query) ([]Status, error)
	// Insert creates a draft and returns it with its id.
	Insert(ctx context.Context, c Change) (Campaign, error)
	// Save stores the change if the version is still current, otherwise it returns
	// [fault.ErrStale]. It returns [ErrPublished] if an equal campaign was published within
	// [RepublishAfter], by the database's clock.
	Save(ctx context.Context, c Change) (Campaign, error)
	// Status returns [ErrNotFound] if there is no such campaign.
	Status(ctx context.Context, id int64) (Status, error)
	// Balance recomputes the account from the rows.
	Balance(ctx context.Context, id int64) (Balance, error)
	// SendTest stores a batch of one recipient for the workers. If that batch exists, it is made
	// ready again, unless its test message is still being sent.
	SendTest(ctx context.Context, c Campaign, to user.ID, variant *int, e staff.Entry) error
	// Outcome returns the outcome of the message of this kind to one user; false if the user is
	// in none of the campaign's batches.
	Outcome(ctx context.Context, kind delivery.Kind, c Campaign, id user.ID) (Outcome, bool, error)
	// Subject returns the subject of the campaign's messages.
	Subject(ctx context.Context, c Campaign) (delivery.Subject, error)
	SizeStore
	// SaveLimits stores the limits of a shop's campaigns, with the audit entry, to which it adds
	// the limits before. If was is given and is not the present limits, it returns
	// [fault.ErrStale].
	SaveLimits(ctx context.Context, shop int64, was *Limits, l Limits, e staff.Entry) error
	// Estimate returns the approximate number of users of an audience without
	// reading all of them, and whether the number is exact.
	Estimate(ctx context.Context, a Audience) (n int64, exact bool, err error)
	// EstimateContact returns an upper estimate of the users of an audience with a contact of the
	// kind, one of [segment.ContactKinds].
	EstimateContact(ctx context.Context, a Audience, kind string) (int64, error)
	// EstimateLocales returns about how many users of an audience have each locale; "" = none.
	EstimateLocales(ctx context.Context, a Audience) (map[string]int64, error)
	ResultStore
}

// Templates looks templates up; see [template.ErrNotFound].
type Templates interface {
	Template(ctx context.Context, id int64) (template.Template, error)
}

// Users looks users up; for an unknown user it returns the id alone.
type Users interface {
	Preferences(ctx context.Context, id user.ID) (user.User, error)
}

// Service holds the use cases of staff around campaigns.
type Service struct {
	Store     Store
	Approvals Approvals
	Templates Templates
	Users     Users
	Channels  delivery.Available
	// Texts has the brands of shops; nil = none has one.
	Texts message.Source
	// Audiences are the kinds that can be read here.
	Audiences []AudienceKind
	// QuietCounts is [ResultStore.Waiting], or a cache of its answers: for a large audience an
	// answer takes as long as counting the audience.
	QuietCounts func(ctx context.Context, id int64) (Waiting, error)
	Now         func() time.Time
	DropPage    DropPage
}

// Create stores a draft. It returns a [fault.Fields] that names every broken rule, or
// [staff.ErrForbidden].
func (s *Service) Create(ctx context.Context, by staff.Actor, spec Spec, requestKey string) (Campaign, error) {
	spec, err := s.check(ctx, by, spec)
	if err != nil {
		return Campaign{}, err
	}
	c := Campaign{Spec: spec, State: Draft, Version: 1, Creator: by.Label, CreatedBy: by.Label + " " + by.Name}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.Insert(ctx, Change{Campaign: c, RequestKey: requestKey, Event: event.CampaignChanged,
		Entry: entry(by, "campaign.create", c, "", nil, Audited(spec))})
}

// check completes spec with the shop of its templates, and returns every rule that spec breaks.
func (s *Service) check(ctx context.Context, by staff.Actor, spec Spec) (Spec, error) {
	spec = spec.tidy()
	if err := spec.Check(); err != nil {
		return spec, err
	}
	return s.lookUp(ctx, by, spec)
}

// lookUp is the part of check that reads from stores.
func (s *Service) lookUp(ctx context.Context, by staff.Actor, spec Spec) (Spec, error) {
	e := &fault.Fields{}
	if !slices.Contains(s.Audiences, spec.Audience.Kind) {
		e.Add("audience."+string(spec.Audience.Kind), "rule.audience_unavailable", "this kind of audience is not available here")
	}
	var rule *FrozenRule
	if spec.Audience.Kind == Segment || spec.Audience.Kind == List {
		var err error
		rule, err = s.Store.SegmentRule(ctx, spec.Audience)
		field := "audience." + string(spec.Audience.Kind)
		switch {
		case err != nil:
			return spec, err
		case rule == nil:
			e.Add(field, "rule.unknown_audience", "does not exist")
		case rule.Kind == segment.ByList && spec.Audience.Kind == Segment:
			e.Add(field, "rule.audience_is_list", "is a list; name it as list_id")
		case rule.Kind == segment.ByRules && spec.Audience.Kind == List:
			e.Add(field, "rule.audience_is_rules", "is a segment by rules; name it as segment_id")
		}
	}
	claimURL := ""
	// Always in this order: without a shop the first one decides on it.
	for _, about := range []struct {
		field string
		id    int64
	}{{"audience." + string(spec.Audience.Kind), spec.audienceTemplate()}, {"grant_template_id", spec.GrantTemplate}} {
		if about.id == 0 {
			continue
		}
		t, err := s.Templates.Template(ctx, about.id)
		if about.id == spec.TemplateID() {
			claimURL = t.ClaimAddress()
		}
		switch {
		case errors.Is(err, template.ErrNotFound):
			e.Add(about.field, "rule.unknown_template", "there is no such template")
		case err != nil:
			return spec, err
		case spec.Shop == 0:
			spec.Shop = t.ShopNumber
		case spec.Shop != t.ShopNumber:
			e.Add(about.field, "rule.other_shop", "belongs to another shop")
		}
	}
	spec.checkLink(e, claimURL, s.DropPage)
	if err := e.Err(); err != nil {
		return spec, err
	}
	if err := May(by, staff.ManageCampaigns, spec.Shop); err != nil {
		return spec, err
	}
	return spec, CheckShops(ctx, s.Store, Snapshot{Spec: spec, Rule: rule})
}

// May is [staff.Actor.May] where belonging to no shop means reaching all of them.
func May(by staff.Actor, p staff.Permission, shop int64) error {
	if shop == 0 && len(by.Shops) > 0 && p != staff.View {
		return staff.ErrForbidden.Because("you are limited to shops; name the campaign's")
	}
	return by.May(p, shop)
}

func (s Spec) audienceTemplate() int64 {
	if s.Audience.Kind == Reserved || s.Audience.Kind == Holds {
		return s.Audience.ID
	}
	return 0
}

// normal returns the users ascending, each once.
func normal(ids []user.ID) []user.ID {
	if len(ids) == 0 {
		return nil
	}
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// Campaign returns one campaign with its progress, or [ErrNotFound].
func (s *Service) Campaign(ctx context.Context, by staff.Actor, id int64) (Status, error) {
	st, err := s.Store.Status(ctx, id)
	if err == nil {
		err = by.May(staff.View, st.Shop)
	}
	if err != nil {
		return Status{}, err
	}
	return st, nil
}

// Campaigns lists the campaigns that the actor may see, the newest first.
func (s *Service) Campaigns(ctx context.Context, by staff.Actor, q Query) ([]Status, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	if len(by.Shops) > 0 {
		asked := q.Shops
		q.Shops = slices.DeleteFunc(slices.Clone(by.Shops), func(n int64) bool { return len(asked) > 0 && !slices.Contains(asked, n) })
		if len(q.Shops) == 0 {
			return nil, nil
		}
	}
	if q.FirstDay != nil || q.AfterDay != nil {
		zones, err := s.Store.Zones(ctx, q.Shops)
		if err != nil {
			return nil, err
		}
		q.Spans = q.spans(zones)
	}
	return s.Store.Campaigns(ctx, q)
}

// Balance recomputes the campaign's account from the rows.
func (s *Service) Balance(ctx context.Context, by staff.Actor, id int64) (Balance, error) {
	if _, err := s.Campaign(ctx, by, id); err != nil {
		return Balance{}, err
	}
	return s.Store.Balance(ctx, id)
}

// Edit replaces the spec of version; [Campaign.Edit] says which fields may change in which state.
// It returns [fault.ErrStale] if version is no longer current.
func (s *Service) Edit(ctx context.Context, by staff.Actor, id, version int64, spec Spec) (Campaign, error) {
	old, err := s.load(ctx, by, id)
	if err != nil {
		return old, err
	}
	if old.Version != version {
		return old, fault.ErrStale
	}
	if spec, err = s.check(ctx, by, spec); err != nil {
		return old, err
	}
	edited, err := old.Edit(spec)
	if err != nil {
		return old, err
	}
	if old.sameBut(edited.Spec) == nil && edited.RatePerSecond == old.RatePerSecond {
		return old, nil // a request for approval stays open
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.Save(ctx, Change{Campaign: edited, Event: event.CampaignChanged,
		Entry: entry(by, "campaign.edit", old, "", Audited(old.Spec), Audited(edited.Spec))})
}

// attempts bounds how often a step is decided anew because the campaign changed its state at the
// same moment, for example because it started.
const attempts = 5

// Do takes a step of campaign id for the given reason. It returns [ErrTransition] if the state
// does not allow the step, and [ErrPublished]. A version other than 0 must be current, otherwise
// [fault.ErrStale] is returned.
func (s *Service) Do(ctx context.Context, by staff.Actor, id, version int64, step Transition, reason string) (Campaign, error) {
	return s.do(ctx, by, id, version, step, reason, nil)
}

func (s *Service) do(ctx context.Context, by staff.Actor, id, version int64, step Transition, reason string, shown *int64) (Campaign, error) {
	for try := 1; ; try++ {
		c, err := s.once(ctx, by, id, version, step, reason, shown)
		if version != 0 || try == attempts || !errors.Is(err, fault.ErrStale) {
			return c, err
		}
	}
}

func (s *Service) once(ctx context.Context, by staff.Actor, id, version int64, step Transition, reason string, shown *int64) (Campaign, error) {
	old, err := s.load(ctx, by, id)
	if err != nil {
		return old, err
	}
	if version != 0 && old.Version != version {
		return old, fault.ErrStale
	}
	if step == Publishing {
		return s.Approvals.Publish(ctx, by, old, reason, shown)
	}
	if step == Resuming && old.HeldAt != nil {
		if old, err = s.Approvals.Unhold(ctx, old); err != nil {
			return old, err
		}
	}
	next, err := old.step(step, s.Now())
	if err != nil {
		return old, err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.Save(ctx, Change{Campaign: next, Step: step, Event: event.CampaignChanged,
		Entry: entry(by, "campaign."+string(step), old, reason, old.State, next.State)})
}

func (s *Service) load(ctx context.Context, by staff.Actor, id int64) (Campaign, error) {
	c, err := s.Store.Campaign(ctx, id)
	if err == nil {
		err = May(by, staff.ManageCampaigns, c.Shop)
	}
	return c, err
}
