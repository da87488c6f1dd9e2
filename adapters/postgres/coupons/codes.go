package coupons

import (
	"context"
	"crypto/rand"
	"errors"
	"math/big"
	"strconv"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cell"
	"dropbell/domain/event"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Codes stores batches of redeem codes; see [redeemcode.Store]. The codes themselves are never
// stored.
type Codes struct {
	*pg.DB
	// Random returns a number from 0 to below n, all equally likely. The numbers must not
	// depend on anything in the database.
	Random func(n int64) (int64, error)
}

// NewCodes returns the batches of db.
func NewCodes(db *pg.DB) Codes { return Codes{db, randomBelow} }

// randomBelow takes its number from the operating system. So after a machine is reset to a
// snapshot, randomBelow returns other numbers than before.
func randomBelow(n int64) (int64, error) {
	r, err := rand.Int(rand.Reader, big.NewInt(n))
	if err != nil {
		return 0, err
	}
	return r.Int64(), nil
}

// Template returns the template, or [template.ErrNotFound].
func (s Codes) Template(ctx context.Context, id int64) (template.Template, error) {
	return pg.Template(ctx, s.DB, id)
}

const codeColumns = `b.id, b.template_id, t.name, t.shop_number, s.timezone, b.first_serial, b.count, b.key_id, b.state, b.generated, b.used,
	b.job_id, coalesce(j.state, ''), b.created_by, b.created_at, b.ready_at, b.revoked_at, b.revoked_by, b.revoke_reason`

const codeFrom = ` from code_batches b join templates t on t.id = b.template_id join shops s on s.number = t.shop_number
	left join jobs j on j.id = b.job_id `

func scanCodes(row pgx.CollectableRow) (b redeemcode.Batch, err error) {
	err = row.Scan(&b.ID, &b.TemplateID, &b.TemplateName, &b.ShopNumber, &b.ShopTimezone, &b.First, &b.Count, &b.Key, &b.State, &b.Generated, &b.Used,
		&b.JobID, &b.JobState, &b.CreatedBy, &b.CreatedAt, &b.ReadyAt, &b.RevokedAt, &b.RevokedBy, &b.RevokeReason)
	return b, err
}

// oneBatch returns the batch that rest, the end of the statement, selects, or
// [redeemcode.ErrBatchNotFound].
func oneBatch(ctx context.Context, q pg.Querier, rest string, args ...any) (redeemcode.Batch, error) {
	rows, err := q.Query(ctx, `select `+codeColumns+codeFrom+rest, args...)
	if err != nil {
		return redeemcode.Batch{}, pg.Translate(err)
	}
	b, err := pgx.CollectOneRow(rows, scanCodes)
	if errors.Is(err, pgx.ErrNoRows) {
		return b, redeemcode.ErrBatchNotFound
	}
	return b, pg.Translate(err)
}

// Batch returns one batch, or [redeemcode.ErrBatchNotFound].
func (s Codes) Batch(ctx context.Context, id int64) (redeemcode.Batch, error) {
	return oneBatch(ctx, s.Pool, `where b.id = $1`, id)
}

// BatchOf returns the batch that contains the serial number, or [redeemcode.ErrBatchNotFound].
// It is the last batch that begins at or before the serial number, if the batch reaches that
// far.
func (s Codes) BatchOf(ctx context.Context, serial redeemcode.Serial) (redeemcode.Batch, error) {
	b, err := oneBatch(ctx, s.Pool, `where b.first_serial <= $1 order by b.first_serial desc limit 1`, int64(serial))
	if err == nil && !b.Holds(serial) {
		return redeemcode.Batch{}, redeemcode.ErrBatchNotFound
	}
	return b, err
}

// Batches lists batches, newest first.
func (s Codes) Batches(ctx context.Context, q redeemcode.Query) ([]redeemcode.Batch, error) {
	s.DB = s.Reports(ctx)
	return pg.Collect(ctx, s.Pool, scanCodes, `select `+codeColumns+codeFrom+`
		where ($1::bigint = 0 or b.template_id = $1) and (cardinality($2::bigint[]) = 0 or t.shop_number = any($2)) and ($3::bigint = 0 or b.id < $3)
		order by b.id desc limit $4`, q.TemplateID, append([]int64{}, q.Shops...), q.Before, max(1, q.Limit))
}

// Supply sums up the codes of a template, which has a handful of batches.
func (s Codes) Supply(ctx context.Context, templateID int64) (sum redeemcode.Supply, err error) {
	err = s.Pool.QueryRow(ctx, `
		select t.stock - t.issued, coalesce((select sum(b.count - b.used) from code_batches b left join jobs j on j.id = b.job_id
			where b.template_id = t.id and (b.state = 'ready' or b.state = 'generating' and coalesce(j.state, '') in ('waiting', 'running'))), 0)
		from templates t where t.id = $1`, templateID).Scan(&sum.Left, &sum.Outstanding)
	if errors.Is(err, pgx.ErrNoRows) {
		return sum, template.ErrNotFound
	}
	return sum, pg.Translate(err)
}

// CreateBatch allocates serial numbers, stores the batch and starts its job, all in one
// transaction; see [redeemcode.Store].
func (s Codes) CreateBatch(ctx context.Context, n redeemcode.NewBatch, start func(int64) (job.Job, staff.Entry, error), e staff.Entry) (b redeemcode.Batch, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := stillSellable(ctx, tx, n.TemplateID); err != nil {
			return err
		}
		if n.RequestKey != "" {
			b, err = oneBatch(ctx, tx, `where b.template_id = $1 and b.request_key = $2`, n.TemplateID, n.RequestKey)
			if !errors.Is(err, redeemcode.ErrBatchNotFound) {
				return err
			}
		}
		id, err := s.insertBatch(ctx, tx, n)
		if err != nil {
			return err
		}
		if err := startGeneration(ctx, tx, id, start); err != nil {
			return err
		}
		if err := pg.InsertAudit(ctx, tx, e); err != nil {
			return err
		}
		b, err = oneBatch(ctx, tx, `where b.id = $1`, id)
		return err
	})
	return b, err
}

// stillSellable locks the template's row and checks again that the template issues coupons by
// code and has not ended. A repetition of the request waits for the same lock.
func stillSellable(ctx context.Context, tx pgx.Tx, templateID int64) error {
	var byCode, live bool
	err := tx.QueryRow(ctx, `select obtain = 'code' or exists (select from doors d where d.template_id = t.id and d.who = 'codes'), state in ('draft', 'published', 'paused') and `+pg.TemplateEndsAt+` > clock_timestamp()
		from templates t where id = $1 for no key update`, templateID).Scan(&byCode, &live)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return template.ErrNotFound
	case err != nil:
		return err
	case !byCode:
		return redeemcode.ErrNotByCode
	case !live:
		return redeemcode.ErrEnded
	}
	return nil
}

// rangeTries is how many random ranges are tried for a batch. With a million batches of ten
// thousand codes, about one range in a hundred is taken.
const rangeTries = 50

// ownSerialsSQL returns the cells whose serial numbers the database gives: a further cell gives its own, by
// which a code finds its database, and home gives all that are of no cell.
const ownSerialsSQL = `
select n::bigint from cell c, generate_series(0, 63) n where n = c.number or c.number = 0
    and not exists (select from copying_cells k where k.cell = n) and not exists (select from removed_cells r where r.cell = n) order by n`

// insertBatch gives the batch a random range of serial numbers. A restored database does not
// know the serial numbers that were allocated after its backup. Random ranges meet these
// numbers only by chance; a counter would always allocate them again. For two batches of ten
// thousand codes the probability is 1 in 55 million, for two batches of a million codes 1 in
// 550,000.
func (s Codes) insertBatch(ctx context.Context, tx pgx.Tx, n redeemcode.NewBatch) (id int64, err error) {
	own, err := pgx.CollectRows(pg.Rows(ctx, tx, ownSerialsSQL), pgx.RowTo[int64])
	if err != nil {
		return 0, err
	}
	width := cell.CodeSerials - n.Count // the last number of a cell is not used, since the very last one is none
	for range rangeTries {
		place, err := s.Random(int64(len(own)) * width)
		if err != nil {
			return 0, err
		}
		place = own[place/width]*cell.CodeSerials + place%width
		// The template's row is locked, so the request key cannot conflict, only the range.
		err = tx.QueryRow(ctx, `insert into code_batches (template_id, first_serial, count, key_id, request_key, created_by)
			values ($1, $2, $3, $4, $5, $6) on conflict do nothing returning id`,
			n.TemplateID, place+1, n.Count, n.Key, n.RequestKey, n.CreatedBy).Scan(&id)
		if !errors.Is(err, pgx.ErrNoRows) {
			return id, err
		}
	}
	return 0, redeemcode.ErrNoSerials
}

func startGeneration(ctx context.Context, tx pgx.Tx, batchID int64, start func(int64) (job.Job, staff.Entry, error)) error {
	j, e, err := start(batchID)
	if err != nil {
		return err
	}
	started, err := pg.StartJob(ctx, tx, j, "batch:"+pg.Itoa(batchID), e)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update code_batches set job_id = $2 where id = $1`, batchID, started.ID)
	return err
}

// RevokeBatch ends a batch; see [redeemcode.Store]. It locks the template's row, which the
// decision of a claim locks too. A claim that is decided before the revocation gets its
// coupon; a later claim finds the batch revoked.
func (s Codes) RevokeBatch(ctx context.Context, id int64, by, reason string, e staff.Entry) (b redeemcode.Batch, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select from templates where id = (select template_id from code_batches where id = $1) for no key update`, id); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `update code_batches set state = 'revoked', revoked_at = clock_timestamp(), revoked_by = $2, revoke_reason = $3
			where id = $1 and state <> 'revoked'`, id, by, reason)
		if err != nil {
			return err
		}
		if b, err = oneBatch(ctx, tx, `where b.id = $1`, id); err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return redeemcode.ErrRevoked
		}
		if err := pg.InsertAudit(ctx, tx, e); err != nil {
			return err
		}
		return announceCodes(ctx, tx, b)
	})
	return b, err
}

func announceCodes(ctx context.Context, tx pgx.Tx, b redeemcode.Batch) error {
	return pg.Announce(ctx, tx, event.CodesChanged, event.Codes{BatchID: b.ID, TemplateID: b.TemplateID, State: string(b.State)})
}

// UseOf returns the coupon that was issued for the code of a serial number, or the user of an access code.
func (s Codes) UseOf(ctx context.Context, serial redeemcode.Serial) (u redeemcode.Use, used bool, err error) {
	err = s.Pool.QueryRow(ctx, `select user_id, id, issued_at from coupons where origin = 'code' and origin_key = $1
		union all select coalesce(user_id, 0), 0, at from door_codes where serial = $2`,
		strconv.FormatInt(int64(serial), 10), int64(serial)).Scan(&u.UserID, &u.CouponID, &u.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return u, false, nil
	}
	return u, err == nil, pg.Translate(err)
}

// Record stores an entry of the audit log.
func (s Codes) Record(ctx context.Context, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error { return pg.InsertAudit(ctx, tx, e) })
}
