-- +goose Up

alter table coupons drop constraint coupons_state_check;
alter table coupons add constraint coupons_state_check
    check (state in ('unused', 'locked', 'used', 'expired', 'refunded', 'revoked', 'suspended')) not valid;
alter table coupon_operations drop constraint coupon_operations_step_check;
alter table coupon_operations add constraint coupon_operations_step_check
    check (step in ('lock', 'confirm', 'release', 'refund', 'timeout', 'expire', 'revoke', 'restore', 'suspend', 'reinstate')) not valid;
alter table coupon_tallies add column suspended bigint not null default 0;

-- Signs of the claims of protected drops, for 30 days. Networks and agents are keyed hashes; 0 =
-- not known. A crash of a web process loses the signs of its last quarter of a second.
create table claim_signs (
    template_id bigint not null,
    user_id     bigint not null,
    claim_id    bigint not null,
    at          timestamptz not null, -- when the request arrived, by the clock of the web process
    network     bigint not null, -- of the /24 or /48 of the address
    agent       bigint not null, -- of the header User-Agent
    program     boolean not null, -- the header names no browser and no app, but a program
    way         smallint not null, -- how the pass was earned; see the package pass
    passed_at   timestamptz not null, -- when the pass was earned
    opened_ms   bigint not null, -- how long before passed_at the puzzle was handed out; 0 = not known
    primary key (template_id, user_id, claim_id)
) with (autovacuum_vacuum_insert_scale_factor = 0.05);
create index claim_signs_at on claim_signs (at);

-- Refused claims of protected drops, by the code of the refusal.
create table claim_refusals (
    template_id bigint not null,
    code        text not null,
    claims      bigint not null check (claims > 0),
    primary key (template_id, code)
) with (fillfactor = 50);

-- The review of a protected drop: a row when it is over or sold out.
create table review_runs (
    template_id bigint primary key references templates (id),
    shop_number bigint not null,
    claims      bigint not null, -- that were judged
    found       bigint not null, -- of these in groups
    left_out    bigint not null, -- claims beyond the limit, which were not judged
    ran_at      timestamptz not null default now(),
    wanted_at   timestamptz -- when staff asked for another run; null = no run is wanted
);
create index review_runs_wanted on review_runs (wanted_at) where wanted_at is not null;
create index review_runs_ran on review_runs (ran_at desc, template_id desc);

-- Groups of claims that a review has found.
create table reviews (
    id          bigint generated always as identity primary key,
    template_id bigint not null references templates (id),
    shop_number bigint not null,
    rules       text[] not null check (cardinality(rules) between 1 and 10),
    facts       jsonb not null, -- the figures of the sentence
    coupons     bigint not null,
    state       text not null default 'open' check (state in ('open', 'proposed', 'suspending', 'suspended', 'returning', 'returned', 'restoring', 'restored', 'let_be')),
    -- What a second member is asked to approve: suspend or return.
    proposed    text not null default '' check (proposed in ('', 'suspend', 'return')),
    suspended   bigint not null default 0, -- coupons by what happened to them
    returned    bigint not null default 0,
    restored    bigint not null default 0,
    kept        bigint not null default 0, -- used, locked or expired before
    appeals     bigint not null default 0, -- that wait for an answer
    reason      text not null default '', -- of the last decision
    actor       text not null default '', -- who made it, as in audit
    proposer    text not null default '', -- who proposed, as in audit
    suspended_at timestamptz,
    changed_at  timestamptz not null default now(),
    created_at  timestamptz not null default now()
);
create index reviews_template on reviews (template_id, id);
create index reviews_working on reviews (id) where state in ('suspending', 'returning', 'restoring');
create index reviews_asking on reviews (changed_at desc, id desc) where state in ('open', 'proposed', 'suspended') or appeals > 0;

create table review_coupons (
    review_id   bigint not null references reviews (id) on delete cascade,
    coupon_id   bigint not null,
    user_id     bigint not null,
    state       text not null default 'found' check (state in ('found', 'suspended', 'kept', 'returned', 'restored')),
    appeal      text not null default '', -- in the owner's words
    appealed_at timestamptz,
    answer      text not null default '' check (answer in ('', 'restored', 'upheld')),
    answered_at timestamptz,
    answered_by text not null default '',
    primary key (review_id, coupon_id)
);
create unique index review_coupons_coupon on review_coupons (coupon_id);
create index review_coupons_user on review_coupons (user_id);
create index review_coupons_appeals on review_coupons (review_id, appealed_at) where appealed_at is not null and answer = '';

-- +goose StatementBegin
do $$
begin
    set local lock_timeout = '500ms';
    perform name_cell(array['reviews']);
end
$$;
-- +goose StatementEnd
