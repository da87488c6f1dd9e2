package coupons

import (
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
)

// The statements of the fast path, each built of complete common table
// expressions. A statement returns the issued claims and their coupons, as two
// arrays in the same order. Parameters: $1 (template), $2 (user) and $3 (number
// of coupons) are the holders. $4 to $9 are the coupons: template, user, claim,
// key, issue time, end of validity. Holders and coupons are ordered by template
// and user, as in every group. $10 to $12 are the templates, ordered by id, with
// the version that the decisions assume and the number of requests; the stock
// must cover all requests. $13 to $15 are the event's topic, trace and time. If
// $16 is true, the drop must be open, and the event's time must be within a
// second of the database's clock. $17 and $18 belong to the templates of $10: the last
// opening of the requests' doors, and how many coupons may be issued. Shorter arrays and
// nulls mean opens_at and the stock.
const (
	fastIssueSQL          = `with ` + countFirst + `, ` + issueCounted + issuedCoupons
	fastIssueContestedSQL = `with ` + countFirstContested + `, ` + issueCounted + issuedCoupons
	// fastSettleSQL also adds the coupons to the settled coupons of shard $19.
	// The statement fails if a claim was refused before, because a refused claim
	// must stay refused.
	fastSettleSQL = `with ` + countFirstContested + `, ` + issueCounted + `, settled as (
    update gate_shards g set settled = g.settled + s.n from sold s where g.template_id = s.id and g.shard = $19
), unrefused as materialized (
    select expect(not exists (select from given join claim_results r on r.claim_id = given.claim_id))
)` + issuedCoupons + ` cross join unrefused`

	issuedCoupons = `
select g.claims, g.coupons from (select array_agg(claim_id) as claims, array_agg(id) as coupons from given) g cross join checked`
)

// countFirst and countFirstContested store the counts of holders that have no
// count yet, and leave out holders that have one. Another node may give a holder
// its first coupon at the same time. In countFirst such a holder violates the
// primary key of claim_counts, which rolls everything back. countFirstContested
// leaves the holder out, but takes longer for each row.
const (
	countFirst = `counted as (
    insert into claim_counts (template_id, user_id, issued)
    select * from unnest($1::bigint[], $2::bigint[], $3::int[]) as a (template_id, user_id, issued)
    where not exists (select from claim_counts c where c.template_id = a.template_id and c.user_id = a.user_id)
    returning template_id, user_id, issued
)`
	countFirstContested = `counted as (
    insert into claim_counts (template_id, user_id, issued)
    select * from unnest($1::bigint[], $2::bigint[], $3::int[]) as a (template_id, user_id, issued)
    where not exists (select from claim_counts c where c.template_id = a.template_id and c.user_id = a.user_id)
    on conflict do nothing
    returning template_id, user_id, issued
)`
)

// issueCounted issues the coupons of the counted holders. If the terms have
// changed or the stock is too small, the statement fails and everything is rolled
// back.
//
// The set of counted holders is hashed only if a holder was left out. "is true"
// prevents a join, for which the planner would estimate the number of rows badly.
//
// closes_at is checked again after the row lock is held. PostgreSQL re-evaluates
// a WHERE clause after waiting for a lock only if the row was changed meanwhile.
const issueCounted = `counts as materialized (
    select count(*) as holders, coalesce(sum(issued), 0) as issued from counted
), given as (
    insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
    select a.template_id, a.user_id, a.claim_id, '` + string(claim.ByTap) + `', a.key, a.issued_at, a.expires_at
    from unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::timestamptz[], $9::timestamptz[])
        as a (template_id, user_id, claim_id, key, issued_at, expires_at)
    where (select holders from counts) = cardinality($1::bigint[])
        or ((a.template_id, a.user_id) in (select template_id, user_id from counted)) is true
    returning template_id, issued_at, claim_id, id
), steps as materialized ( -- one, unless a gate accepted the claims at different instants
    select template_id, issued_at, count(*) as n from given group by template_id, issued_at
), sold as (
    update templates t set issued = t.issued + g.n
    from unnest($10::bigint[], $11::bigint[], $12::bigint[], $17::timestamptz[], $18::bigint[]) as a (id, version, asked, opens, sellable)
    join (select template_id, sum(n) as n from steps group by template_id order by template_id) g on g.template_id = a.id
    where t.id = a.id and t.version = a.version and t.issued + a.asked <= least(t.stock - t.held, a.sellable)
      and (not $16 or coalesce(a.opens, t.opens_at) <= clock_timestamp() and clock_timestamp() < ` + pg.TemplateEndsAt + `)
    returning t.id, g.n, t.issued, ` + pg.TemplateEndsAt + ` as ends
), announced as (
    insert into outbox (topic, payload, trace)
    select $13, jsonb_build_object('at', $15::text, 'issued',
        jsonb_agg(jsonb_build_object('template_id', id::text, 'issued', n, 'total', issued) order by id)), $14 from sold
    having count(*) > 0
), drawn as (
    insert into claim_seconds as s (template_id, second, issued)
    select template_id, date_trunc('second', issued_at), sum(n) from steps group by 1, 2 order by 1, 2
    on conflict (template_id, second) do update set issued = s.issued + excluded.issued
), checked as materialized (
    select expect((select count(*) from sold) = (select count(distinct template_id) from steps)
        and (select issued from counts) = (select coalesce(sum(n), 0) from steps)
        and (not $16 or coalesce((select min(ends) from sold), 'infinity') > clock_timestamp()
            and $15::timestamptz between clock_timestamp() - interval '1 second' and clock_timestamp() + interval '1 second'))
)`
