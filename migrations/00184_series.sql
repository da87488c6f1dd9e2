-- +goose Up

-- Series of drops (docs/series.md): a drop for each day of a recurrence, created some days ahead.
create table series (
    id            bigint generated always as identity primary key,
    shop_number   bigint not null references shops (number),
    name          text not null check (char_length(name) between 1 and 60),
    rule          text not null, -- an RRULE of RFC 5545, days only
    starts_on     date not null, -- its DTSTART
    clock         int not null check (clock >= 0 and clock < 86400), -- seconds since midnight on the clocks of the shop
    skips         date[] not null default '{}',
    skip_holidays boolean not null default false,
    publishes     boolean not null default false,
    content       jsonb not null, -- the settings of its drops, as in drop_models
    state         text not null default 'active' check (state in ('active', 'paused', 'ended')),
    version       bigint not null default 1,
    due_at        timestamptz default clock_timestamp(), -- when a worker looks at it next; null = when staff change it
    request_key   text unique,
    created_at    timestamptz not null default clock_timestamp()
);
create index series_shop on series (shop_number, id);
create index series_due on series (due_at) where state = 'active';

-- The days of series with their drops. A day that staff took out of the series and brought back is tried again.
create table series_drops (
    series_id   bigint not null,
    day         date not null,
    try         int not null default 1,
    state       text not null default 'planned' check (state in ('planned', 'created', 'kept', 'removed')),
    template_id bigint,
    given       jsonb, -- the settings that the series gave the drop last
    version     bigint not null default 0, -- of the series, which was applied last
    why         jsonb, -- why the series could not create, change or publish the drop; null = it could
    copied_at   timestamptz, -- when standing reservations were copied to the drop
    reminded    bigint not null default 0, -- users who have reminders of the drop by them
    primary key (series_id, day)
);
create unique index series_drops_template on series_drops (template_id) where template_id is not null;
create index series_drops_uncopied on series_drops (template_id) where template_id is not null and copied_at is null;

-- Standing reservations: the reminders that a user gets of every drop of a series, as in reservations.
create table series_reservations (
    series_id  bigint not null,
    user_id    bigint not null check (user_id > 0),
    slots      bigint not null check (slots > 0 and slots < 1152921504606846976),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (series_id, user_id)
);
create index series_reservations_user on series_reservations (user_id);

-- True: copied from a standing reservation, and not changed by the user since.
alter table reservations add column standing boolean;

-- Days on which series of the shop have no drop, if they are set so.
alter table shops add column holidays date[] not null default '{}';

-- +goose StatementBegin
do $$
begin
    set local lock_timeout = '500ms';
    perform name_cell(array['series']);
end
$$;
-- +goose StatementEnd
