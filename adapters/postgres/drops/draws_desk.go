package drops

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/draw"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// locked locks the draw, after all entries that are being stored. It returns [draw.ErrNoDraw].
func (s Draws) locked(ctx context.Context, tx pgx.Tx, templateID int64) (draw.Draw, error) {
	return pg.One(ctx, tx, scanDraw, draw.ErrNoDraw, `select `+drawColumns+drawFrom+`where d.template_id = $1 for update of d`, templateID)
}

// Figures is part of [draw.DeskStore].
func (s Draws) Figures(ctx context.Context, templateID int64, figures string, e staff.Entry) (complete bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		d, err := s.locked(ctx, tx, templateID)
		if err != nil {
			return err
		}
		card, err := d.Card()
		if err != nil {
			return err
		}
		by := pg.AuditActor(e.Actor)
		switch {
		case card.Source.Kind != draw.Public:
			return draw.ErrNotPublic
		case d.State != draw.Sealed || d.Evidence != "":
			return draw.ErrNotSealed
		case d.Figures == "" || d.FiguresBy == by && d.Figures != figures: // the first, or corrected by the same member
			_, err = tx.Exec(ctx, `update draws set figures = $2, figures_by = $3 where template_id = $1`, templateID, figures, by)
		case d.FiguresBy == by:
			return draw.ErrFiguresSame
		case d.Figures != figures:
			return draw.ErrFiguresOff
		default:
			complete = true
			_, err = tx.Exec(ctx, `update draws set evidence = $2 where template_id = $1`, templateID, figures)
		}
		if err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
	return complete, err
}

// strikeSQL strikes the entry of user $2 in draw $1, unless it was struck before, or its coupon is in use.
const strikeSQL = `
update draw_entries e set state = 'struck', reason = $3, struck_at = clock_timestamp(), listed = $4
where e.template_id = $1 and e.user_id = $2 and e.state not in ('struck', 'lapsed')
  and not exists (select from coupons c where c.id = e.coupon_id and c.state in ('locked', 'used'))`

// Strike is part of [draw.DeskStore].
func (s Draws) Strike(ctx context.Context, templateID int64, who user.ID, reason string, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		d, err := s.locked(ctx, tx, templateID)
		if err != nil {
			return err
		}
		var before draw.EntryState
		err = tx.QueryRow(ctx, `select state from draw_entries where template_id = $1 and user_id = $2 for update`, templateID, who).Scan(&before)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return draw.ErrNotEntered
		case err != nil:
			return err
		case before == draw.Struck || before == draw.Lapsed:
			return draw.ErrStruck
		}
		if err := pg.Change(ctx, tx, draw.ErrUsed, strikeSQL, templateID, who, reason, d.Seal != ""); err != nil {
			return err
		}
		// A draw that was made is made again: the next ticket in the order moves up.
		_, err = tx.Exec(ctx, `update draws set struck = struck + 1, won = won - $2::int, state = case when state in ('drawn', 'offered', 'done') then 'sealed' else state end
			where template_id = $1`, templateID, map[bool]int{true: 1}[before == draw.Won])
		if err != nil {
			return err
		}
		if err := pg.StrikeWaiter(ctx, tx, templateID, who); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// Forfeited is part of [draw.OperatorStore].
func (s Draws) Forfeited(ctx context.Context, templateID int64) ([]draw.Forfeit, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[draw.Forfeit], `select user_id, coupon_id, reason from draw_entries
		where template_id = $1 and state = 'struck' and coupon_id is not null order by struck_at`, templateID)
}

// Returned is part of [draw.OperatorStore].
func (s Draws) Returned(ctx context.Context, templateID int64, f draw.Forfeit) error {
	_, err := s.Pool.Exec(ctx, `update draw_entries set coupon_id = null where template_id = $1 and user_id = $2 and coupon_id = $3`, templateID, f.UserID, f.CouponID)
	return pg.Translate(err)
}

var _ draw.DeskStore = Draws{}
