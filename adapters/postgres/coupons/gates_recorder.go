package coupons

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/fault"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// GateRecorder stores the claims that the gate accepted. It implements [gate.Recorder].
type GateRecorder struct {
	Gates
	// Handler is the name under which poisoned entries are kept.
	Handler string
}

// NewGateRecorder returns the recorder on db.
func NewGateRecorder(db *pg.DB) GateRecorder { return GateRecorder{NewGates(db), "gate"} }

// page is the set of accepted claims that one transaction decides.
type page struct {
	template int64
	shard    int
	epoch    int64 // of the shard as it stands
	requests []claim.Request
	epochs   []int64                      // of each request
	earlier  map[claim.ID]gate.Settlement // decided before
	results  []gate.Settlement            // one per request
	refused  []claim.Request              // to be kept in claim_results
	reasons  map[claim.ID]gate.Settlement // why
	counts   map[bool]settledCounts       // by whether they are of the shard's epoch
	waited   bool                         // users wait for the template
}

// settledCounts counts claims that a page decided. held counts refused claims whose coupons are kept
// for users who wait; refused counts the others, whose coupons go back to their shard.
type settledCounts struct{ settled, refused, held int64 }

// Write implements [gate.Recorder]. First coupons of users are issued concurrently with other
// writers. All other claims are decided after the template's row is locked. So another writer
// of the same claims waits and then finds them decided.
func (s GateRecorder) Write(ctx context.Context, templateID int64, shard int, groups []gate.Group) ([]gate.Settlement, error) {
	p := newPage(templateID, shard, groups)
	if p.hasEqualIDs() {
		return nil, fmt.Errorf("%w: two of the claims have the same id", gate.ErrUnwritable)
	}
	written, err := s.writeFirsts(ctx, p)
	if err != nil {
		return nil, pg.Translate(err)
	}
	verdicts := issuedVerdicts(written)
	if rest := p.without(written); len(rest.requests) > 0 {
		others, err := s.write(ctx, rest, "")
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, others...)
	}
	return verdicts, nil
}

// Refuse implements [gate.Recorder].
func (s GateRecorder) Refuse(ctx context.Context, templateID int64, shard int, groups []gate.Group, reason string) ([]gate.Settlement, error) {
	p := newPage(templateID, shard, groups)
	for i, r := range p.requests {
		// The key may be the text that the database refuses.
		p.requests[i].Key, p.requests[i].Origin = pg.Storable(r.Key), claim.Origin(pg.Storable(string(r.Origin)))
	}
	return s.write(ctx, p, reason)
}

func newPage(templateID int64, shard int, groups []gate.Group) *page {
	p := &page{template: templateID, shard: shard, earlier: map[claim.ID]gate.Settlement{}, reasons: map[claim.ID]gate.Settlement{},
		counts: map[bool]settledCounts{}}
	for _, g := range groups {
		for _, c := range g.Claims {
			p.requests = append(p.requests, claim.Request{ID: c.ID, TemplateID: templateID, UserID: c.UserID, Origin: c.Origin, Key: c.Key, AcceptedAt: g.At})
			p.epochs = append(p.epochs, g.Epoch)
		}
	}
	return p
}

// hasEqualIDs reports whether claims of two users were given the same random id. Such claims
// have to be decided in separate transactions.
func (p *page) hasEqualIDs() bool {
	users := make(map[claim.ID]user.ID, len(p.requests))
	for _, r := range p.requests {
		if other, seen := users[r.ID]; seen && other != r.UserID {
			return true
		}
		users[r.ID] = r.UserID
	}
	return false
}

func (s GateRecorder) write(ctx context.Context, p *page, refuse string) (verdicts []gate.Settlement, err error) {
	for range keyConflicts {
		fresh := *p
		fresh.earlier, fresh.reasons = map[claim.ID]gate.Settlement{}, map[claim.ID]gate.Settlement{}
		fresh.counts = map[bool]settledCounts{}
		if verdicts, err = s.writeOnce(ctx, &fresh, refuse); !pg.Violates(err, "coupons_origin") {
			break
		}
	}
	if pg.RefusedData(err) {
		return nil, fmt.Errorf("%w (%w)", gate.ErrUnwritable, err)
	}
	return verdicts, pg.Translate(err)
}

func (s GateRecorder) writeOnce(ctx context.Context, p *page, refuse string) ([]gate.Settlement, error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release() // closes a connection whose transaction is not over
	decider, err := lockAndRead(ctx, conn.Conn(), p.requests)
	if err == nil {
		err = p.load(ctx, conn.Conn(), decider.Templates[p.template].Waits())
	}
	if err != nil {
		return nil, errors.Join(err, rollback(conn.Conn()))
	}
	p.decide(decider, refuse)
	if err := killpoint.Around("gate.write", func() error { return p.store(ctx, conn.Conn(), decider) }); err != nil {
		return nil, errors.Join(err, rollback(conn.Conn()))
	}
	for i := range p.results {
		if v := &p.results[i]; v.Issued {
			v.CouponID = decider.KnownID[v.ID].CouponID
		}
	}
	return p.results, nil
}

// readShardEpoch returns the epoch of shard $2 of the gate of template $1.
const readShardEpoch = `select epoch from gate_shards where template_id = $1 and shard = $2`

// load reads, after the template is locked, the shard's epoch and the results of claims that
// were decided before without issuing a coupon. If the template has a waitlist, load locks its
// counters and reads whether users wait.
func (p *page) load(ctx context.Context, conn *pgx.Conn, waits bool) error {
	ids := make([]int64, len(p.requests))
	for i, r := range p.requests {
		ids[i] = int64(r.ID)
	}
	b := &pgx.Batch{}
	p.queueEpoch(b)
	b.Queue(`select claim_id, reason, coalesce(coupon_id, 0), held from claim_results where claim_id = any($1)`, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var v gate.Settlement
			if err := rows.Scan(&v.ID, &v.Reason, &v.CouponID, &v.Held); err != nil {
				return err
			}
			p.earlier[v.ID] = v
		}
		return nil
	})
	if waits {
		b.Queue(pg.LockWaitlist, p.template)
		b.Queue(`select coalesce((select waiting > 0 from waitlists where template_id = $1), false)`, p.template).
			QueryRow(func(row pgx.Row) error { return row.Scan(&p.waited) })
	}
	return conn.SendBatch(ctx, b).Close()
}

func (p *page) queueEpoch(b *pgx.Batch) {
	b.Queue(readShardEpoch, p.template, p.shard).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&p.epoch); err != nil {
				return err
			}
		}
		return nil
	})
}

// decide fills in a verdict for each request, in their order.
func (p *page) decide(decider *claim.Decider, refuse string) {
	p.results = make([]gate.Settlement, len(p.requests))
	for i, r := range p.requests {
		p.results[i] = p.verdict(decider, r, refuse, p.epochs[i] == p.epoch)
	}
}

func (p *page) verdict(decider *claim.Decider, r claim.Request, refuse string, current bool) gate.Settlement {
	if v, done := p.earlier[r.ID]; done {
		return v
	}
	if _, done := decider.KnownID[r.ID]; done {
		return gate.Settlement{ID: r.ID, Issued: true}
	}
	v := gate.Settlement{ID: r.ID, Reason: refuse}
	if refuse == "" {
		v = judged(decider, r)
	}
	n := p.counts[current]
	n.settled++
	if !v.Issued {
		if v.Held = p.waited; v.Held {
			n.held++
		} else {
			n.refused++
		}
		p.refused, p.reasons[r.ID], p.earlier[r.ID] = append(p.refused, r), v, v
	}
	p.counts[current] = n
	return v
}

func judged(decider *claim.Decider, r claim.Request) gate.Settlement {
	verdict := decider.Decide(r)
	switch {
	case r.Origin == claim.ByCode && errors.Is(verdict.Err, claim.ErrIdempotency):
		// Two users sent the same code to different shards, and this request came second.
		return gate.Settlement{ID: r.ID, Reason: redeemcode.ErrUsed.Code}
	case errors.Is(verdict.Err, claim.ErrBudget):
		return gate.Settlement{ID: r.ID, Reason: claim.BudgetUsed}
	case verdict.Err != nil:
		return gate.Settlement{ID: r.ID, Reason: fault.CodeOf(verdict.Err)}
	case verdict.Claim.ID != r.ID && verdict.Claim.CouponID == 0: // the first one is in this very group
		return gate.Settlement{ID: r.ID, Reason: claim.ErrIdempotency.Code}
	case verdict.Claim.ID != r.ID: // a repetition that the shard did not recognise
		return gate.Settlement{ID: r.ID, CouponID: verdict.Claim.CouponID}
	}
	return gate.Settlement{ID: r.ID, Issued: true}
}

// store writes everything and commits.
func (p *page) store(ctx context.Context, conn *pgx.Conn, decider *claim.Decider) error {
	b := &pgx.Batch{}
	if len(decider.Fresh()) > 0 {
		if err := queueIssues(ctx, b, decider); err != nil {
			return err
		}
	}
	if len(p.refused) > 0 {
		p.queueRefused(b)
	}
	if n := p.counts[true]; n.settled > 0 {
		b.Queue(`update gate_shards set settled = settled + $3, refused = refused + $4 where template_id = $1 and shard = $2`,
			p.template, p.shard, n.settled, n.refused)
	}
	if n := p.counts[false]; n.settled > n.refused {
		// Claims of a former epoch: their coupons count as issued before the present epoch,
		// and the shard's allotment is lowered by their number. The shard now holds more than
		// its allotment and is therefore rebuilt.
		b.Queue(`update gates set base = base + $2 where template_id = $1`, p.template, n.settled-n.refused-n.held)
		b.Queue(`update gate_shards set allot = greatest(0, allot - $3) where template_id = $1 and shard = $2`, p.template, p.shard, n.settled-n.refused)
	}
	if n := p.counts[true].held + p.counts[false].held; n > 0 {
		b.Queue(`update templates set held = held + $2 where id = $1`, p.template, n)
		b.Queue(pg.PutAside, p.template, n)
		// For its shard a claim of the present epoch stays taken, as if its coupon were issued and
		// returned to the stock at once.
		b.Queue(`update gates set base = base - $2 where template_id = $1`, p.template, p.counts[true].held)
	}
	b.Queue(`commit`)
	return conn.SendBatch(ctx, b).Close()
}

func (p *page) queueRefused(b *pgx.Batch) {
	n := len(p.refused)
	ids, users, coupons := make([]int64, n), make([]int64, n), make([]int64, n)
	origins, keys, reasons, held := make([]string, n), make([]string, n), make([]string, n), make([]bool, n)
	for i, r := range p.refused {
		ids[i], users[i], origins[i], keys[i] = int64(r.ID), int64(r.UserID), string(r.Origin), r.Key
		reasons[i], coupons[i], held[i] = p.reasons[r.ID].Reason, p.reasons[r.ID].CouponID, p.reasons[r.ID].Held
	}
	b.Queue(`insert into claim_results (claim_id, template_id, user_id, origin, origin_key, reason, coupon_id, held)
		select id, $7, by, origin, key, reason, nullif(coupon, 0), held
		from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $8::bool[]) as a (id, by, origin, key, reason, coupon, held)`,
		ids, users, origins, keys, reasons, coupons, p.template, held)
}

// SetAside implements [gate.Recorder]. The entry is kept as a dead message that has no event:
// staff can read and discard the message, but not resend it.
func (s GateRecorder) SetAside(ctx context.Context, templateID int64, shard int, poison gate.Poison) error {
	topic := fmt.Sprintf("gate.%d.%d", templateID, shard)
	return pg.KeepDeadMessage(ctx, s.DB, staff.DeadMessage{MessageID: topic + " " + poison.Entry, Topic: topic, Handler: s.Handler,
		Reason: poison.Reason, Payload: append([]byte("entry "+poison.Entry+": "), poison.Payload...)})
}
