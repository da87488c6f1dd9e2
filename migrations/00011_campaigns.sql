-- Campaigns: one message to an audience, delivered by the batches, senders and
-- retries that reminders use. Nothing here grows with the number of users but
-- batches, a thousand users each.

-- +goose NO TRANSACTION
-- +goose Up

-- May be repeated from the start: every step below is made once only.

create table if not exists campaigns (
    id                bigint generated always as identity primary key,
    shop_number       bigint references shops (number), -- null = belongs to no shop
    name              text not null check (char_length(name) between 1 and 120),
    channel           smallint not null check (channel between 0 and 4),
    content           jsonb not null, -- titles and bodies per language, one or two variants, hold-out share
    audience          jsonb not null,
    audience_users    bytea,          -- roaring bitmap of an audience that was named user by user
    grant_template_id bigint references templates (id),
    starts_at         timestamptz not null,
    ends_at           timestamptz not null check (ends_at > starts_at),
    rate_per_second   int not null default 0 check (rate_per_second >= 0), -- 0 = as fast as the channel
    state             text not null check (state in ('draft', 'scheduled', 'running', 'paused', 'finished', 'cancelled', 'failed')),
    reason            text not null default '', -- why cancelled or failed
    version           bigint not null default 1,
    request_key       text unique,    -- makes creation repeatable
    creator           text not null,  -- label of the actor, part of "the same campaign"
    created_by        text not null,
    created_at        timestamptz not null default now(),
    updated_at        timestamptz not null default now(),
    published_at      timestamptz,
    started_at        timestamptz,
    cut_at            timestamptz,    -- the whole audience is in campaign_messages
    ended_at          timestamptz,    -- finished, cancelled or failed
    settled_at        timestamptz,    -- everybody has an outcome; the counters below are final
    -- The right to cut, and how far it has come: everybody up to cut_after is stored.
    cut_token         uuid,
    cut_lease_until   timestamptz,
    cut_after         bigint not null default 0,
    people            bigint not null default 0, -- users in stored messages
    sent              bigint not null default 0,
    skipped           bigint not null default 0,
    expired           bigint not null default 0,
    dead              bigint not null default 0,
    archived          boolean not null default false, -- its batches are past their retention
    -- Two looks at how many had an outcome, from which the rate is told.
    sample_at         timestamptz,
    sample_done       bigint not null default 0,
    sample_before_at  timestamptz,
    sample_before     bigint not null default 0,
    -- A second person's consent, where the shop asks for it.
    approval_asked_at timestamptz,
    approved_by       text not null default ''
) with (fillfactor = 70);
create index if not exists campaigns_shop on campaigns (shop_number, id);
create index if not exists campaigns_starts on campaigns (starts_at, id);
create index if not exists campaigns_due on campaigns (starts_at) where state = 'scheduled';
create index if not exists campaigns_open on campaigns (id) where state in ('running', 'paused', 'cancelled', 'failed') and settled_at is null;
create index if not exists campaigns_recent on campaigns (started_at) where started_at is not null;

-- "The same campaign" is published once in 30 minutes, whatever becomes of Redis.
create table if not exists campaign_publications (
    fingerprint  bytea primary key, -- SHA-256 of name, creator, start and end
    campaign_id  bigint not null,
    published_at timestamptz not null
);

-- Ranges of a cut audience on their way to becoming batches. The payload stays
-- until they are: what the wire loses is published again.
create table if not exists campaign_messages (
    campaign_id  bigint not null references campaigns (id) on delete cascade,
    seq          int not null,
    from_user    bigint not null,
    to_user      bigint not null check (to_user >= from_user),
    users        int not null,
    payload      bytea, -- null once its batches exist
    strangers    bytea, -- roaring bitmap of those who had no user row when the audience was cut
    published_at timestamptz,
    stored_at    timestamptz,
    primary key (campaign_id, seq)
);
create index if not exists campaign_messages_waiting on campaign_messages (campaign_id, seq) where stored_at is null;

-- What a shop allows its campaigns; 0 = no limit. Shop 0 stands for campaigns of no shop.
create table if not exists campaign_limits (
    shop_number    bigint primary key,
    per_day        int not null default 0 check (per_day >= 0),
    per_week       int not null default 0 check (per_week >= 0),
    approval_above bigint not null default 0 check (approval_above >= 0),
    updated_at     timestamptz not null default now()
);

-- Held batches belong to a paused campaign: nobody leases them.
alter table batches add column if not exists held boolean not null default false;
drop index concurrently if exists batches_runnable;
create index concurrently batches_runnable on batches (channel, priority, worthless_after, id) where state = 'ready' and not held;
drop index concurrently if exists batches_next;

-- The few people who do not want to be disturbed at some hours.
drop index concurrently if exists users_quiet;
create index concurrently users_quiet on users (id) where quiet_from <> quiet_to;
