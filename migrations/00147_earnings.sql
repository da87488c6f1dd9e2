-- +goose Up
-- The sums of the squares and cubes of each user's orders and revenue: the interval of the
-- difference to the held-out users is computed from them. Sums of money stay exact beside them.
alter table campaign_results
    add column order_squares   double precision not null default 0,
    add column order_cubes     double precision not null default 0,
    add column revenue_squares double precision not null default 0,
    add column revenue_cubes   double precision not null default 0;

-- Drops that have ended are found by the time of their end, for their closing figures.
create index templates_ended on templates (ended_at) where state = 'closed';

-- A budget of a campaign limits what the coupons that it gives may take off. Given is their number,
-- counted in the transaction that gives them, under the lock of the template's row.
alter table budgets add column given bigint not null default 0;
alter table budgets drop constraint budgets_scope_check;
alter table budgets add constraint budgets_scope_check check (scope in ('drop', 'shop', 'campaign'));
