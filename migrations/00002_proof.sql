-- What operators need to prove that nothing was lost: measured rates for the
-- forecast, grouped dead letters and their replays.

-- +goose Up

-- Throughput of each channel as it was when slots finished, newest last.
create table channel_rates (
    channel    smallint not null check (channel between 0 and 4),
    at         timestamptz not null,
    per_second double precision not null check (per_second > 0),
    messages   bigint not null,
    primary key (channel, at)
);

-- One replay or discard of dead letters, worked off in the background.
create table dead_letter_jobs (
    id          bigint generated always as identity primary key,
    action      text not null check (action in ('replay', 'discard')),
    filter      jsonb not null,
    rate        int not null default 0 check (rate >= 0), -- recipients per second, 0 = as fast as the channel allows
    state       text not null default 'running' check (state in ('running', 'finished', 'cancelled')),
    after_batch bigint not null default 0,
    total       bigint not null default 0,
    done        bigint not null default 0,
    late        bigint not null default 0,
    sent        bigint not null default 0, -- had been sent by another attempt
    lease_until timestamptz,
    created_by  text not null,
    created_at  timestamptz not null default now(),
    finished_at timestamptz
);
create index dead_letter_jobs_running on dead_letter_jobs (id) where state = 'running';

-- How many are dead per kind of error, so that no page counts rows.
create table dead_letter_groups (
    channel     smallint not null,
    fingerprint text not null,
    dead        bigint not null default 0,
    first_at    timestamptz not null,
    last_at     timestamptz not null,
    sample      text not null,
    primary key (channel, fingerprint)
);
