package drops

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/draw"
)

// Draws stores draws, their cards and lists.
type Draws struct{ *pg.DB }

// NewDraws returns the draws of db.
func NewDraws(db *pg.DB) Draws { return Draws{db} }

const drawColumns = `d.template_id, d.template_version, d.state, d.key, d.cards, d.opens_at, d.closes_at, coalesce(d.seal, ''), d.sealed_at, d.round,
	coalesce(d.figures, ''), coalesce(d.figures_by, ''), coalesce(d.evidence, ''), coalesce(d.result, ''), d.drawn_at, d.won, d.struck,
	d.lapsed, d.offers, d.offers_until, d.group_changes,
	coalesce(c.entered, 0), coalesce(c.departed, 0)`

// drawFrom is where [drawColumns] come from.
const drawFrom = ` from draws d left join lateral (select sum(entered)::bigint as entered, sum(departed)::bigint as departed
	from draw_counts where template_id = d.template_id) c on true `

func drawPlaces(d *draw.Draw) []any {
	return []any{&d.TemplateID, &d.TemplateVersion, &d.State, &d.Key, &d.Cards, &d.OpensAt, &d.ClosesAt, &d.Seal, &d.SealedAt, &d.Round,
		&d.Figures, &d.FiguresBy, &d.Evidence, &d.Result, &d.DrawnAt, &d.Won, &d.Struck,
		&d.Lapsed, &d.Offers, &d.OffersUntil, &d.GroupChanges, &d.Entered, &d.Left}
}

func scanDraw(row pgx.CollectableRow) (d draw.Draw, err error) { return d, row.Scan(drawPlaces(&d)...) }

// Draw is part of [draw.Store].
func (s Draws) Draw(ctx context.Context, templateID int64) (draw.Draw, error) {
	return pg.One(ctx, s.Pool, scanDraw, draw.ErrNoDraw, `select `+drawColumns+drawFrom+`where d.template_id = $1`, templateID)
}

// Chunk is part of [draw.Store].
func (s Draws) Chunk(ctx context.Context, templateID int64, n int) (chunk []byte, err error) {
	err = s.Pool.QueryRow(ctx, `select rows from draw_chunks where template_id = $1 and chunk = $2`, templateID, n).Scan(&chunk)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return chunk, pg.Translate(err)
}

// ChunkWith is part of [draw.Store]. It reads the beginning of each chunk.
func (s Draws) ChunkWith(ctx context.Context, templateID int64, t draw.Ticket) (chunk []byte, n int, err error) {
	err = s.Pool.QueryRow(ctx, `select rows, chunk from draw_chunks where template_id = $1 and chunk = (
		select max(chunk) from draw_chunks where template_id = $1 and substr(rows, 1, 16) <= $2)`, templateID, t[:]).Scan(&chunk, &n)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, 0, nil
	}
	return chunk, n, pg.Translate(err)
}

// ChunkRoots is part of [draw.Store].
func (s Draws) ChunkRoots(ctx context.Context, templateID int64) ([]draw.Hash, error) {
	list, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, `select root from draw_chunks where template_id = $1 order by chunk`, templateID), func(row pgx.CollectableRow) (h draw.Hash, err error) {
		var raw []byte
		if err = row.Scan(&raw); err == nil && len(raw) != len(h) {
			err = draw.ErrNotListed // sealed before roots were stored
		}
		copy(h[:], raw)
		return h, err
	})
	return list, pg.Translate(err)
}

// outdated are the drawn templates t whose draw d needs another card.
const outdated = `t.opening_mode <> 'first_come' and t.state in ('published', 'paused')
	and (d.template_id is null or d.state = 'open' and d.template_version <> t.version)`

// DrawsWait asks for draws with a next step.
const DrawsWait pg.Question = `
(select 1 from templates t left join draws d on d.template_id = t.id where ` + outdated + ` limit 1)
union all
(select 1 from draws d join templates t on t.id = d.template_id where ` + calledOff + ` limit 1)
union all
(select 1 from draws where state = 'open' and closes_at <= statement_timestamp() limit 1)
union all
(select 1 from draws d where ` + dueDraw + ` limit 1)`

// dueDraw are the draws d with a next step after the close. The instants of rounds are those of [draw.RoundTime].
const dueDraw = `(d.state in ('closed', 'drawn') or d.state = 'sealed' and (d.evidence is not null
	or d.round > 0 and to_timestamp(1692803367 + (d.round - 1) * 3) <= clock_timestamp()
	or d.source = 'commit')
	or d.state = 'offered' and (d.offers_until <= clock_timestamp() or exists (select from draw_entries e where e.template_id = d.template_id
		and e.state = 'won' and e.accepted_at is not null and e.coupon_id is null and e.reason is null)))`

// Outdated is part of [draw.OperatorStore].
func (s Draws) Outdated(ctx context.Context, limit int) ([]draw.Outdated, error) {
	rows := pg.Rows(ctx, s.Pool, `select clock_timestamp(), coalesce(d.template_version, 0), coalesce(d.state, ''), coalesce(d.key, ''), coalesce(d.cards, '{}'), `+
		pg.TemplateColumns+pg.TemplateFrom+`left join draws d on d.template_id = t.id where `+outdated+` order by t.id limit $1`, limit)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o draw.Outdated, err error) {
		err = row.Scan(append([]any{&o.Now, &o.Draw.TemplateVersion, &o.Draw.State, &o.Draw.Key, &o.Draw.Cards}, pg.TemplateFields(&o.Template)...)...)
		return o, err
	})
	return list, pg.Translate(err)
}

// saveCardSQL stores the first card of a draw, or a further one. It changes nothing if the template or
// the draw is not in the version that the card was made of.
const saveCardSQL = `
insert into draws as d (template_id, template_version, key, source, cards, opens_at, closes_at)
select t.id, t.version, @key, @source, array[@signed], @opens_at, @closes_at from templates t
where t.id = @id and t.version = @version and t.state in ('published', 'paused')
on conflict (template_id) do update set template_version = excluded.template_version, cards = d.cards || excluded.cards,
    opens_at = excluded.opens_at, closes_at = excluded.closes_at
where d.state = 'open' and d.template_version = @before`

// SaveCard is part of [draw.OperatorStore].
func (s Draws) SaveCard(ctx context.Context, c draw.CardChange) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, saveCardSQL, pgx.StrictNamedArgs{"id": c.TemplateID, "version": c.TemplateVersion, "before": c.Before, "key": c.Key, "source": c.Card.Source.Kind,
			"signed": c.Signed, "opens_at": c.Card.OpensAt, "closes_at": c.Card.ClosesAt})
		return err
	})
}

// KeepCard is part of [draw.OperatorStore].
func (s Draws) KeepCard(ctx context.Context, templateID, version, before int64) error {
	_, err := s.Pool.Exec(ctx, `update draws set template_version = $2 where template_id = $1 and template_version = $3 and state = 'open'`, templateID, version, before)
	return pg.Translate(err)
}

// calledOff are the draws d whose drop t was cancelled, or closed by staff before the entries closed. The latter
// can be undone until then.
const calledOff = `d.state in ('open', 'closed', 'sealed') and (t.state = 'cancelled'
	or d.state = 'open' and t.state = 'closed' and t.ended_at < d.closes_at and d.closes_at <= clock_timestamp())`

// Cancel is part of [draw.OperatorStore].
func (s Draws) Cancel(ctx context.Context) error {
	_, err := s.Pool.Exec(ctx, `update draws d set state = 'cancelled' from templates t where t.id = d.template_id and `+calledOff)
	return pg.Translate(err)
}

// CloseDue is part of [draw.OperatorStore]. A draw whose template was changed since its card is closed
// after its next card.
func (s Draws) CloseDue(ctx context.Context) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update draws d set state = 'closed' from templates t where t.id = d.template_id and d.state = 'open'
			and d.closes_at <= clock_timestamp() and (d.template_version = t.version or t.state = 'closed' and t.ended_at >= d.closes_at)
			and not (t.state = 'closed' and t.ended_at < d.closes_at)`)
		return err
	})
}

// Due is part of [draw.OperatorStore].
func (s Draws) Due(ctx context.Context) ([]draw.Draw, error) {
	return pg.Collect(ctx, s.Pool, scanDraw, `select `+drawColumns+drawFrom+`where `+dueDraw+` order by d.template_id`)
}
