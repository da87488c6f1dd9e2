package drops

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/draw"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/user"
)

// taken begins a step: it locks the draw if it is in the state and no other worker is at it. ok is false
// otherwise. A step may compute for seconds between two statements.
func (s Draws) taken(ctx context.Context, tx pgx.Tx, templateID int64, state draw.State) (d draw.Draw, ok bool, err error) {
	if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = 0`); err != nil {
		return d, false, err
	}
	rows := pg.Rows(ctx, tx, `select `+drawColumns+drawFrom+`where d.template_id = $1 and d.state = $2 for update of d skip locked`, templateID, state)
	d, err = pgx.CollectExactlyOneRow(rows, scanDraw)
	if errors.Is(err, pgx.ErrNoRows) {
		return d, false, nil
	}
	return d, err == nil, err
}

// Seal is part of [draw.OperatorStore]. The clock is read after the list was written: a large list takes
// seconds, and the seal must be public before its round is.
func (s Draws) Seal(ctx context.Context, templateID int64, prepare func(*draw.SealWork) error,
	sign func(*draw.SealWork, time.Time) (string, draw.Seal, error),
) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		d, ok, err := s.taken(ctx, tx, templateID, draw.Closed)
		if err != nil || !ok {
			return err
		}
		w := &draw.SealWork{Draw: d}
		if w.Rows, err = readEntries(ctx, tx, d); err == nil {
			w.Struck, err = readStruckCounts(ctx, tx, templateID)
		}
		if err == nil {
			err = prepare(w)
		}
		if err != nil {
			return err
		}
		if err := writeChunks(ctx, tx, templateID, w); err != nil {
			return err
		}
		var now time.Time
		if err := tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&now); err != nil {
			return err
		}
		signed, seal, err := sign(w, now)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update draws set state = 'sealed', seal = $2, sealed_at = $3, round = $4 where template_id = $1`, templateID, signed, seal.SealedAt, seal.Round)
		if err != nil {
			return err
		}
		return announceDraw(ctx, tx, event.DrawSealed, event.Draw{TemplateID: templateID, Signed: signed, Round: seal.Round})
	})
}

// announceDraw writes the event of a step. The caller has locked the draw's row, so events are numbered in the
// order of the steps.
func announceDraw(ctx context.Context, tx pgx.Tx, topic string, e event.Draw) error {
	if err := tx.QueryRow(ctx, `select nextval('hook_sequence'), clock_timestamp()`).Scan(&e.Sequence, &e.At); err != nil {
		return err
	}
	e.At = e.At.UTC()
	return pg.Announce(ctx, tx, topic, e)
}

// readEntries reads the entries that are not struck, in any order.
func readEntries(ctx context.Context, tx pgx.Tx, d draw.Draw) ([]draw.Row, error) {
	list := make([]draw.Row, 0, d.Taken())
	rows := pg.Rows(ctx, tx, `select user_id, ticket, salt, weight from draw_entries where template_id = $1 and state = 'entered'`, d.TemplateID)
	var e draw.Entry
	var ticket, salt [16]byte
	_, err := pgx.ForEachRow(rows, []any{&e.UserID, &ticket, &salt, &e.Weight}, func() error {
		e.Ticket, e.Salt = ticket, salt
		list = append(list, e.Row())
		return nil
	})
	return list, err
}

func readStruckCounts(ctx context.Context, tx pgx.Tx, templateID int64) ([]draw.Count, error) {
	rows := pg.Rows(ctx, tx, `select coalesce(reason, ''), count(*) from draw_entries where template_id = $1 and state = 'struck' group by 1 order by 1`, templateID)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[draw.Count])
}

// writeChunks stores the sorted list, one chunk after the other.
func writeChunks(ctx context.Context, tx pgx.Tx, templateID int64, w *draw.SealWork) error {
	for i, root := range w.Roots {
		if _, err := tx.Exec(ctx, `insert into draw_chunks (template_id, chunk, rows, root) values ($1, $2, $3, $4)`, templateID, i, draw.Chunk(w.Rows, i), root[:]); err != nil {
			return err
		}
	}
	return nil
}

// Decide is part of [draw.OperatorStore].
func (s Draws) Decide(ctx context.Context, templateID int64, decide func(draw.DrawWork) (draw.Decision, error)) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		d, ok, err := s.taken(ctx, tx, templateID, draw.Sealed)
		if err != nil || !ok {
			return err
		}
		w := draw.DrawWork{Draw: d}
		if w.Rows, err = readChunks(ctx, tx, templateID); err == nil {
			w.Struck, err = readStrikes(ctx, tx, templateID)
		}
		if err != nil {
			return err
		}
		made, err := decide(w)
		if err != nil {
			return err
		}
		if err := storeDecision(ctx, tx, templateID, made); err != nil {
			return err
		}
		return announceDraw(ctx, tx, event.DrawDrawn, event.Draw{TemplateID: templateID, Signed: made.Signed, Round: d.Round, Won: int64(len(made.Winners))})
	})
}

func readChunks(ctx context.Context, tx pgx.Tx, templateID int64) ([]draw.Row, error) {
	chunks, err := pgx.CollectRows(pg.Rows(ctx, tx, `select rows from draw_chunks where template_id = $1 order by chunk`, templateID), pgx.RowTo[[]byte])
	if err != nil {
		return nil, err
	}
	return draw.Rows(chunks...)
}

func readStrikes(ctx context.Context, tx pgx.Tx, templateID int64) ([]draw.Strike, error) {
	rows := pg.Rows(ctx, tx, `select ticket, coalesce(reason, '') from draw_entries where template_id = $1 and state in ('struck', 'lapsed') and listed
		order by struck_at, ticket`, templateID)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s draw.Strike, err error) {
		var ticket [16]byte
		err = row.Scan(&ticket, &s.Reason)
		s.Ticket = ticket
		return s, err
	})
}

// storeDecisionSQL stores the result, and marks the entries that won with it and had not won before. A later result, after an entry was
// struck, leaves the instant of the draw as it is.
const storeDecisionSQL = `
with winners as (
    update draw_entries e set state = 'won', rank = w.rank from unnest($2::uuid[], $3::int[]) as w (ticket, rank)
    where e.template_id = $1 and e.ticket = w.ticket and e.state = 'entered' returning 1
)
update draws set state = 'drawn', evidence = $4, result = $5, drawn_at = coalesce(drawn_at, clock_timestamp()), decided_at = clock_timestamp(), won = won + (select count(*) from winners)
where template_id = $1`

func storeDecision(ctx context.Context, tx pgx.Tx, templateID int64, made draw.Decision) error {
	tickets := make([][16]byte, len(made.Winners))
	for i, t := range made.Winners {
		tickets[i] = t
	}
	_, err := tx.Exec(ctx, storeDecisionSQL, templateID, tickets, made.Ranks, made.Evidence, made.Signed)
	return err
}

// Winners is part of [draw.OperatorStore].
func (s Draws) Winners(ctx context.Context, templateID int64, after, limit int) ([]draw.Winner, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[draw.Winner], `select user_id, rank from draw_entries
		where template_id = $1 and state = 'won' and rank > $2 and coupon_id is null and reason is null
			and (accepted_at is not null or (select accept_hours = 0 from templates where id = $1)) order by rank limit $3`, templateID, after, limit)
}

// SaveIssued is part of [draw.OperatorStore]. The coupon of a winner who was struck meanwhile is noted, so that it is
// taken back.
func (s Draws) SaveIssued(ctx context.Context, templateID int64, list []draw.Issued) error {
	if len(list) == 0 {
		return nil
	}
	users, coupons, reasons := make([]user.ID, len(list)), make([]int64, len(list)), make([]string, len(list))
	for i, w := range list {
		users[i], coupons[i], reasons[i] = w.UserID, w.CouponID, w.Reason
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.ByIndex(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `with issued as (update draw_entries e set coupon_id = nullif(i.coupon_id, 0),
				reason = case e.state when 'won' then nullif(i.reason, '') else e.reason end
			from unnest($2::bigint[], $3::bigint[], $4::text[]) as i (user_id, coupon_id, reason)
			where e.template_id = $1 and e.user_id = i.user_id and e.state in ('won', 'struck') and e.coupon_id is null
			returning e.user_id, e.ticket, e.coupon_id, e.state), told as (select * from issued where coupon_id is not null and state = 'won'), again as (
				update draws set state = 'drawn' where template_id = $1 and state in ('offered', 'done')
				and exists (select from issued where coupon_id is not null and state = 'struck'))
			`+listEntries(true), templateID, users, coupons, reasons)
		return err
	})
}

// listEntries writes the event that names the entries told of draw $1, if a server of the shop wants to know them.
func listEntries(won bool) string {
	t, word := hook.EntryLost, "false"
	if won {
		t, word = hook.EntryWon, "true"
	}
	return `insert into outbox (topic, payload)
		select '` + event.EntriesListed + `', jsonb_build_object('template_id', $1::bigint::text, 'won', ` + word + `, 'at', clock_timestamp(), 'sequence', nextval('hook_sequence')::text,
			'items', (select jsonb_agg(jsonb_strip_nulls(jsonb_build_object('user_id', user_id::text, 'ticket', replace(ticket::text, '-', ''), 'coupon_id', coupon_id::text))) from told))
		where exists (select from told) and exists (select from hook_wants w where w.shop_number = (select shop_number from templates where id = $1::bigint)
			and (cardinality(w.types) = 0 or '` + string(t) + `' = any(w.types)))`
}

// TellLost is part of [draw.OperatorStore]. Draws of shops that want to know nothing are read no further.
func (s Draws) TellLost(ctx context.Context, templateID int64, limit int) (more bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		var after int64
		err := tx.QueryRow(ctx, `select d.told_to from draws d join templates t on t.id = d.template_id where d.template_id = $1
			and exists (select from hook_wants w where w.shop_number = t.shop_number and (cardinality(w.types) = 0 or '`+string(hook.EntryLost)+`' = any(w.types)))
			for update of d`, templateID).Scan(&after)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		var last *int64
		if err == nil {
			err = tx.QueryRow(ctx, `with told as materialized (select user_id, ticket, null::bigint as coupon_id from draw_entries
				where template_id = $1 and state = 'entered' and user_id > $2 order by user_id limit $3), listed as (`+listEntries(false)+`)
				select max(user_id) from told`, templateID, after, limit).Scan(&last)
		}
		if err != nil || last == nil {
			return err
		}
		more = true
		_, err = tx.Exec(ctx, `update draws set told_to = $2 where template_id = $1`, templateID, *last)
		return err
	})
	return more, err
}

// DrawLateness returns for how many seconds the next step of a draw has been due, of the draw that waits
// longest. A public draw that waits for its figures is not late.
func (s Draws) DrawLateness(ctx context.Context) (seconds float64, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(max(extract(epoch from clock_timestamp() - due)), 0)::float8 from (
		select case d.state when 'open' then d.closes_at when 'closed' then d.closes_at when 'drawn' then coalesce(d.decided_at, d.drawn_at) when 'offered' then d.offers_until
			else greatest(case when d.round > 0 then to_timestamp(1692803367 + (d.round - 1) * 3) when d.source = 'commit' or d.evidence is not null then d.sealed_at end,
				d.offers_until) end as due
		from draws d where d.state in ('open', 'closed', 'sealed', 'drawn', 'offered')) w where due < clock_timestamp()`).Scan(&seconds)
	return seconds, pg.Translate(err)
}

// A DrawAccount compares the counts of a draw with its rows.
type DrawAccount struct {
	State draw.State
	draw.Counts
	// Rows are the entries by what became of them, and Coupons the coupons that the draw gave.
	Rows    draw.Counts
	Waiting int64
	Coupons int64
	// Removed says that the rows were removed after their retention; the counts stay.
	Removed bool
}

// Difference is by how many entries the counts differ from the rows.
func (a DrawAccount) Difference() int64 {
	off := func(counted, rows int64) int64 { return max(counted-rows, rows-counted) }
	return off(a.Won, a.Rows.Won) + off(a.Struck, a.Rows.Struck) + off(a.Lapsed, a.Rows.Lapsed) + off(a.Counts.Waiting(), a.Waiting)
}

// DrawAccount counts the entries of a draw from the rows, at one instant. It returns [draw.ErrNoDraw] if the
// drop has none.
func (s Draws) DrawAccount(ctx context.Context, templateID int64) (a DrawAccount, err error) {
	var d draw.Draw
	err = s.Instant(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select `+drawColumns+drawFrom+`where d.template_id = $1`, templateID)
		if err != nil {
			return err
		}
		if d, err = pgx.CollectExactlyOneRow(rows, scanDraw); errors.Is(err, pgx.ErrNoRows) {
			return draw.ErrNoDraw
		} else if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `select count(*) filter (where state = 'won'), count(*) filter (where state = 'struck'), count(*) filter (where state = 'lapsed'), count(*) filter (where state = 'entered'),
			(select count(*) from coupons where template_id = $1 and origin = 'draw' and not returned),
			count(*) = 0 and exists (select from drop_archives where template_id = $1)
			from draw_entries where template_id = $1`, templateID).Scan(&a.Rows.Won, &a.Rows.Struck, &a.Rows.Lapsed, &a.Waiting, &a.Coupons, &a.Removed)
	})
	a.State, a.Counts = d.State, d.Counts
	return a, err
}

var _ draw.OperatorStore = Draws{}
var _ draw.Store = (*Entries)(nil)
