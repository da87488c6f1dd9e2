-- Events that the relay has published stay until every handler is known to have
-- acknowledged them, so that they are published again after Redis forgot some.
-- The previous version relays without this table; its events of the minutes of the
-- upgrade are forgotten with Redis, as before.

-- +goose Up

-- Two tables in turn: new rows go into the one that event_relay.turn names. Once every
-- row of the other one is handled, it is truncated, and its turn has come.
create table relayed_events (
    turn     smallint not null,
    -- In the order of relays: drawn while the relay holds its advisory lock.
    seq      bigint generated always as identity,
    event_id uuid not null,
    topic    text not null,
    payload  jsonb not null,
    trace    text not null default ''
) partition by list (turn);
create table relayed_events_0 partition of relayed_events for values in (0) with (autovacuum_vacuum_insert_threshold = -1);
create table relayed_events_1 partition of relayed_events for values in (1) with (autovacuum_vacuum_insert_threshold = -1);
create index relayed_events_seq on relayed_events (seq);

-- How far relayed events have got.
create table event_relay (
    only_row  boolean primary key default true check (only_row),
    -- Every handler has acknowledged the events up to this seq.
    settled   bigint not null default 0,
    -- The number that each stream's mark in Redis has; it grows.
    mark      bigint not null default 1,
    turn      smallint not null default 0,
    -- The first seq that is kept, and the first in the table whose turn it is.
    kept_from bigint not null default 1,
    turn_from bigint not null default 1,
    turned_at timestamptz not null default now(),
    -- The history of the database that the events belong to: its system identifier and
    -- its timeline; '' = not looked at yet. A restore or a failover makes another one.
    history   text not null default ''
);
insert into event_relay default values;
