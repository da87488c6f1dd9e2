-- +goose NO TRANSACTION
-- +goose Up
-- Coupons under review, which are few: their sweep at their expiry, and the count of a drop. An
-- interrupted build leaves an index that is not valid.
drop index concurrently if exists coupons_suspended;
create index concurrently coupons_suspended on coupons (expires_at, template_id) where state = 'suspended';
