package drops

import (
	"context"
	"errors"
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
	steps := []reminder.Step{{At: r.EnteredAt, Kind: reminder.StepEntered}}
	if r.State == draw.Struck {
		var at *time.Time
		err := s.Pool.QueryRow(ctx, `select struck_at from draw_entries where template_id = $1 and user_id = $2`, templateID, by).Scan(&at)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return nil, pg.Translate(err)
		}
		if at != nil {
			steps = append(steps, reminder.Step{At: *at, Kind: reminder.StepStruck, Detail: r.Reason})
		}
	}
	d, err := s.Draw(ctx, templateID)
	if errors.Is(err, draw.ErrNoDraw) || err == nil && (d.Result == "" || d.DrawnAt == nil || r.State == draw.Struck) {
		return steps, nil
	}
	if err != nil {
		return nil, err
	}
	result, err := d.Outcome()
	if err != nil {
		return nil, err
	}
	reason := "lost"
	if r.State == draw.Won {
		reason = "won"
	}
	return append(steps, reminder.Step{At: *d.DrawnAt, Kind: reminder.StepDrawn, Reason: reason,
		Detail: draw.Score(result.Seed, r.Ticket, r.Weight).String() + " / " + result.Cutoff.String()}), nil
}
