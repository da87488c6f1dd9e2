package coupons

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/event"
	"dropbell/domain/template"
)

// lockTemplates serializes the locked groups of these templates. Foreign keys of
// slots only take a key share lock, which does not conflict with this lock.
const lockTemplates = `select ` + termColumns + ` from templates t where id = any($1) order by id for no key update`

const termColumns = `id, version, state, obtain, stock, issued, held, waitlist, per_user_limit, household_limit, opens_at, closes_at, valid_until, valid_hours, ended_at, opening_mode, accept_minutes, door_base, ` + pg.DoorsOf

const loadCounts = `
select c.template_id, c.user_id, c.issued from unnest($1::bigint[], $2::bigint[]) as a (template_id, user_id)
join claim_counts c on c.template_id = a.template_id and c.user_id = a.user_id`

// loadAcceptedCounts is loadCounts without the coupons that staff gave beyond the limit; see
// [claim.Decider].
const loadAcceptedCounts = `
select c.template_id, c.user_id, c.issued - (select count(*) from coupons o where o.user_id = c.user_id and o.template_id = c.template_id
    and o.origin = 'grant' and o.origin_key like '` + claim.OverLimit + `%')::int
from unnest($1::bigint[], $2::bigint[]) as a (template_id, user_id)
join claim_counts c on c.template_id = a.template_id and c.user_id = a.user_id`

const loadKnown = `
select c.origin, c.origin_key, c.claim_id, c.template_id, c.user_id, c.id, c.issued_at
from unnest($1::text[], $2::text[]) as a (origin, key)
join coupons c on c.origin = a.origin and c.origin_key = a.key and c.origin_key <> ''`

const loadKnownIDs = `
select c.origin, c.origin_key, c.claim_id, c.template_id, c.user_id, c.id, c.issued_at
from unnest($1::bigint[], $2::bigint[]) as a (id, user_id) join coupons c on c.user_id = a.user_id and c.claim_id = a.id`

// A readSet is the set of rows that a group reads, each row once.
type readSet struct {
	templates       []int64
	holderTemplates []int64
	holderUsers     []int64
	origins, keys   []string
	// A claim that a gate accepted is found by its id, among the coupons of its
	// user.
	acceptedIDs, acceptedUsers []int64
}

func readSetOf(group []claim.Request) readSet {
	var q readSet
	templates, holders := map[int64]bool{}, make(map[claim.Holder]bool, len(group))
	for _, r := range group {
		if !templates[r.TemplateID] {
			templates[r.TemplateID] = true
			q.templates = append(q.templates, r.TemplateID)
		}
		if h := (claim.Holder{TemplateID: r.TemplateID, UserID: r.UserID}); !holders[h] {
			holders[h] = true
			q.holderTemplates, q.holderUsers = append(q.holderTemplates, h.TemplateID), append(q.holderUsers, int64(h.UserID))
		}
		if r.Key != "" {
			q.origins, q.keys = append(q.origins, string(r.Origin)), append(q.keys, r.Key)
		}
		if !r.AcceptedAt.IsZero() {
			q.acceptedIDs, q.acceptedUsers = append(q.acceptedIDs, int64(r.ID)), append(q.acceptedUsers, int64(r.UserID))
		}
	}
	slices.Sort(q.templates) // which are locked in this order
	return q
}

// lockAndRead begins a transaction, locks the group's templates and reads the
// read set. Each statement sees the data that was committed before the statement
// began. So the reads after the lock see the writes of all earlier groups.
func lockAndRead(ctx context.Context, conn *pgx.Conn, group []claim.Request) (*claim.Decider, error) {
	q := readSetOf(group)
	d := newDecider(q, len(group))
	b := &pgx.Batch{}
	b.Queue(`begin`)
	b.Queue(pg.InGroup, pg.LockTimeout(ctx))
	b.Queue(lockExclusive, q.templates)
	queueReads(b, d, q, lockTemplates)
	queueVoid(b, d, group)
	queueAffordable(b, d, group)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return d, err
	}
	return d, readHouseholds(ctx, conn, d, q)
}

func newDecider(q readSet, group int) *claim.Decider {
	return &claim.Decider{Templates: make(map[int64]template.Template, len(q.templates)), Counts: make(map[claim.Holder]int, group),
		Known: make(map[claim.RepeatKey]*claim.Claim, group), KnownID: make(map[claim.ID]*claim.Claim, len(q.acceptedIDs)), Size: group}
}

// queueReads queues the query for the templates' terms and the queries for the
// other rows of the read set.
func queueReads(b *pgx.Batch, d *claim.Decider, q readSet, terms string) {
	b.Queue(terms, q.templates).Query(func(rows pgx.Rows) error { return readTerms(d, rows) })
	// The clock is read after the lock, if there is one: waiting for the lock may
	// have taken long.
	b.Queue(`select clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&d.At) })
	counts := loadCounts
	if len(q.acceptedIDs) > 0 { // then a gate accepted all requests of the group
		counts = loadAcceptedCounts
	}
	b.Queue(counts, q.holderTemplates, q.holderUsers).Query(func(rows pgx.Rows) error { return readCounts(d, rows) })
	if len(q.keys) > 0 {
		b.Queue(loadKnown, q.origins, q.keys).Query(func(rows pgx.Rows) error { return readKnown(d, rows) })
	}
	if len(q.acceptedIDs) > 0 {
		b.Queue(loadKnownIDs, q.acceptedIDs, q.acceptedUsers).Query(func(rows pgx.Rows) error { return readKnown(d, rows) })
	}
}

func readTerms(d *claim.Decider, rows pgx.Rows) error {
	for rows.Next() {
		var t template.Template
		err := rows.Scan(&t.ID, &t.Version, &t.Stored, &t.Obtain, &t.Stock, &t.Issued, &t.Held, &t.Waitlist, &t.PerUserLimit, &t.HouseholdLimit, &t.OpensAt, &t.ClosesAt,
			&t.ValidUntil, &t.ValidHours, &t.EndedAt, &t.OpeningMode, &t.AcceptMinutes, &t.DoorBase, &t.Doors)
		if err != nil {
			return err
		}
		d.Templates[t.ID] = t
	}
	return nil
}

func readCounts(d *claim.Decider, rows pgx.Rows) error {
	for rows.Next() {
		var h claim.Holder
		var n int
		if err := rows.Scan(&h.TemplateID, &h.UserID, &n); err != nil {
			return err
		}
		d.Counts[h] = n
	}
	return nil
}

func readKnown(d *claim.Decider, rows pgx.Rows) error {
	for rows.Next() {
		k, c, err := scanIssued(rows)
		if err != nil {
			return err
		}
		d.KnownID[c.ID] = &c
		if k.Key != "" {
			d.Known[k] = &c
		}
	}
	return nil
}

// scanIssued reads the columns of [loadKnown].
func scanIssued(row pgx.Row) (claim.RepeatKey, claim.Claim, error) {
	var k claim.RepeatKey
	c := claim.Claim{State: claim.Issued}
	err := row.Scan(&k.Origin, &k.Key, &c.ID, &c.TemplateID, &c.UserID, &c.CouponID, &c.At)
	return k, c, err
}

const insertCoupons = `
insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[])
returning claim_id, id`

const addCounts = `
insert into claim_counts as c (template_id, user_id, issued, household) select * from unnest($1::bigint[], $2::bigint[], $3::int[], $4::bigint[])
on conflict (template_id, user_id) do update set issued = c.issued + excluded.issued`

const addIssued = `update templates t set issued = t.issued + a.n from unnest($1::bigint[], $2::bigint[]) as a (id, n) where t.id = a.id`

const addSecond = `
insert into claim_seconds as s (template_id, second, issued, waited)
select * from unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::bigint[])
on conflict (template_id, second) do update set issued = s.issued + excluded.issued, waited = s.waited + excluded.waited`

const announceIssued = `insert into outbox (topic, payload, trace) values ($1, $2, $3)`

// storeDecided writes the decisions, commits, and fills the coupons' ids into
// their claims.
func storeDecided(ctx context.Context, conn *pgx.Conn, d *claim.Decider) error {
	b := &pgx.Batch{}
	if len(d.Fresh()) > 0 {
		if err := queueIssues(ctx, b, d); err != nil {
			return err
		}
	}
	b.Queue(`commit`)
	return conn.SendBatch(ctx, b).Close()
}

func queueIssues(ctx context.Context, b *pgx.Batch, d *claim.Decider) error {
	templates, sums := issuedSums(d)
	e := event.Coupons{At: d.At.UTC()}
	for i, id := range templates {
		e.Issued = append(e.Issued, event.Issue{TemplateID: id, Issued: sums[i], Total: d.Templates[id].Issued + sums[i]})
	}
	payload, err := json.Marshal(e)
	if err != nil {
		return err
	}
	queueCoupons(b, d)
	b.Queue(addCounts, append(countColumns(d.Fresh()), householdColumn(d))...)
	b.Queue(addIssued, templates, sums)
	queueUses(b, d.Fresh())
	queueGiven(b, d)
	b.Queue(addSecond, secondColumns(d.Fresh())...)
	b.Queue(announceIssued, event.CouponsIssued, payload, pg.TraceOf(ctx))
	return nil
}

// issuedSums returns the templates by ascending id, and for each the number of
// coupons issued.
func issuedSums(d *claim.Decider) (templates, sums []int64) {
	templates = slices.Sorted(maps.Keys(d.Issued()))
	sums = make([]int64, len(templates))
	for i, id := range templates {
		sums[i] = d.Issued()[id]
	}
	return templates, sums
}

func queueCoupons(b *pgx.Batch, d *claim.Decider) {
	b.Queue(insertCoupons, couponColumns(d.Fresh())...).Query(func(rows pgx.Rows) error {
		claims := make(map[claim.ID]*claim.Claim, len(d.Fresh()))
		for _, n := range d.Fresh() {
			claims[n.Claim.ID] = n.Claim
		}
		for rows.Next() {
			var id claim.ID
			var coupon int64
			if err := rows.Scan(&id, &coupon); err != nil {
				return err
			}
			claims[id].CouponID = coupon
		}
		return nil
	})
}
