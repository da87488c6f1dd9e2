package coupons

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/killpoint"
)

// expectEpoch runs after the template's row is locked; starting a new epoch needs
// the same lock. expectEpoch is a statement of its own, so that it sees all
// changes committed before the lock was granted.
const expectEpoch = `select expect((` + readShardEpoch + `) = $3)`

// writeFirsts issues coupons of the page on the fast path, concurrently with the
// writers of other shards; the template's row is locked last. It returns the
// claims that got their coupon. All other claims must be decided after the
// template's row is locked.
func (s GateRecorder) writeFirsts(ctx context.Context, p *page) (map[claim.ID]int64, error) {
	if slices.ContainsFunc(p.requests, func(r claim.Request) bool { return r.Origin != claim.ByTap }) {
		return nil, nil
	}
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release() // closes a connection whose transaction is not over
	decider, err := p.readTerms(ctx, conn.Conn())
	if err != nil {
		return nil, err
	}
	if t := decider.Templates[p.template]; t.HouseholdLimit > 0 || t.Issued+t.Held+int64(len(p.requests)) > t.Stock {
		return nil, nil // some claim may be refused
	}
	for i, r := range p.requests {
		if p.epochs[i] == p.epoch {
			decider.Decide(r) // a refusal is not told here
		}
	}
	if len(decider.Fresh()) == 0 {
		return nil, nil
	}
	f := newFastGroup(decider, p.requests)
	b := &pgx.Batch{}
	b.Queue(pg.InGroup, pg.LockTimeout(ctx))
	b.Queue(lockShared, f.templates)
	f.queue(b, fastSettleSQL, append(f.columns(false, pg.TraceOf(ctx)), p.shard)...)
	b.Queue(expectEpoch, p.template, p.shard, p.epoch)
	err = killpoint.Around("gate.first", func() error { return conn.Conn().SendBatch(ctx, b).Close() })
	if pg.LockTimedOut(err) {
		return nil, err // behind the lock it would wait as well
	}
	if _, refused := errors.AsType[*pgconn.PgError](err); refused {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	written := make(map[claim.ID]int64, len(f.claims))
	for i, id := range f.claims {
		written[claim.ID(id)] = f.coupons[i]
	}
	return written, nil
}

// readTerms reads the read set of the page without locks.
func (p *page) readTerms(ctx context.Context, conn *pgx.Conn) (*claim.Decider, error) {
	d := newDecider(readSet{}, len(p.requests))
	b := &pgx.Batch{}
	b.Queue(readTermsSQL, []int64{p.template}).Query(func(rows pgx.Rows) error { return readTerms(d, rows) })
	b.Queue(`select clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&d.At) })
	p.queueEpoch(b)
	return d, conn.SendBatch(ctx, b).Close()
}

// without returns the page without the written claims.
func (p *page) without(written map[claim.ID]int64) *page {
	if len(written) == 0 {
		return p
	}
	rest := newPage(p.template, p.shard, nil)
	for i, r := range p.requests {
		if _, done := written[r.ID]; !done {
			rest.requests, rest.epochs = append(rest.requests, r), append(rest.epochs, p.epochs[i])
		}
	}
	return rest
}

// issuedVerdicts returns the settlements of issued coupons.
func issuedVerdicts(written map[claim.ID]int64) []gate.Settlement {
	list := make([]gate.Settlement, 0, len(written))
	for id, coupon := range written {
		list = append(list, gate.Settlement{ID: id, Issued: true, CouponID: coupon})
	}
	return list
}
