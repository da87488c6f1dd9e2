-- +goose Up
-- Orders that use several coupons. An earlier program knows none of them; its steps of single coupons
-- go on as before.
create table coupon_orders (
    order_id    text collate "C" primary key,
    user_id     bigint check (user_id > 0), -- null = erased, or released before any lock
    shop_number bigint not null default 0,  -- 0 = released before any lock
    currency    text not null default '',
    state       text not null check (state in ('locked', 'confirmed', 'released', 'refunded')),
    revision    bigint not null default 0 check (revision >= 0),
    discount    bigint not null default 0,
    -- The lines, each in its place in all five arrays; amounts before discounts, in minor units.
    lines       text[] not null default '{}',
    products    text[] not null default '{}',
    quantities  bigint[] not null default '{}',
    amounts     bigint[] not null default '{}',
    returned    bigint[] not null default '{}', -- of the quantities
    paid_back   bigint not null default 0,
    version     bigint not null default 1, -- grows with every step; a step is stored only if no other was faster
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now()
) with (fillfactor = 85);
create index coupon_orders_user on coupon_orders (user_id, created_at desc) where user_id is not null;
create index coupon_orders_created on coupon_orders (created_at); -- for their removal

-- What each coupon takes off each line, by revision of the order's cart; lines with nothing have no row.
create table coupon_use_lines (
    order_id  text collate "C" not null references coupon_orders on delete cascade,
    revision  bigint not null,
    coupon_id bigint not null,
    line      text not null,
    amount    bigint not null check (amount > 0),
    primary key (order_id, revision, coupon_id, line)
);

create table coupon_order_refunds (
    order_id   text collate "C" not null references coupon_orders on delete cascade,
    refund_id  text collate "C" not null,
    pay_back   bigint not null check (pay_back >= 0),
    clawback   bigint not null check (clawback >= 0),
    lines      text[] not null,
    quantities bigint[] not null,
    coupons    bigint[] not null, -- that came back
    at         timestamptz not null default clock_timestamp(),
    primary key (order_id, refund_id)
);
