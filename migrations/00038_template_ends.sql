-- A drop ends when its coupons would have expired, if that comes before its
-- closing. The sweep that closes drops finds both ends by one index; a program
-- of the version before only scans the few that are open.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists templates_ends;
create index concurrently templates_ends on templates (least(closes_at, valid_until)) where state in ('published', 'paused');
drop index concurrently if exists templates_ending;
