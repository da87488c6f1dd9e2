-- Which job revoked a coupon, so that a list that is taken back twice counts
-- each coupon once.

-- +goose Up
alter table coupon_operations add column if not exists job_id bigint; -- null = no job
