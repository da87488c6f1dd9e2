-- What a provider has taken of messages that are handed over one by one, recorded
-- one by one, until the batch's checkpoint has it and the batch is done. A worker
-- that takes a batch over reads here what the former one no longer recorded. There
-- is no foreign key: checking it would lock the batch's row for every message.
--
-- Programs from before neither write nor read it: a batch that they take over
-- repeats what it would have repeated before.

-- +goose Up
create table accepted_messages (
    batch_id bigint not null,
    users    bigint[] not null,
    at       timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0.5);
create index accepted_messages_batch on accepted_messages (batch_id);

-- +goose Down
drop table accepted_messages;
