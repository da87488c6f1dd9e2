package drops

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// ReceiptHead returns the beginning of a slot's receipt; see
// [reminder.ReceiptStore].
func (s Boards) ReceiptHead(ctx context.Context, slotID int64) (h reminder.ReceiptHead, err error) {
	s.DB = s.Reports(ctx)
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		h, err = receiptHead(ctx, tx, slotID)
		return err
	})
	return h, err
}

// Receipt writes the receipt of one slot from one snapshot.
func (s Boards) Receipt(ctx context.Context, slotID int64, w io.Writer) error {
	s.DB = s.Reports(ctx)
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set transaction isolation level repeatable read read only`); err != nil {
			return err
		}
		head, err := receiptHead(ctx, tx, slotID)
		if err != nil {
			return err
		}
		buffered := bufio.NewWriterSize(w, 64<<10)
		receipt := reminder.NewReceiptWriter(buffered)
		if err := receipt.Head(head); err != nil {
			return err
		}
		if err := receiptRows(ctx, tx, slotID, receipt); err != nil {
			return err
		}
		if err := receipt.Close(); err != nil {
			return err
		}
		return buffered.Flush()
	})
}

func receiptHead(ctx context.Context, tx pgx.Tx, slotID int64) (h reminder.ReceiptHead, err error) {
	err = tx.QueryRow(ctx, `select `+pg.SlotColumns+`, t.shop_number from slots s join templates t on t.id = s.template_id where s.id = $1`, slotID).
		Scan(append(pg.SlotFields(&h.Slot), &h.ShopNumber)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, reminder.ErrNoSlot
	}
	if err != nil {
		return h, err
	}
	rows := pg.Rows(ctx, tx, `
		select r.channel, r.reserved, r.sent, r.skipped, r.expired, r.dead, 0
		from slot_results r join slots s on s.id = r.slot_id where s.id = $1 and s.state = 'finished'
		union all
		select b.channel, sum(b.due_count), sum(b.sent_count), sum(b.skipped_count), sum(b.expired_count), sum(b.dead_count),
			sum(b.due_count - b.sent_count - b.skipped_count - b.expired_count - b.dead_count)
		from slots s join batches b on b.kind = 'reminder' and b.owner_id = s.id where s.id = $1 and s.state <> 'finished' group by 1`, slotID)
	var channel delivery.Channel
	var c delivery.Counts
	_, err = pgx.ForEachRow(rows, []any{&channel, &c.Reserved, &c.Sent, &c.Skipped, &c.Expired, &c.Dead, &c.InFlight}, func() error {
		h.Kept[channel] = c
		return nil
	})
	return h, err
}

// receiptBatch is one batch with the exceptions of its recipients, ascending.
type receiptBatch struct {
	channel          delivery.Channel
	due, sent        []byte
	rest, restReason string
	at               time.Time
	users            []int64
	outcomes         []string
	reasons          []string
	attempts         []int32
	recorded         []time.Time
	reported         [4][]byte // delivered, bounced, complained, soft
}

// receiptRows writes the recipients, batch by batch as they arrive.
func receiptRows(ctx context.Context, tx pgx.Tx, slotID int64, w *reminder.ReceiptWriter) error {
	rows := pg.Rows(ctx, tx, `
		select b.channel, b.due, b.sent, coalesce(b.rest_outcome, ''), coalesce(b.rest_reason, ''),
			coalesce(b.finished_at, b.started_at, b.created_at), e.users, e.outcomes, e.reasons, e.attempts, e.recorded,
			f.delivered, f.bounced, f.complained, f.soft
		from batches b left join batch_feedback f on f.batch_id = b.id left join lateral (
			select array_agg(user_id order by user_id) as users, array_agg(outcome order by user_id) as outcomes,
				array_agg(reason order by user_id) as reasons, array_agg(attempts order by user_id) as attempts,
				array_agg(last_at order by user_id) as recorded
			from exceptions x where x.batch_id = b.id
		) e on true
		where b.kind = 'reminder' and b.owner_id = $1 order by b.channel, b.from_user`, slotID)
	var b receiptBatch
	_, err := pgx.ForEachRow(rows, []any{&b.channel, &b.due, &b.sent, &b.rest, &b.restReason, &b.at,
		&b.users, &b.outcomes, &b.reasons, &b.attempts, &b.recorded,
		&b.reported[0], &b.reported[1], &b.reported[2], &b.reported[3]}, func() error { return b.write(w) })
	return err
}

func (b *receiptBatch) write(w *reminder.ReceiptWriter) error {
	due, err := pg.DecodeSet(b.due)
	if err != nil {
		return err
	}
	sent, err := pg.DecodeSet(b.sent)
	if err != nil {
		return err
	}
	reported, err := pg.DecodeReported(b.reported)
	if err != nil {
		return err
	}
	next := 0 // both lists ascend
	for it := due.Iterator(); it.HasNext(); {
		id := it.Next()
		known := pg.Recorded{Reached: sent.Contains(id), Rest: b.rest, RestReason: b.restReason}
		row := reminder.ReceiptRow{UserID: user.ID(id), Channel: b.channel, At: b.at}
		if next < len(b.users) && b.users[next] == int64(id) {
			known.Exception, known.Reason = b.outcomes[next], b.reasons[next]
			row.Attempts, row.At = int(b.attempts[next]), b.recorded[next]
			next++
		}
		row.Outcome, row.Reason = known.Outcome()
		if row.Outcome == delivery.InFlight {
			row.At = time.Time{}
		}
		if known.Reached {
			row.Reported = reported.Of(row.UserID)
		}
		if err := w.Row(row); err != nil {
			return err
		}
	}
	return nil
}
