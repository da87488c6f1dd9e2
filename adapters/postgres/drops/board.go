package drops

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// Boards reads the figures that staff watch: counters while reminders wait, sums
// over batches of a thousand users each while reminders are sent, and stored
// results afterwards.
type Boards struct{ *pg.DB }

// NewBoards returns the boards of db.
func NewBoards(db *pg.DB) Boards { return Boards{db} }

// Board returns the template's slots; see [reminder.BoardStore].
func (s Boards) Board(ctx context.Context, templateID int64) (reminder.Board, error) {
	var board reminder.Board
	err := s.Tx(ctx, func(tx pgx.Tx) error { // one snapshot for all parts
		if _, err := tx.Exec(ctx, `set transaction isolation level repeatable read read only`); err != nil {
			return err
		}
		var err error
		board, err = readBoard(ctx, s.DB, tx, templateID)
		return err
	})
	return board, err
}

func readBoard(ctx context.Context, db *pg.DB, tx pgx.Tx, templateID int64) (reminder.Board, error) {
	var board reminder.Board
	rows := pg.Rows(ctx, tx, `select `+pg.SlotColumns+`, `+pg.OfOpening+` from slots_of($1) s join `+pg.TemplateRow+` t on t.id = s.template_id
		where (`+pg.OfOpening+` or s.fired_at is not null) order by s.opens_at desc, s.due_at`, templateID)
	var sl reminder.Slot
	var current bool
	if _, err := pgx.ForEachRow(rows, append(pg.SlotFields(&sl), &current), func() error {
		row := reminder.Row{Slot: sl}
		for i := range row.Cells {
			row.Cells[i].Channel = delivery.Channel(i)
		}
		if current {
			board.Rows = append(board.Rows, row)
		} else {
			board.Earlier = append(board.Earlier, row)
		}
		return nil
	}); err != nil {
		return board, err
	}
	if err := fillBooked(ctx, tx, templateID, &board); err != nil {
		return board, err
	}
	if err := fillResults(ctx, tx, templateID, &board); err != nil {
		return board, err
	}
	if err := tx.QueryRow(ctx, openedSQL, templateID).Scan(&board.Opened); err != nil {
		return board, err
	}
	var dead, sent int64
	for _, c := range board.Totals() {
		dead, sent = dead+c.Dead, sent+c.Sent
	}
	if sent > 0 {
		if err := fillReported(ctx, db, tx, &board); err != nil {
			return board, err
		}
	}
	var err error
	if dead > 0 {
		board.DeadLetters, err = deadLetters(ctx, tx, templateID)
	}
	return board, err
}

// fillReported adds the providers' reports about messages of the current slots.
func fillReported(ctx context.Context, db *pg.DB, tx pgx.Tx, board *reminder.Board) error {
	ids := make([]int64, len(board.Rows))
	for i, r := range board.Rows {
		ids[i] = r.ID
	}
	sums, err := pg.TalliesIn(ctx, db, tx, delivery.KindReminder, ids)
	for _, sum := range sums {
		board.Rows[slices.Index(ids, sum.OwnerID)].Cells[sum.Channel].Reported = sum.Tally
	}
	return err
}

// deadLetters counts the dead reminders of the template's present opening that
// are not discarded.
func deadLetters(ctx context.Context, tx pgx.Tx, templateID int64) (n int64, err error) {
	err = tx.QueryRow(ctx, `select count(*) from slots s join templates t on t.id = s.template_id and `+pg.OfOpening+`
		join batches b on b.kind = 'reminder' and b.owner_id = s.id and b.dead_count > 0
		join exceptions e on e.batch_id = b.id and e.outcome = 'dead' where s.template_id = $1`, templateID).Scan(&n)
	return n, err
}

// bookedCell is how many reminders of a slot and channel are booked, about, by users of some doors.
type bookedCell struct {
	slot    template.Slot
	channel delivery.Channel
	doors   template.DoorSet
	booked  int64
}

// eachBooked reads the bookings of the template, for each set of doors that its slots have.
func eachBooked(ctx context.Context, tx pgx.Tx, templateID int64, each func(bookedCell)) error {
	rows := pg.Rows(ctx, tx, `select b.slot, b.channel, s.doors, case when s.doors = 0 then greatest(0, b.booked) else booked_by($1, s.doors, greatest(0, b.booked)) end
		from bookings_of($1) b cross join (select distinct coalesce(doors, 0)::smallint as doors from slots_of($1)) s`, templateID)
	var b bookedCell
	_, err := pgx.ForEachRow(rows, []any{&b.slot, &b.channel, &b.doors, &b.booked}, func() error {
		each(b)
		return nil
	})
	return err
}

func fillBooked(ctx context.Context, tx pgx.Tx, templateID int64, board *reminder.Board) error {
	return eachBooked(ctx, tx, templateID, func(b bookedCell) {
		for i := range slices.Backward(board.Rows) {
			if board.Rows[i].Slot.Slot == b.slot && board.Rows[i].Doors == b.doors {
				board.Rows[i].Cells[b.channel].Booked = b.booked
				break // of several rounds it is the last that they are booked for
			}
		}
	})
}

// resultSQL sums the batches of slots that are being sent. For finished slots it
// reads the stored results.
const resultSQL = `
select s.id, b.channel, sum(b.due_count), sum(b.sent_count), sum(b.skipped_count), sum(b.expired_count), sum(b.dead_count),
    sum(b.due_count - b.sent_count - b.skipped_count - b.expired_count - b.dead_count)
from slots s join batches b on b.kind = 'reminder' and b.owner_id = s.id
where s.template_id = $1 and s.state in ('firing', 'sending') group by 1, 2
union all
select s.id, r.channel, r.reserved, r.sent, r.skipped, r.expired, r.dead, 0
from slots_of($1) s join slot_results_of($1) r on r.slot_id = s.id
where s.state = 'finished'`

func fillResults(ctx context.Context, tx pgx.Tx, templateID int64, board *reminder.Board) error {
	rows := pg.Rows(ctx, tx, resultSQL, templateID)
	var id int64
	var channel delivery.Channel
	var c delivery.Counts
	_, err := pgx.ForEachRow(rows, []any{&id, &channel, &c.Reserved, &c.Sent, &c.Skipped, &c.Expired, &c.Dead, &c.InFlight}, func() error {
		for _, list := range [][]reminder.Row{board.Rows, board.Earlier} {
			for i := range list {
				if list[i].ID == id {
					list[i].Cells[channel].Counts = c
				}
			}
		}
		return nil
	})
	return err
}

// Growth returns the booking curve, thinned to at most points values. Once its rows are past
// their retention, it is the curve that was kept.
func (s Boards) Growth(ctx context.Context, templateID int64, points int) ([]reminder.Growth, error) {
	rows := pg.Rows(ctx, s.Pool, `
		with kept as materialized (
			select to_timestamp((p ->> 0)::bigint) as minute, (p ->> 1)::bigint as booked
			from drop_archives a, jsonb_array_elements(a.growth) p where a.template_id = $1
		), whole as (
			select * from kept
			union all
			select minute, sum(delta) over (order by minute) from booking_growth where template_id = $1 and not exists (select from kept)
		)
		select minute, booked from (select minute, booked, row_number() over (order by minute desc) as back, count(*) over () as n from whole) g
		where back % greatest(1, (n + $2 - 1) / $2) = 1 or n <= $2 order by minute`, templateID, max(2, points))
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[reminder.Growth])
	if len(list) == 1 { // a curve needs a beginning
		list = append([]reminder.Growth{{At: list[0].At.Add(-time.Minute)}}, list...)
	}
	return list, pg.Translate(err)
}

// Balance recomputes the balance sheet of every fired slot from the bitmaps and
// the exception rows, not from counters, in one snapshot. Slots whose rows are
// past their retention are left out.
func (s Boards) Balance(ctx context.Context, templateID int64) (lines []reminder.BalanceLine, err error) {
	s.DB = s.Reports(ctx)
	err = s.Instant(ctx, func(tx pgx.Tx) error {
		lines, err = balanceLines(ctx, tx, templateID)
		return err
	})
	return lines, err
}

// KeptBalance returns the lines of slots whose rows are past their retention, as they were kept:
// Counted are the stored outcomes, which must still add up to the recipients.
func (s Boards) KeptBalance(ctx context.Context, templateID int64) ([]reminder.BalanceLine, error) {
	rows := pg.Rows(ctx, s.Pool, `select `+pg.SlotColumns+`, r.channel, r.reserved, r.sent, r.skipped, r.expired, r.dead
		from slots_of($1) s join slot_results_of($1) r on r.slot_id = s.id where r.archived order by s.opens_at, s.due_at, s.id, r.channel`, templateID)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l reminder.BalanceLine, err error) {
		err = row.Scan(append(pg.SlotFields(&l.Slot), &l.Channel, &l.Kept.Reserved, &l.Kept.Sent, &l.Kept.Skipped, &l.Kept.Expired, &l.Kept.Dead)...)
		l.Counted, l.Archived = l.Kept, true
		return l, err
	})
	return list, pg.Translate(err)
}

func balanceLines(ctx context.Context, tx pgx.Tx, templateID int64) ([]reminder.BalanceLine, error) {
	rows := pg.Rows(ctx, tx, `select `+pg.SlotColumns+`, r.channel, r.reserved, r.sent, r.skipped, r.expired, r.dead
		from slots s join slot_results r on r.slot_id = s.id where s.template_id = $1 and not r.archived order by s.opens_at, s.due_at, s.id, r.channel`, templateID)
	var lines []reminder.BalanceLine
	var l reminder.BalanceLine
	if _, err := pgx.ForEachRow(rows, append(pg.SlotFields(&l.Slot), &l.Channel, &l.Kept.Reserved, &l.Kept.Sent, &l.Kept.Skipped,
		&l.Kept.Expired, &l.Kept.Dead), func() error {
		lines = append(lines, l)
		return nil
	}); err != nil {
		return nil, err
	}
	for i := range lines {
		if err := countLine(ctx, tx, &lines[i]); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// countLine counts one slot and channel from its batches' bitmaps and rows.
func countLine(ctx context.Context, tx pgx.Tx, l *reminder.BalanceLine) error {
	outcomes, err := exceptionOutcomes(ctx, tx, l)
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `select id, due, sent, coalesce(rest_outcome, ''), f.delivered, f.bounced, f.complained, f.soft
		from batches b left join batch_feedback f on f.batch_id = b.id
		where b.kind = 'reminder' and b.owner_id = $1 and b.channel = $2 order by from_user`, l.Slot.ID, l.Channel)
	if err != nil {
		return err
	}
	seen, _ := pg.DecodeSet(nil)
	var id int64
	var due, sent []byte
	var rest string
	var reported [4][]byte
	_, err = pgx.ForEachRow(rows, []any{&id, &due, &sent, &rest, &reported[0], &reported[1], &reported[2], &reported[3]}, func() error {
		dueSet, err := pg.DecodeSet(due)
		if err != nil {
			return err
		}
		sentSet, err := pg.DecodeSet(sent)
		if err != nil {
			return err
		}
		l.Twice += int64(seen.AndCardinality(dueSet))
		seen.Or(dueSet)
		pg.CountBatch(&l.Counted, int64(dueSet.GetCardinality()), int64(sentSet.AndCardinality(dueSet)), rest, outcomes[id])
		return pg.CountReported(&l.Reported, sentSet, reported)
	})
	return err
}

func exceptionOutcomes(ctx context.Context, tx pgx.Tx, l *reminder.BalanceLine) (map[int64]map[delivery.Outcome]int64, error) {
	rows := pg.Rows(ctx, tx, `select e.batch_id, e.outcome, count(*) from batches b join exceptions e on e.batch_id = b.id
		where b.kind = 'reminder' and b.owner_id = $1 and b.channel = $2 group by 1, 2`, l.Slot.ID, l.Channel)
	all := map[int64]map[delivery.Outcome]int64{}
	var id, n int64
	var o delivery.Outcome
	_, err := pgx.ForEachRow(rows, []any{&id, &o, &n}, func() error {
		if all[id] == nil {
			all[id] = map[delivery.Outcome]int64{}
		}
		all[id][o] = n
		return nil
	})
	return all, err
}

// Lateness returns, by channel, the time from the slot's due time until its
// batches were recorded. The two values are the median and the 99th percentile
// over the recipients' batches.
func (s Boards) Lateness(ctx context.Context, slotID int64) (map[delivery.Channel][2]time.Duration, error) {
	rows := pg.Rows(ctx, s.Pool, `select channel,
			percentile_disc(0.5) within group (order by finished_at - greatest(due_at, planned_at)),
			percentile_disc(0.99) within group (order by finished_at - greatest(due_at, planned_at))
		from batches where kind = 'reminder' and owner_id = $1 and finished_at is not null group by channel`, slotID)
	out := map[delivery.Channel][2]time.Duration{}
	var c delivery.Channel
	var p [2]time.Duration
	_, err := pgx.ForEachRow(rows, []any{&c, &p[0], &p[1]}, func() error {
		out[c] = p
		return nil
	})
	return out, pg.Translate(err)
}
