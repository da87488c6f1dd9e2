-- +goose Up

-- Orders that used coupons of a template, by the hour (UTC) of the payment or of the
-- refund. Kept by the handler of coupon-tallies, compared with coupon_operations by
-- the recount. Amounts are minor units of the template's currency.
create table sale_hours (
    template_id bigint not null,
    hour        timestamptz not null,
    refund      boolean not null, -- false = orders that were paid, true = orders that were refunded
    -- An order that used several coupons of the template is counted with the coupon
    -- that was confirmed first.
    orders      bigint not null default 0,
    ordered     bigint not null default 0, -- before discounts
    discount    bigint not null default 0, -- of all its coupons of the template
    -- The part of orders and ordered that a coupon of another template of the shop
    -- counted before, in the same currency. The shop's sums leave it out.
    shared_orders  bigint not null default 0,
    shared_ordered bigint not null default 0,
    primary key (template_id, hour, refund)
) with (fillfactor = 50);

-- Up to when steps were removed from coupon_operations after their retention: hours
-- before cannot be counted again.
create table removed_steps (
    only_row boolean primary key default true check (only_row),
    until    timestamptz not null
);

-- Orders that shops report, with or without coupons. An order is counted as one
-- without a coupon unless coupon_operations has a confirmation of it.
create table orders (
    shop_number bigint not null references shops (number),
    order_id    text collate "C" not null,
    user_id     bigint check (user_id > 0), -- null = unknown, or erased
    currency    text not null,
    amount      bigint not null check (amount > 0), -- minor units
    refunded    bigint not null default 0 check (refunded between 0 and amount),
    ordered_at  timestamptz not null,
    reported_at timestamptz not null default clock_timestamp(),
    primary key (shop_number, order_id)
);
create index orders_time on orders (shop_number, ordered_at);
create index orders_age on orders (ordered_at); -- for their removal
create index orders_user on orders (user_id) where user_id is not null;

alter table figure_recounts drop constraint figure_recounts_figure_check;
alter table figure_recounts add constraint figure_recounts_figure_check check (figure in ('bookings', 'tallies', 'sales'));

-- What text messages about the drop cost by the price list, in millionths of a unit of
-- its currency.
alter table sms_spent_drops add column micros bigint not null default 0;

-- The orders in which users of the group used coupons of the campaign's template in the
-- window, each order once: their number, their amount before discounts, and what coupons
-- took off, in minor units of the currency. Refunded orders do not count.
alter table campaign_results
    add column orders   bigint not null default 0,
    add column ordered  bigint not null default 0,
    add column discount bigint not null default 0,
    add column currency text not null default '';

-- How much the coupons of a drop, or of a shop's drops in one currency, may take off.
-- The greatest discount of every coupon counts. The committed amount follows from templates,
-- so no counter can differ from it: the stock of drops that may still give coupons away,
-- and the issued coupons of the other drops. Changes that commit more are serialized by an
-- advisory lock.
create table budgets (
    scope      text not null check (scope in ('drop', 'shop')),
    subject    bigint not null, -- templates.id or shops.number
    currency   text not null,
    amount     bigint not null check (amount > 0), -- minor units
    since      timestamptz not null default clock_timestamp(), -- drops that were closed before do not count
    -- When endpoints of the shop were told that 80 % and all of it is used.
    warned_at  timestamptz,
    used_up_at timestamptz,
    primary key (scope, subject, currency)
);
