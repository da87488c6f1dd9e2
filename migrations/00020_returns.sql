-- Coupons that staff take away and put back on the shelf, tallies of what
-- users did, and the lists of users who are given coupons, by template.

-- +goose NO TRANSACTION
-- +goose Up

-- From now on templates.issued is the number of coupons less those that were
-- returned to stock; returned counts these, so that nothing is forgotten.
alter table coupons add column if not exists returned boolean not null default false;
alter table templates add column if not exists returned bigint not null default 0 check (returned >= 0);
-- The proof counts what was returned by itself.
drop index concurrently if exists coupons_returned;
create index concurrently coupons_returned on coupons (template_id) where returned;

-- base is what an epoch began with or what was issued outside of it since,
-- less what was returned to stock: that may be more than it began with.
alter table gates drop constraint if exists gates_base_check;

-- Steps, where the other columns are states: locks that ended without a use,
-- and uses that were refunded.
alter table coupon_tallies add column if not exists released bigint not null default 0;
alter table coupon_tallies add column if not exists refunded bigint not null default 0;

drop index concurrently if exists jobs_grants;
create index concurrently jobs_grants on jobs ((params ->> 'template_id'), id) where kind = 'coupons.grant';
drop index concurrently if exists jobs_grants_all;
create index concurrently jobs_grants_all on jobs (id) where kind = 'coupons.grant';
