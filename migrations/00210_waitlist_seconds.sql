-- +goose Up

-- How many of the coupons of a second were given by the waitlist: the curve of a drop shows how its other coupons sold.
alter table claim_seconds add column waited bigint not null default 0;
