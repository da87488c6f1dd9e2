-- +goose Up

-- A shard that was lost is built anew alone, so each shard of a gate has an epoch of
-- its own. The programs of the version before read neither column.
-- epoch: that of the shard; 0 = that of its gate, as those programs store it.
-- lease_until: of the process that builds this shard alone; null = none does.
alter table gate_shards
    add column epoch bigint not null default 0,
    add column lease_until timestamptz;
