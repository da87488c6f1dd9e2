-- +goose Up
-- An idempotency key that is stored in the transaction of its change has no
-- stored text of the answer, but what the answer follows from: known is what the
-- caller knew before the change, found is what the statement decided. Such a key
-- has status null and locked_until infinity, so that an older program answers
-- its repetition "in progress" and leaves it alone.
alter table idempotency_keys add column known bytea, add column found bigint[];
