package campaign

import (
	"context"
	"errors"
	"strings"

	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// SizeStore returns how many users a campaign may reach.
type SizeStore interface {
	Limits(ctx context.Context, shop int64) (Limits, error)
	// StrictestApproval returns the smallest number of users above which any shop requires
	// approval; 0 = no shop does.
	StrictestApproval(ctx context.Context) (int64, error)
	// ApprovedReach returns the largest approved reach of the campaign; 0 = none.
	ApprovedReach(ctx context.Context, id int64) (int64, error)
}

// A ReachLimit is how many users a campaign may reach.
type ReachLimit struct {
	Alone    int64 // without approval; 0 = any number
	Approved int64 // the approved reach; 0 = none
}

// tolerance is the divisor of an approved reach; the result is by how many users an audience may
// grow without a new approval. The reach may have been estimated, and users join between the
// approval and the start.
const tolerance = 5

// Most returns how many users may be reached; 0 = any number.
func (a ReachLimit) Most() int64 {
	if a.Alone == 0 {
		return 0
	}
	return max(a.Alone, a.Approved+a.Approved/tolerance)
}

// A TypedReach is the number of users that a form showed to a member who is about to send to
// everybody, and the number that the member typed; nil = the form had no such number.
type TypedReach struct{ Shown, Typed *int64 }

// Check returns a [fault.Fields] about the audience unless the shown number was typed and the
// audience, which now has so many users, has not outgrown it.
func (t TypedReach) Check(users int64) error {
	if t.Shown != nil && t.Typed != nil && *t.Typed == *t.Shown && users <= *t.Shown+*t.Shown/tolerance {
		return nil
	}
	e := &fault.Fields{}
	e.Add("audience", "rule.reach_typed", "type the number of users, %d, to send to everybody", users)
	return e.Err()
}

// Exceeded reports whether so many users are more than may be reached.
func (a ReachLimit) Exceeded(users int64) bool { return a.Alone > 0 && users > a.Most() }

func ApprovalAbove(ctx context.Context, store SizeStore, shop int64) (int64, error) {
	l, err := store.Limits(ctx, shop)
	if err != nil || shop != 0 || l.ApprovalAbove > 0 {
		return l.ApprovalAbove, err
	}
	return store.StrictestApproval(ctx)
}

func ReachLimitOf(ctx context.Context, store SizeStore, c Campaign) (a ReachLimit, err error) {
	if a.Alone, err = ApprovalAbove(ctx, store, c.Shop); err != nil || a.Alone == 0 {
		return a, err
	}
	a.Approved, err = store.ApprovedReach(ctx, c.ID)
	return a, err
}

// errHeld ends a cut whose campaign now waits for approval.
var errHeld = errors.New("the campaign is held")

// countAhead is the greatest allowed reach for which users are counted before the first is cut. A
// larger audience is read only once: a limit that it exceeds is noticed during the cut.
const countAhead = 10 * pageSize

// checkSize counts the users to be cut and holds the campaign if they are too many; nothing of
// the audience is stored then. It counts only if the allowed reach is at most [countAhead],
// because reading the users twice is quick then.
func (l *Launcher) checkSize(ctx context.Context, cut Cut) (ReachLimit, error) {
	a, err := ReachLimitOf(ctx, l.Store, cut.Campaign)
	if err != nil || a.Alone == 0 || a.Most() > countAhead {
		return a, err
	}
	n, err := l.count(ctx, cut)
	if err == nil && a.Exceeded(cut.People+n) {
		err = l.hold(ctx, cut, a, cut.People+n)
	}
	return a, err
}

// checkPage holds the campaign if the users of the next page, together with the users cut so far,
// are too many.
func (l *Launcher) checkPage(ctx context.Context, cut Cut, a ReachLimit, users []user.ID) error {
	n := cut.People + int64(len(users))
	if len(users) == 0 || !a.Exceeded(n) {
		return nil
	}
	rest := cut
	rest.After = users[len(users)-1]
	more, err := l.count(ctx, rest)
	if err != nil {
		return err
	}
	return l.hold(ctx, cut, a, n+more)
}

// count returns how many users of the audience are not cut yet.
func (l *Launcher) count(ctx context.Context, cut Cut) (n int64, err error) {
	audience := l.Store.Audience(cut)
	for {
		users, _, err := audience.Next(ctx, pageSize)
		if err != nil {
			return n, err
		}
		if n += int64(len(users)); len(users) < pageSize {
			return n, nil
		}
	}
}

// hold pauses the campaign and requests approval in the name of the member who published it.
func (l *Launcher) hold(ctx context.Context, cut Cut, a ReachLimit, users int64) error {
	label, name, _ := strings.Cut(cut.PublishedBy, " ")
	most := a.Most()
	r := Request{Snapshot: Snapshot{Spec: cut.Spec, Rule: cut.Rule}, AskedBy: label, AskedName: name, Allowed: &most,
		Reach: Reach{Users: users, Exact: true, At: l.Now()}}
	held := cut.Campaign
	held.State = Paused
	err := l.Store.Hold(ctx, cut, Change{Campaign: held, Step: Pausing, Event: event.CampaignChanged, Ask: &r,
		Entry: entry(staff.System(), "campaign.hold", held, "", map[string]any{"state": cut.State, "allowed": most}, map[string]any{"state": Paused, "reach": users})})
	if err == nil {
		err = errHeld
	}
	return err
}

// Released returns c without its hold and its open request.
func (c Campaign) Released() Campaign {
	c.HeldAt, c.ApprovalAskedAt, c.ApprovedBy = nil, nil, ""
	return c
}
