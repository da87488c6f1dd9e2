-- Coupons that expire at one instant, such as all of a drop at midnight, are
-- written down in the order of their ids, so that the sweep goes on behind the
-- last one instead of passing the entries of all that it has dealt with. The new
-- index serves the statements of the previous version as well.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists coupons_due;
create index concurrently coupons_due on coupons (expires_at, id) where state = 'unused';
drop index concurrently if exists coupons_expiring;
