-- +goose Up

-- accept_minutes is how long a coupon of a waitlist with offers is kept for the user to whom it was
-- offered. use_within_hours is within how many hours a coupon must be used; an unused coupon then
-- returns to the stock; 0 = no such limit. refund_to is who has a coupon after its order was
-- refunded: its user, or the stock.
alter table templates
    add column accept_minutes   int not null default 0 check (accept_minutes between 0 and 1440),
    add column use_within_hours int not null default 0 check (use_within_hours between 0 and 8760),
    add column refund_to        text collate "C" not null default 'user' check (refund_to in ('user', 'stock'));
create index templates_use_within on templates (id) where use_within_hours > 0;

-- offered counts the users to whom a coupon is offered now; they are among waiting, and their
-- coupons among those that are kept. told_to is up to which user the waiting users were told that
-- the first of them get coupons, in the last hour of the drop; 0 = that hour has not begun.
alter table waitlists
    add column offered bigint not null default 0 check (offered >= 0),
    add column told_to bigint not null default 0;
create index waitlists_offered on waitlists (template_id) where offered > 0;

-- door is the place of the user's door, 0 = the drop has none; its limit holds for the user.
alter table waiters
    add column door        smallint not null default 0,
    add column lapses      smallint not null default 0, -- offers that were not accepted
    add column offered_at  timestamptz, -- of the last offer
    add column offer_until timestamptz,
    add column lapsed_at   timestamptz; -- of the last offer that was not accepted

-- A draw whose entries that did not win join the waitlist: up to which user they have joined.
alter table draws add column waits_to bigint not null default 0;

-- Coupons that are to return to the stock at due_at: unused coupons of drops with
-- use_within_hours, and coupons whose orders were refunded.
create table coupon_returns (
    coupon_id   bigint primary key,
    template_id bigint not null,
    due_at      timestamptz not null,
    refunded    boolean not null default false
);
create index coupon_returns_due on coupon_returns (due_at);

alter table message_versions drop constraint message_versions_kind_check;
alter table message_versions add constraint message_versions_kind_check
    check (kind in ('reminder', 'correction', 'cancelled', 'notice', 'waitlist', 'offer', 'names', 'settings', 'picture')) not valid;

-- A message about the drop to users to whom its waitlist offers a coupon.
alter table announcements drop constraint announcements_kind_check;
alter table announcements add constraint announcements_kind_check check (kind in ('correction', 'cancelled', 'waitlist', 'offer')) not valid;
