-- The claim gate in Redis as the database knows it: into how many shelves a
-- stock is divided, what each was given, how many of its claims are decided,
-- and what became of claims that were accepted and then not issued.

-- +goose Up

-- One row per template whose claims the gate decides, from publication on.
create table gates (
    template_id bigint primary key references templates (id),
    shards      int not null check (shards between 1 and 64), -- fixed: it decides which shelf a user buys at
    -- Counts how often the gate was built. Whatever touches a shelf names it,
    -- so that a process that was thought dead can no longer do so.
    epoch       bigint not null check (epoch > 0),
    state       text not null check (state in ('building', 'standing', 'retired')),
    base        bigint not null default 0 check (base >= 0), -- issued when the epoch began, or outside of it since
    reason      text not null,
    lease_until timestamptz not null, -- of whoever is building
    built_at    timestamptz,
    created_at  timestamptz not null default now()
);
create index gates_unretired on gates (template_id) where state <> 'retired';

-- Changed once per group written, only by whoever has locked the template's row.
create table gate_shelves (
    template_id bigint not null,
    shard       int not null,
    allot       bigint not null check (allot >= 0),
    settled     bigint not null default 0, -- accepted claims of this epoch that are decided for good
    refused     bigint not null default 0, -- of these, not issued
    primary key (template_id, shard)
) with (fillfactor = 50);

-- Accepted claims that led to no coupon of their own: refused for a reason, or
-- the repetition of an earlier claim, whose coupon they name. Those that did
-- are rows of coupons.
create table claim_results (
    claim_id    bigint primary key check (claim_id > 0),
    template_id bigint not null,
    user_id     bigint not null,
    origin      text not null,
    origin_key  text not null,
    reason      text not null default '',
    coupon_id   bigint,
    at          timestamptz not null default now()
);
create index claim_results_template on claim_results (template_id, claim_id);
create index claim_results_key on claim_results (origin, origin_key) where origin_key <> '';
