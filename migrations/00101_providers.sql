-- Providers that staff configure, several per channel, and which of them took which
-- message. The id 0 is the provider of the environment.

-- +goose Up

create table providers (
    id           bigint generated always as identity primary key,
    shop_number  bigint references shops (number), -- null = for the messages of all shops
    channel      smallint not null,
    kind         text not null,
    name         text not null check (char_length(name) between 1 and 60),
    priority     int not null default 0, -- the lowest is asked first
    weight       int not null default 1 check (weight > 0),
    countries    text[] not null default '{}', -- ISO 3166 codes; none = all
    enabled      boolean not null,
    settings     jsonb not null default '{}',
    secrets      bytea, -- sealed, see domain/seal
    secret_names text[] not null default '{}',
    version      bigint not null default 1,
    -- Drawn anew with each change, so that programs see cheaply that there was one.
    changed      bigint not null,
    request_key  text unique, -- makes creation repeatable
    created_at   timestamptz not null default clock_timestamp(),
    created_by   text not null,
    updated_at   timestamptz not null default clock_timestamp(),
    deleted_at   timestamptz -- the name stays with outcomes
);
create sequence provider_changes;

-- Whose messages a provider took, of each batch. users is a roaring bitmap like
-- batches.sent; null = all sent ones. Users of the batch's sent who are in no
-- row were sent to by the environment's provider.
create table batch_providers (
    batch_id    bigint not null references batches (id) on delete cascade,
    provider_id bigint not null,
    users       bytea,
    sent_count  int not null,
    primary key (batch_id, provider_id)
) with (fillfactor = 50);

alter table exceptions add column provider_id bigint not null default 0; -- that answered last
alter table accepted_messages add column provider_id bigint not null default 0;
alter table provider_calls add column provider_id bigint not null default 0;
alter table channel_tests add column provider_id bigint not null default 0; -- that is tested; 0 = the channel
