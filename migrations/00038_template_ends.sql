-- A drop ends when its coupons would have expired, if that comes before its
-- closing. Whoever closes drops finds the ones by this index and the others by
-- templates_ending.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists templates_expiring;
create index concurrently templates_expiring on templates (valid_until) where state in ('published', 'paused') and valid_until is not null;
