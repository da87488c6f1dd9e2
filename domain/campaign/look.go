package campaign

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// A Preview is a campaign's message as one reader gets it.
type Preview struct {
	delivery.Content
	Variant int
	// Locale is the language of the text that the reader gets; "" = the default.
	Locale string
	// Unknown is true if no data of the requested user are stored.
	Unknown bool
}

// Preview returns the message as the user would receive it; it is rendered like the message
// itself. User 0 is a user without stored data whose locale is locale.
func (s *Service) Preview(ctx context.Context, by staff.Actor, id int64, to user.ID, locale string) (p Preview, err error) {
	st, err := s.Campaign(ctx, by, id)
	if err != nil {
		return p, err
	}
	reader := user.User{Locale: locale}
	if to != 0 {
		if reader, err = s.Users.Preferences(ctx, to); err != nil {
			return p, err
		}
		p.Unknown, p.Variant = reader.UpdatedAt.IsZero(), st.Content.Pick(id, to)
	}
	subject, err := s.Subject(ctx, st.Campaign)
	if err != nil {
		return p, err
	}
	book, err := s.Book(ctx, subject)
	if err != nil {
		return p, err
	}
	p.Content, p.Locale = delivery.RenderCopy(book, subject, st.Channel, p.Variant, reader), st.Content.Language(p.Variant, reader.Locale)
	return p, nil
}

// Book returns the brand of the shop that sends the message.
func (s *Service) Book(ctx context.Context, about delivery.Subject) (*message.Book, error) {
	if s.Texts == nil {
		return nil, nil
	}
	return s.Texts.Book(ctx, about.Place(), message.Newest)
}

// Check returns all rules for which [Service.Create] would refuse spec, and the error that kept
// it from checking more. It stores nothing.
func (s *Service) Check(ctx context.Context, by staff.Actor, spec Spec) ([]fault.Field, error) {
	spec = spec.tidy()
	var list []fault.Field
	var broken *fault.Fields
	if errors.As(spec.Check(), &broken) {
		list = append(list, broken.List...)
	}
	_, err := s.lookUp(ctx, by, spec)
	if errors.As(err, &broken) {
		return append(list, broken.List...), nil
	}
	return list, err
}

// Test sends the campaign's message to one user now, whatever the campaign's state, through the
// ordinary workers. variant is the index of the variant to send; nil = the variant that the user
// gets. [Service.TestOutcome] returns the outcome.
func (s *Service) Test(ctx context.Context, by staff.Actor, id int64, to user.ID, variant *int) (Campaign, error) {
	c, err := s.load(ctx, by, id)
	if err != nil {
		return c, err
	}
	if variant != nil && (*variant < 0 || *variant >= len(c.Content.Variants)) {
		e := &fault.Fields{}
		e.Add("variant", "rule.kind", "must be one of the choices")
		return c, e.Err()
	}
	if !s.Channels.Has(c.Channel) {
		return c, delivery.ErrChannelUnavailable.Because("channel %s has no configured sender", c.Channel)
	}
	said := map[string]any{"user_id": to.String()}
	if variant != nil {
		said["variant"] = *variant
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return c, s.Store.SendTest(ctx, c, to, variant, entry(by, "campaign.test", c, "", nil, said))
}

const (
	// testPatience is how long a test message's outcome is waited for.
	testPatience = 3 * time.Second
	testLook     = 100 * time.Millisecond
)

// TestOutcome waits until the last test message to the user has an outcome, at most for three
// seconds; after that the outcome is in flight.
func (s *Service) TestOutcome(ctx context.Context, c Campaign, to user.ID) (Outcome, error) {
	look := time.NewTicker(testLook)
	defer look.Stop()
	for waited := time.Duration(0); ; waited += testLook {
		o, _, err := s.Store.Outcome(ctx, delivery.KindTest, c, to)
		if err != nil || o.Outcome != delivery.InFlight || waited >= testPatience {
			return o, err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return o, nil
		}
	}
}

// Recipient returns the outcome of the campaign's message to one user. It returns false if the
// user is not in the audience, or if the audience has not been cut yet.
func (s *Service) Recipient(ctx context.Context, by staff.Actor, id int64, to user.ID) (Outcome, bool, error) {
	st, err := s.Campaign(ctx, by, id)
	if err != nil {
		return Outcome{}, false, err
	}
	return s.Store.Outcome(ctx, delivery.KindCampaign, st.Campaign, to)
}

// Estimate returns about how many users the audience has, and whether the number is exact. Staff
// who are limited to shops get no estimate for an audience of another shop's template.
func (s *Service) Estimate(ctx context.Context, by staff.Actor, a Audience) (int64, bool, error) {
	if err := s.checkEstimate(ctx, by, &a); err != nil {
		return 0, false, err
	}
	return s.Store.Estimate(ctx, a)
}

// EstimateVerified returns an upper estimate of the users of the audience with verified phone
// numbers. It has the same errors as [Service.Estimate].
func (s *Service) EstimateVerified(ctx context.Context, by staff.Actor, a Audience) (int64, error) {
	if err := s.checkEstimate(ctx, by, &a); err != nil {
		return 0, err
	}
	return s.Store.EstimateContact(ctx, a, segment.PhoneVerified)
}

// Reaches returns about how many users of the audience each of the channels reaches. It has the same
// errors as [Service.Estimate]. verified says that only verified phone numbers are sent to.
func (s *Service) Reaches(ctx context.Context, by staff.Actor, a Audience, verified bool) (map[delivery.Channel]int64, error) {
	if err := s.checkEstimate(ctx, by, &a); err != nil {
		return nil, err
	}
	all, _, err := s.Store.Estimate(ctx, a)
	if err != nil {
		return nil, err
	}
	list := map[delivery.Channel]int64{}
	for _, c := range delivery.AllChannels() {
		kind := c.String()
		if c == delivery.SMS && verified {
			kind = segment.PhoneVerified
		}
		if list[c] = all; !slices.Contains(segment.ContactKinds(), kind) || !s.Channels.Has(c) {
			continue
		}
		n, err := s.Store.EstimateContact(ctx, a, kind)
		if err != nil {
			return nil, err
		}
		list[c] = min(all, n)
	}
	return list, nil
}

// Locales returns about how many users of the audience have each locale; "" = none. It has the same
// errors as [Service.Estimate].
func (s *Service) Locales(ctx context.Context, by staff.Actor, a Audience) (map[string]int64, error) {
	if err := s.checkEstimate(ctx, by, &a); err != nil {
		return nil, err
	}
	return s.Store.EstimateLocales(ctx, a)
}

// checkEstimate normalizes an audience, and returns an error if by may not get an estimate of it.
func (s *Service) checkEstimate(ctx context.Context, by staff.Actor, a *Audience) error {
	if err := by.May(staff.ManageCampaigns, 0); err != nil {
		return err
	}
	a.Users = normal(a.Users)
	e := &fault.Fields{}
	if a.check(e); len(e.List) > 0 {
		return e
	}
	if id := (Spec{Audience: *a}).audienceTemplate(); id != 0 && len(by.Shops) > 0 {
		t, err := s.Templates.Template(ctx, id)
		if err != nil {
			return err
		}
		if err := by.May(staff.ManageCampaigns, t.ShopNumber); err != nil {
			return err
		}
	}
	return s.checkSegment(ctx, by, *a)
}

// checkSegment refuses a segment that names templates of shops that by may not use.
func (s *Service) checkSegment(ctx context.Context, by staff.Actor, a Audience) error {
	if a.Kind != Segment || len(by.Shops) == 0 {
		return nil
	}
	rule, err := s.Store.SegmentRule(ctx, a)
	if err != nil || rule == nil {
		return err
	}
	shops, err := s.Store.TemplateShops(ctx, rule.Rule.Templates())
	if err != nil {
		return err
	}
	return rule.Rule.CheckShops(shops, func(shop int64) bool { return by.Can(staff.ManageCampaigns, shop) })
}

// Limits returns the limits of the shop's campaigns; shop 0 = the limits of campaigns without a
// shop.
func (s *Service) Limits(ctx context.Context, by staff.Actor, shop int64) (Limits, error) {
	if err := by.May(staff.View, shop); err != nil {
		return Limits{}, err
	}
	return s.Store.Limits(ctx, shop)
}

// ApprovalAbove returns how many users a campaign of the shop may reach without approval; 0 = any
// number. For campaigns without a shop it is the number set for them, or else the smallest number
// of any shop.
func (s *Service) ApprovalAbove(ctx context.Context, by staff.Actor, shop int64) (int64, error) {
	if err := by.May(staff.View, shop); err != nil {
		return 0, err
	}
	return ApprovalAbove(ctx, s.Store, shop)
}

// SetLimits changes the limits of the shop's campaigns. Only admins may: an editor must not set
// the number of users above which the editor's own campaigns need approval. If was is given and
// is not the present limits, it returns [fault.ErrStale].
func (s *Service) SetLimits(ctx context.Context, by staff.Actor, shop int64, was *Limits, l Limits) error {
	if err := May(by, staff.ManageStaff, shop); err != nil {
		return err
	}
	e := &fault.Fields{}
	if l.PerDay < 0 || l.PerDay > 1000 {
		e.Add("per_day", "rule.cap", "must be between 0 (no limit) and 1000")
	}
	if l.PerWeek < 0 || l.PerWeek > 1000 {
		e.Add("per_week", "rule.cap", "must be between 0 (no limit) and 1000")
	}
	if l.ApprovalAbove < 0 {
		e.Add("approval_above", "rule.approval", "must be 0 (never) or a number of recipients")
	}
	if err := e.Err(); err != nil {
		return err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.SaveLimits(ctx, shop, was, l, staff.Entry{Actor: by, Action: "campaign.limits", ObjectKind: "shop",
		ObjectID: strconv.FormatInt(shop, 10), ShopNumber: shop, After: l})
}
