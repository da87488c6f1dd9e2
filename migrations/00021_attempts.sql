-- Attempts at a request with an idempotency key take turns by number.

-- +goose Up

-- Raised by whoever takes the key over, so that an attempt that was thought
-- dead can neither end nor prolong the one after it. Programs of before this
-- step leave it alone: their attempts last a minute and cannot be overtaken.
alter table idempotency_keys add column attempt bigint not null default 0;
