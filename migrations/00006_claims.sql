-- Coupons that users own, and the counters that decide who gets one. None of
-- these tables has a foreign key: they are the hot path of the rush, and
-- grow with users.

-- +goose Up

-- The hottest row of all is that of a template in its rush: room for in-page
-- (HOT) updates of the issued counter.
alter table templates set (fillfactor = 50);

-- templates.issued is the number of rows here with the template: a coupon,
-- once issued, is counted for ever, whatever becomes of it.
create table coupons (
    id           bigint generated always as identity primary key,
    template_id  bigint not null,
    user_id      bigint not null check (user_id > 0),
    claim_id     bigint not null unique check (claim_id > 0),
    origin       text collate "C" not null check (origin in ('claim', 'code', 'grant', 'campaign')),
    -- At most one coupon ever per (origin, origin_key); '' = not repeatable.
    origin_key   text collate "C" not null default '', -- compared byte by byte
    state        text not null default 'unused' check (state in ('unused', 'locked', 'used', 'expired', 'refunded', 'revoked')),
    issued_at    timestamptz not null,
    expires_at   timestamptz not null,
    order_id     text not null default '',
    locked_at    timestamptz,
    locked_until timestamptz,
    discount     bigint not null default 0 check (discount >= 0), -- minor units of the template's currency
    used_at      timestamptz,
    updated_at   timestamptz not null default now()
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
create unique index coupons_origin on coupons (origin, origin_key) where origin_key <> '';
create index coupons_user on coupons (user_id, id desc);
create index coupons_template on coupons (template_id, id);
create index coupons_expiring on coupons (expires_at) where state = 'unused';
create index coupons_locked on coupons (locked_until) where state = 'locked';

-- How many coupons of a template one user was given: what the limit per user
-- is judged by. Only whoever has locked the template's row changes it.
create table claim_counts (
    template_id bigint not null,
    user_id     bigint not null,
    issued      int not null check (issued > 0),
    primary key (template_id, user_id)
) with (fillfactor = 85, autovacuum_vacuum_insert_scale_factor = 0.05);

-- The sell-out curve: coupons issued per second of the database's clock,
-- written by the group that issued them.
create table claim_seconds (
    template_id bigint not null,
    second      timestamptz not null,
    issued      bigint not null check (issued > 0),
    primary key (template_id, second)
) with (fillfactor = 50);
