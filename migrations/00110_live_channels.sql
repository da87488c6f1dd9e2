-- Apple's broadcast channels, one for each drop, by which Live Activities on iPhones
-- follow the drop.

-- +goose Up
create table live_channels (
    template_id bigint primary key,
    channel_id  text not null default '', -- Apple's name; '' = none yet
    told        text not null default '', -- the last broadcast, JSON; '' = none
    told_at     timestamptz,
    ended       boolean not null default false, -- activities were ended
    next_at     timestamptz not null default clock_timestamp(), -- when a worker looks at the drop next
    failures    int not null default 0, -- in a row
    lease_token uuid,
    lease_until timestamptz
) with (fillfactor = 70);
create index live_channels_due on live_channels (next_at);
