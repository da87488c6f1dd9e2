package drops

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
)

// A Recount is the result of recounting recent slots from the rows.
type Recount struct {
	// Slots is the number of recounted slots.
	Slots int
	// Differences are the lines that do not balance.
	Differences []reminder.BalanceLine
	// Expired is the number of reminders that were not sent before the opening.
	Expired [delivery.Channels]int64
}

// Recount recounts at most limit slots that are being sent or finished within the
// last window, the newest first.
func (s Boards) Recount(ctx context.Context, window time.Duration, limit int) (Recount, error) {
	lines, err := s.recentLines(ctx, window, limit)
	if err != nil {
		return Recount{}, err
	}
	var r Recount
	slots := map[int64]bool{}
	for i := range lines {
		slots[lines[i].Slot.ID] = true
		off, err := s.off(ctx, &lines[i])
		if err != nil {
			return Recount{}, err
		}
		if off {
			r.Differences = append(r.Differences, lines[i])
		}
		r.Expired[lines[i].Channel] += lines[i].Counted.Expired
	}
	r.Slots = len(slots)
	return r, nil
}

// off counts the line and reports whether the line does not balance. Counters and
// rows are read in one snapshot, because a checkpoint may commit between two
// reads.
func (s Boards) off(ctx context.Context, l *reminder.BalanceLine) (bool, error) {
	err := s.Instant(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `select s.state, r.reserved, r.sent, r.skipped, r.expired, r.dead
			from slots s join slot_results r on r.slot_id = s.id where s.id = $1 and r.channel = $2`, l.Slot.ID, l.Channel).
			Scan(&l.Slot.State, &l.Kept.Reserved, &l.Kept.Sent, &l.Kept.Skipped, &l.Kept.Expired, &l.Kept.Dead); err != nil {
			return err
		}
		return countLine(ctx, tx, l)
	})
	return err == nil && l.Difference() != 0, err
}

func (s Boards) recentLines(ctx context.Context, window time.Duration, limit int) ([]reminder.BalanceLine, error) {
	rows := pg.Rows(ctx, s.Pool, `
		with recent as (
			(select id from slots where state = 'sending' order by id desc limit $2)
			union all
			(select id from slots where state = 'finished' and finished_at > now() - $1::interval order by finished_at desc limit $2)
			limit $2
		)
		select `+pg.SlotColumns+`, r.channel, r.reserved, r.sent, r.skipped, r.expired, r.dead
		from recent join slots s using (id) join slot_results r on r.slot_id = s.id
		order by s.id, r.channel`, window, limit)
	var lines []reminder.BalanceLine
	var l reminder.BalanceLine
	_, err := pgx.ForEachRow(rows, append(pg.SlotFields(&l.Slot), &l.Channel, &l.Kept.Reserved, &l.Kept.Sent, &l.Kept.Skipped,
		&l.Kept.Expired, &l.Kept.Dead), func() error {
		lines = append(lines, l)
		return nil
	})
	return lines, pg.Translate(err)
}
