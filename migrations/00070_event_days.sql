-- The ids of handled events are kept in a table for each day, which is dropped
-- when the day is past its retention. Ids of events begin with the millisecond at
-- which they were made (UUID version 7, RFC 9562), so the day is part of the id,
-- and an id is unique over all days. Other ids, such as random ones of events that
-- were made before this step, are in handled_events_rest.
--
-- Handlers of events wait while this step looks through the ids that are kept.

-- +goose Up

-- The least id of an event made at that instant.
-- +goose StatementBegin
create function first_event_id(at timestamptz) returns uuid language sql immutable strict parallel safe as $$
    select rpad(lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;
-- +goose StatementEnd

-- A new id for an event.
-- +goose StatementBegin
create function new_event_id() returns uuid language sql volatile parallel safe as $$
    select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;
-- +goose StatementEnd
alter table outbox alter column event_id set default new_event_id();

-- Adds the table of the day (UTC) that at belongs to, unless there is one, and
-- moves the events of that day there from handled_events_rest.
-- +goose StatementBegin
create function add_event_day(at timestamptz) returns boolean language plpgsql as $$
declare
    day   constant timestamptz := date_trunc('day', at, 'UTC');
    name  constant text := 'handled_events_' || to_char(day at time zone 'UTC', 'YYYYMMDD');
    first constant uuid := first_event_id(day);
    past  constant uuid := first_event_id(day + interval '24 hours');
begin
    if to_regclass(name) is not null then
        return false;
    end if;
    lock table handled_events in access exclusive mode;
    if to_regclass(name) is not null then -- another one was faster
        return false;
    end if;
    execute format('create table %I (handler text not null, event_id uuid not null, at timestamptz not null default now(), primary key (handler, event_id))', name);
    if to_regclass('handled_events_rest') is not null then
        execute format('with moved as (delete from handled_events_rest where event_id >= %L and event_id < %L returning *) insert into %I (handler, event_id, at)
            select handler, event_id, at from moved', first, past, name);
    end if;
    execute format('alter table handled_events attach partition %I for values from (%L) to (%L)', name, first, past);
    return true;
end
$$;
-- +goose StatementEnd

alter table handled_events rename to handled_events_rest;
alter index handled_events_pkey rename to handled_events_rest_pkey;
alter index handled_events_at rename to handled_events_rest_at;
create table handled_events (
    handler  text not null,
    event_id uuid not null,
    at       timestamptz not null default now(),
    primary key (handler, event_id)
) partition by range (event_id);
select add_event_day(now() + n * interval '1 day') from generate_series(0, 14) n;
alter table handled_events attach partition handled_events_rest default;
