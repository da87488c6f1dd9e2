-- Events for the servers of shops: endpoints that are registered, the events that
-- they are sent, and the outcome of each.

-- +goose Up

-- Numbers events of drops: drawn by the transaction of a change after it has
-- locked the changed row, so that of two events of one subject the later change
-- has the greater number.
create sequence hook_sequence;

create table hook_endpoints (
    id              bigint generated always as identity primary key,
    shop_number     bigint not null references shops (number),
    url             text not null check (char_length(url) between 1 and 2000),
    description     text not null default '' check (char_length(description) <= 200),
    types           text[] not null default '{}', -- of events; none = all
    secret          bytea not null, -- sealed, see domain/seal
    -- The secret before the last rotation signs as well until then.
    old_secret      bytea,
    old_until       timestamptz,
    enabled         boolean not null default true,
    disabled_reason text not null default '' check (disabled_reason in ('', 'staff', 'failing', 'gone')),
    disabled_at     timestamptz,
    failures        int not null default 0, -- in a row
    failing_since   timestamptz, -- null = the last attempt succeeded
    held_until      timestamptz, -- nothing is sent before: the circuit is open, or the endpoint asked for a pause
    last_success_at timestamptz,
    last_failure_at timestamptz,
    last_error      text not null default '',
    version         bigint not null default 1,
    request_key     text unique, -- makes creation repeatable
    created_at      timestamptz not null default clock_timestamp(),
    created_by      text not null,
    updated_at      timestamptz not null default clock_timestamp()
);
create index hook_endpoints_shop on hook_endpoints (shop_number, id);

-- Keys that read a shop's events as a stream: while one does, the events are
-- kept although no endpoint is sent them.
create table hook_listeners (
    shop_number bigint not null references shops (number),
    listener    text not null,
    types       text[] not null default '{}', -- none = all
    since       timestamptz not null default clock_timestamp(),
    until       timestamptz not null,
    primary key (shop_number, listener)
);

-- Which events of which shops are wanted, and since when. An endpoint that its
-- failures disabled still wants them: they can be replayed when it works again.
create view hook_wants as
    select shop_number, types, created_at as since from hook_endpoints where enabled or disabled_reason = 'failing'
    union all
    select shop_number, types, since from hook_listeners where until > now();

-- Events that a shop wanted when they happened. payload is sent byte
-- for byte. Ids are in the order of commits: inserting takes a lock.
create table hook_events (
    id          bigint generated always as identity primary key,
    shop_number bigint not null,
    type        text not null,
    subject     text not null,
    sequence    bigint not null,
    at          timestamptz not null,
    items       int not null default 1,
    payload     text not null,
    stored_at   timestamptz not null default clock_timestamp()
);
create index hook_events_shop on hook_events (shop_number, id);

create table hook_deliveries (
    id          bigint generated always as identity primary key,
    endpoint_id bigint not null references hook_endpoints (id) on delete cascade,
    event_id    bigint not null references hook_events (id) on delete cascade,
    cause       text not null default 'event' check (cause in ('event', 'replay', 'test')),
    state       text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
    attempts    int not null default 0,
    next_at     timestamptz not null default clock_timestamp(),
    lease_token uuid,
    lease_until timestamptz,
    created_at  timestamptz not null default clock_timestamp(),
    done_at     timestamptz
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
create index hook_deliveries_due on hook_deliveries (endpoint_id, next_at, id) where state = 'waiting';
create index hook_deliveries_log on hook_deliveries (endpoint_id, id);
create index hook_deliveries_state on hook_deliveries (endpoint_id, state, id) where state <> 'delivered';
create index hook_deliveries_event on hook_deliveries (event_id);

create table hook_attempts (
    delivery_id bigint not null references hook_deliveries (id) on delete cascade,
    attempt     int not null,
    at          timestamptz not null,
    took_ms     int not null,
    status      int not null, -- of HTTP; 0 = there was no answer
    error       text not null default '',
    response    text not null default '', -- the beginning of the answer's body
    primary key (delivery_id, attempt)
);

-- How an endpoint does, by hour.
create table hook_hours (
    endpoint_id bigint not null references hook_endpoints (id) on delete cascade,
    hour        timestamptz not null,
    delivered   bigint not null default 0,
    failed      bigint not null default 0,
    took_ms     bigint not null default 0,
    primary key (endpoint_id, hour)
) with (fillfactor = 70);

-- How far the issued coupons have become events; see notice_cursor.
create table hook_cursor (
    only_row   boolean primary key default true check (only_row),
    planned_to bigint not null default 0,
    seen_to    bigint not null default 0,
    seen_xmax  xid8 not null default '0'
);
insert into hook_cursor default values;
