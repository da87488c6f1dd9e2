-- What staff see and do while a drop goes out: how late messages are, what
-- was forecast, why a channel is paused and by whom, test messages.

-- +goose Up

-- Sent messages by how long after the due instant they were recorded: element
-- i counts those in the i-th span of delivery.LatenessBounds, 0 being below
-- the first. Written by the checkpoint that records them. Null in rows of
-- programs that are older than this column.
alter table batches add column late int[];

-- What a slot's channel leaves behind when its batches are gone.
alter table slot_results
    add column late     jsonb,            -- the batches' sums: {"7": 1200, …}
    add column done_at  timestamptz,      -- when the last batch was done
    add column expected double precision; -- messages per second as forecast when the slot fired

alter table channel_settings
    add column paused_at timestamptz,
    add column paused_by text not null default '';

-- Single messages that staff send to see whether a channel works. A worker
-- sends each at most once.
create table channel_tests (
    id          bigint generated always as identity primary key,
    channel     smallint not null check (channel between 0 and 4),
    recipient   text not null, -- an address or a user's number; emptied with the result
    by_user     boolean not null, -- the recipient is a user's number
    template_id bigint not null default 0, -- whose name and opening it tells; 0 = none
    locale      text not null default '',
    -- Whole seconds apart from others of the channel: it is part of the key
    -- by which providers recognise a repetition.
    due_at      timestamptz not null,
    state       text not null default 'waiting' check (state in ('waiting', 'running', 'done')),
    lease_until timestamptz,
    token       uuid,
    -- What the provider answered; 'unknown' when the worker died in the call.
    result      text not null default '' check (result in ('', 'delivered', 'transient', 'throttled', 'permanent', 'unknown')),
    detail      text not null default '',
    took_ms     bigint not null default 0,
    created_by  text not null,
    created_at  timestamptz not null default now(),
    finished_at timestamptz
);
create index channel_tests_channel on channel_tests (channel, id desc);
create index channel_tests_open on channel_tests (id) where state <> 'done';

-- How a channel's provider did lately, as each worker counted it.
create table provider_calls (
    channel   smallint not null check (channel between 0 and 4),
    worker    text not null,
    at        timestamptz not null, -- end of the ten seconds counted
    calls     bigint not null,
    messages  bigint not null,
    failed    bigint not null, -- messages that got no good answer
    total_ms  bigint not null,
    slowest_ms bigint not null,
    error     text not null default '', -- the provider's last words, without addresses
    primary key (channel, worker, at)
);
create index provider_calls_at on provider_calls (at);
