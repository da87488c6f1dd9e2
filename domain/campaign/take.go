package campaign

import (
	"context"
	"errors"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// A Wish is a step that a member decided to take, looking at a campaign.
type Wish struct {
	Step Transition
	// Version is the version that the form showed; 0 = the form showed none. AloneUpTo is the
	// number of users that one member may send to without approval as the form showed it (0 = any
	// number); nil = the form showed none. Publishing requires both, so that changes made since
	// are not published. Other steps use neither.
	Version   int64
	AloneUpTo *int64
	// Reach is required for publishing a campaign to everybody.
	Reach TypedReach
	// Reason says why, for the audit log.
	Reason string
}

// A StepOutcome is the outcome of a [Wish].
type StepOutcome int

const (
	// Taken says that the step was taken.
	Taken StepOutcome = iota + 1
	// AlreadyTaken says that the campaign was already in the state to which the step leads. The
	// form was sent twice, or another member was faster.
	AlreadyTaken
	// Asked: approval was requested instead.
	Asked
	// NeedsApproval says that nothing was done because approval has been requested. Approving
	// requires a form that shows the request.
	NeedsApproval
	// Changed says that nothing was done because the campaign has changed since the form was
	// shown.
	Changed
)

// Take takes a step of campaign id for a member whose form showed the effect of the step. It
// returns the campaign as it is now. Errors of the kinds [fault.Conflict] and [fault.Invalid]
// come with the campaign too, so that the form can be shown again.
func (s *Service) Take(ctx context.Context, by staff.Actor, id int64, w Wish) (Status, StepOutcome, error) {
	st, outcome, err := s.look(ctx, by, id, w.Step)
	if err != nil || outcome != 0 {
		return st, outcome, err
	}
	if w.Step == Publishing && (w.Version != st.Version || w.AloneUpTo == nil) {
		return st, Changed, nil
	}
	if w.Step == Publishing && st.Audience.Kind == Everybody {
		users, _, err := s.Store.Estimate(ctx, st.Audience)
		if err == nil {
			err = w.Reach.Check(users)
		}
		if err != nil {
			return st, 0, err
		}
	}
	next, err := s.wished(ctx, by, id, w)
	switch {
	case err == nil && next.ApprovalAskedAt != nil:
		return Status{next, st.Progress}, Asked, nil
	case err == nil:
		return Status{next, st.Progress}, Taken, nil
	case fault.KindOf(err) != fault.Conflict:
		return st, 0, err
	}
	now, outcome, again := s.look(ctx, by, id, w.Step)
	switch {
	case again != nil || outcome != 0:
		return now, outcome, again
	case errors.Is(err, fault.ErrStale):
		return now, Changed, nil
	}
	return now, 0, err
}

func (s *Service) wished(ctx context.Context, by staff.Actor, id int64, w Wish) (Campaign, error) {
	if w.Step == Publishing {
		return s.Publish(ctx, by, id, w.Version, *w.AloneUpTo, w.Reason)
	}
	return s.Do(ctx, by, id, 0, w.Step, w.Reason)
}

// look returns the status of the campaign, and the outcome of the step if it is known without
// trying: [NeedsApproval], [AlreadyTaken], or 0 if it is not known.
func (s *Service) look(ctx context.Context, by staff.Actor, id int64, step Transition) (Status, StepOutcome, error) {
	st, err := s.Campaign(ctx, by, id)
	if err != nil {
		return st, 0, err
	}
	needed, err := s.NeedsApproval(ctx, by, st, step)
	switch {
	case err != nil:
		return st, 0, err
	case needed:
		return st, NeedsApproval, nil
	case st.was(step):
		return st, AlreadyTaken, nil
	}
	return st, 0, nil
}

// NeedsApproval reports whether the step is a publication for which approval has been requested
// and is still needed. It returns false once a higher limit or a smaller audience makes the
// approval unnecessary.
func (s *Service) NeedsApproval(ctx context.Context, by staff.Actor, st Status, step Transition) (bool, error) {
	if step != Publishing || st.State != Draft || st.ApprovalAskedAt == nil {
		return false, nil
	}
	return s.Approvals.Needed(ctx, by, st.ID)
}

// was reports whether the campaign's state shows that the step was taken. It is false for
// resuming: a running campaign may never have been paused.
func (c Campaign) was(step Transition) bool {
	switch step {
	case Publishing:
		return c.State == Scheduled || c.State == Running
	case Pausing:
		return c.State == Paused
	case Cancelling:
		return c.State == Cancelled
	}
	return false
}

// Redo is [Service.Do] for a caller whose earlier attempt may have been stored without an answer.
// A step that fails counts as taken if the campaign is in the state to which the step leads, or
// has continued from there.
func (s *Service) Redo(ctx context.Context, by staff.Actor, id, version int64, step Transition, reason string) (Campaign, error) {
	c, err := s.Do(ctx, by, id, version, step, reason)
	if err == nil {
		return c, nil
	}
	if st, again := s.Campaign(ctx, by, id); again == nil && st.stored(step) {
		return st.Campaign, nil
	}
	return c, err
}

// stored reports whether a step that was tried has been stored.
func (c Campaign) stored(step Transition) bool {
	switch step {
	case Publishing:
		return c.PublishedAt != nil && c.State != Cancelled
	case Pausing:
		return c.State == Paused
	case Resuming:
		return c.State == Running
	}
	return c.State == Cancelled
}

// SegmentRule returns the present rule of the segment or list that the audience names; nil for
// other audiences and for a segment or list that does not exist any more.
func (s *Service) SegmentRule(ctx context.Context, a Audience) (*FrozenRule, error) {
	return s.Store.SegmentRule(ctx, a)
}

// Subject returns the subject of the campaign's messages. The campaign need not be stored.
func (s *Service) Subject(ctx context.Context, c Campaign) (delivery.Subject, error) {
	subject, err := s.Store.Subject(ctx, c)
	s.DropPage.put(&subject, c.Channel)
	return subject, err
}

// Granted returns the template whose coupons a campaign gives away, or [template.ErrNotFound].
// The caller must be allowed to see the campaign.
func (s *Service) Granted(ctx context.Context, id int64) (template.Template, error) {
	return s.Templates.Template(ctx, id)
}
