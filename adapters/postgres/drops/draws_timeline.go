package drops

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/draw"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// Timeline returns the steps of the user's entry in the template's draw; see [reminder.CouponHistory].
func (s Draws) Timeline(ctx context.Context, by user.ID, templateID int64) ([]reminder.Step, error) {
	r, err := s.Entry(ctx, templateID, by)
	if errors.Is(err, draw.ErrNotEntered) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := s.Draw(ctx, templateID)
	if errors.Is(err, draw.ErrNoDraw) {
		return []reminder.Step{{At: r.EnteredAt, Kind: reminder.StepEntered}}, nil
	}
	if err != nil {
		return nil, err
	}
	entered, err := enteredStep(d, r)
	if err != nil {
		return nil, err
	}
	steps := []reminder.Step{entered}
	outAt, err := s.struckAt(ctx, r, templateID)
	if err != nil {
		return nil, err
	}
	if r.State == draw.Struck && outAt != nil {
		steps = append(steps, reminder.Step{At: *outAt, Kind: reminder.StepStruck, Detail: r.Reason})
	}
	if d.Result == "" || d.DrawnAt == nil || r.State == draw.Struck {
		return steps, nil
	}
	result, err := d.Outcome()
	if err != nil {
		return nil, err
	}
	reason := "lost"
	if r.State != draw.Entered {
		reason = "won"
	}
	steps = append(steps, reminder.Step{At: *d.DrawnAt, Kind: reminder.StepDrawn, Reason: reason,
		Detail: draw.Score(result.Seed, r.Ticket, r.Weight).String() + " / " + result.Cutoff.String()})
	steps = append(steps, offerSteps(r, d, outAt)...)
	if r.State == draw.Won && r.CouponID == 0 && r.Reason != "" {
		steps = append(steps, reminder.Step{At: steps[len(steps)-1].At, Kind: reminder.StepDrawRefused, Reason: r.Reason})
	}
	return steps, nil
}

// enteredStep is the entry, with the door through which the user came.
func enteredStep(d draw.Draw, r draw.Record) (reminder.Step, error) {
	s := reminder.Step{At: r.EnteredAt, Kind: reminder.StepEntered}
	card, err := d.Card()
	if err == nil && r.Door > 0 && r.Door <= len(card.Doors) {
		s.Reason, s.Detail = card.Doors[r.Door-1].Name, strconv.Itoa(r.Weight)
	}
	return s, err
}

// struckAt returns when an entry was struck or lapsed; nil = it was not.
func (s Draws) struckAt(ctx context.Context, r draw.Record, templateID int64) (at *time.Time, err error) {
	if r.State != draw.Struck && r.State != draw.Lapsed {
		return nil, nil
	}
	err = s.Pool.QueryRow(ctx, `select struck_at from draw_entries where template_id = $1 and user_id = $2`, templateID, r.UserID).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return at, pg.Translate(err)
}

// offerSteps are the steps of a winner who had to accept the coupon. The offer was made when it ends, less the hours on
// the card, or a moment later.
func offerSteps(r draw.Record, d draw.Draw, lapsedAt *time.Time) (steps []reminder.Step) {
	if r.OfferedUntil == nil {
		return nil
	}
	card, err := d.Card()
	if err != nil {
		return nil
	}
	steps = append(steps, reminder.Step{At: r.OfferedUntil.Add(-time.Duration(card.AcceptHours) * time.Hour), Kind: reminder.StepDrawOffered, Planned: r.OfferedUntil})
	if r.AcceptedAt != nil {
		steps = append(steps, reminder.Step{At: *r.AcceptedAt, Kind: reminder.StepDrawAccepted})
	}
	if r.State == draw.Lapsed && lapsedAt != nil {
		steps = append(steps, reminder.Step{At: *lapsedAt, Kind: reminder.StepDrawLapsed})
	}
	return steps
}
