-- +goose Up
-- An idempotency key that is stored in the transaction of its change has no stored
-- text of the answer, but the facts that the answer follows from: known are those that
-- the caller read before the change, found are the results of the statement. Such a key
-- has status null and locked_until infinity, so that an older program answers
-- its repetition "in progress" and leaves it alone.
alter table idempotency_keys add column known bytea, add column found bigint[];
