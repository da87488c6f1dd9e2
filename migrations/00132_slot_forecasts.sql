-- The last forecast of a slot on a channel before it fired, so that a report can set it beside
-- the outcome. The previous version does not use the table.

-- +goose Up
create table slot_forecasts (
    slot_id    bigint not null references slots (id) on delete cascade,
    channel    smallint not null check (channel between 0 and 4),
    opens_at   timestamptz not null, -- the slot's
    made_at    timestamptz not null,
    booked     bigint not null,
    messages   bigint not null, -- the part of booked with a contact
    missed     bigint not null, -- the part of messages that would not go out before the opening
    per_second double precision not null,
    finish_at  timestamptz not null,
    primary key (slot_id, channel)
);
create index slot_forecasts_opening on slot_forecasts (opens_at desc);
