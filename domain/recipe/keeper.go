package recipe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// A Claim is a recipe that one worker looks after until the claim ends.
type Claim struct {
	Recipe
	Now, Until time.Time
}

// A Candidate is a drop for which a round is to begin.
type Candidate struct {
	Drop     int64
	ClosesAt time.Time
}

// KeeperStore is where the keeper works. Every call is one transaction and may be repeated.
type KeeperStore interface {
	// Claim claims a recipe that is on and due for as long; found is false if none is due.
	Claim(ctx context.Context, lease time.Duration) (c Claim, found bool, err error)
	// Settle says when the recipe is due again, unless staff changed it since or another worker claimed it.
	Settle(ctx context.Context, c Claim, next time.Time) error
	// Candidates returns drops of the shop for which a round of the form is due and was not begun.
	Candidates(ctx context.Context, c Claim, limit int) ([]Candidate, error)
	// Begin stores a round, unless the recipe has one with the key.
	Begin(ctx context.Context, r Round) error
	// Unfinished returns the rounds that are not done, the oldest first.
	Unfinished(ctx context.Context, limit int) ([]Round, error)
	// Find finds the users of the round and stores them as a list, once; it returns the round.
	Find(ctx context.Context, r Round) (Round, error)
	// Note stores how far the round is.
	Note(ctx context.Context, r Round) error
	// Ahead returns the published drops of the shop that open from one instant to before another.
	Ahead(ctx context.Context, shop int64, from, to time.Time) ([]template.Template, error)
	// Shop returns the shop of a recipe with its settings.
	Recipe(ctx context.Context, id int64) (Recipe, error)
}

// A Keeper begins the rounds of recipes, finds their users and publishes their campaigns. Any number of processes may
// run one. There is one timer per recipe; it may stop and begin anew at any point: a round is stored before anything
// is done about it, and every step finds what is done.
type Keeper struct {
	Store     KeeperStore
	Campaigns *campaign.Service
	Templates campaign.Templates
	// Done, if set, is called with what became of a round.
	Done func(r Round)
}

const (
	claimFor     = 30 * time.Second
	claimsAtMost = 1000
	dropsAtOnce  = 100
	roundsAtOnce = 100
)

// Sweep looks at every recipe that is due, and brings every round on. After a failure it goes on with the next.
func (k *Keeper) Sweep(ctx context.Context) error {
	var errs []error
	for range claimsAtMost {
		c, found, err := k.Store.Claim(ctx, claimFor)
		if err != nil || !found {
			errs = append(errs, err)
			break
		}
		if err := k.begin(ctx, c); err != nil {
			errs = append(errs, fmt.Errorf("recipe %d: %w", c.ID, err))
		}
	}
	list, err := k.Store.Unfinished(ctx, roundsAtOnce)
	errs = append(errs, err)
	for _, r := range list {
		if ctx.Err() != nil {
			break
		}
		if err := k.bring(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("round %d: %w", r.ID, err))
		}
	}
	return errors.Join(errs...)
}

// begin stores the rounds of the recipe that are due.
func (k *Keeper) begin(ctx context.Context, c Claim) error {
	switch {
	case c.Form.AboutDrop():
		list, err := k.Store.Candidates(ctx, c, dropsAtOnce)
		if err != nil {
			return err
		}
		for _, d := range list {
			until := c.Now.Add(lasts)
			if d.ClosesAt.Before(until) && c.Form == Missed {
				until = d.ClosesAt
			}
			if err := k.Store.Begin(ctx, Round{RecipeID: c.ID, Form: c.Form, Key: fmt.Sprintf("drop:%d", d.Drop), Drop: d.Drop, Until: until, Settings: c.Settings}); err != nil {
				return err
			}
		}
	case c.due():
		day := series.DayOf(c.Now.In(c.Zone()))
		if err := k.Store.Begin(ctx, Round{RecipeID: c.ID, Form: c.Form, Key: "day:" + string(day), Until: c.Now.Add(lasts), Settings: c.Settings}); err != nil {
			return err
		}
	}
	return k.Store.Settle(ctx, c, c.next(c.Now))
}

// due reports whether the time of day of the recipe was within the last hour: a recipe that was saved in the afternoon
// waits for the next day.
func (c Claim) due() bool {
	now := c.Now.In(c.Zone())
	at := series.Opening(series.DayOf(now), c.Clock, c.Zone())
	return !c.Now.Before(at) && c.Now.Sub(at) < time.Hour && (c.Form == WinBack || now.Weekday() == c.Weekday)
}

// bring takes the next steps of the round. A refusal is stored with it; any other error is returned, and the round is
// brought on again.
func (k *Keeper) bring(ctx context.Context, r Round) (err error) {
	if r.State == Begun {
		if r, err = k.Store.Find(ctx, r); err != nil {
			return err
		}
		if r.Users == 0 {
			return k.finish(ctx, r, nil)
		}
	}
	if r.State == Found {
		c, err := k.create(ctx, r)
		if why, err := fault.Refusal(err); err != nil || why != nil {
			return errors.Join(err, k.finishIf(ctx, r, why))
		}
		if c.ID == 0 { // no drop ahead to name
			return k.finish(ctx, r, nil)
		}
		r.CampaignID, r.State = c.ID, Made
		if err := k.Store.Note(ctx, r); err != nil {
			return err
		}
	}
	_, err = k.Campaigns.Do(ctx, staff.System(), r.CampaignID, 0, campaign.Publishing, "")
	why, err := fault.Refusal(err)
	if err != nil {
		return err
	}
	if why != nil { // perhaps since another worker was faster, or this one before it died
		c, err := k.Campaigns.Campaign(ctx, staff.System(), r.CampaignID)
		if err != nil {
			return err
		}
		if c.State != campaign.Draft || c.ApprovalAskedAt != nil {
			why = nil
		}
	}
	return k.finish(ctx, r, why)
}

func (k *Keeper) finishIf(ctx context.Context, r Round, why *fault.Fault) error {
	if why == nil {
		return nil
	}
	return k.finish(ctx, r, why)
}

func (k *Keeper) finish(ctx context.Context, r Round, why *fault.Fault) error {
	r.State, r.Why = Done, why
	if err := k.Store.Note(ctx, r); err != nil {
		return err
	}
	if k.Done != nil {
		k.Done(r)
	}
	return nil
}

// create stores the campaign of the round as a draft; the zero campaign if there is nothing to tell.
func (k *Keeper) create(ctx context.Context, r Round) (campaign.Campaign, error) {
	recipe, err := k.Store.Recipe(ctx, r.RecipeID)
	if err != nil {
		return campaign.Campaign{}, err
	}
	about, link, values := "", "", map[string]string{}
	var openings []message.Opening
	if r.Drop != 0 {
		t, err := k.Templates.Template(ctx, r.Drop)
		if err != nil {
			return campaign.Campaign{}, err
		}
		about, values["drop"] = t.Name, t.Name
		if address := t.ClaimAddress(); message.SafeAddress(address) {
			link = address
		}
	}
	if r.Settings.listsDrops(r.Form) {
		list, err := k.Store.Ahead(ctx, recipe.Shop, r.At, r.At.AddDate(0, 0, calendarDays))
		if err != nil || len(list) == 0 {
			return campaign.Campaign{}, err
		}
		for _, t := range list {
			openings = append(openings, message.Opening{At: t.OpensAt.In(recipe.Zone()), Name: t.Name})
		}
	}
	spec := campaign.Spec{Shop: recipe.Shop, Name: r.campaignName(about, recipe.Zone()), Content: r.Settings.content(link, values, openings), Channel: r.Settings.Channel,
		Audience: campaign.Audience{Kind: campaign.List, ID: r.SegmentID}, StartsAt: r.At.Truncate(time.Second), EndsAt: r.Until.Truncate(time.Second)}
	if r.Form == WinBack {
		spec.GrantTemplate = r.Settings.GrantTemplate
	}
	return k.Campaigns.Create(ctx, staff.System(), spec, fmt.Sprintf("recipe:%d", r.ID))
}
