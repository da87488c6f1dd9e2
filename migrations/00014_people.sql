-- Segments: audiences that staff describe by rules about users, or upload as
-- lists of ids.

-- +goose Up

create table segments (
    id         bigint generated always as identity primary key,
    name       text not null check (char_length(name) between 1 and 120),
    kind       text not null check (kind in ('rules', 'list')),
    rule       jsonb not null,
    version    bigint not null default 1,
    members    bigint,      -- counted at counted_at; null = not since the rule changed
    counted_at timestamptz,
    created_by text not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);
create index segments_updated on segments (updated_at desc, id desc);

-- The ids of a list, 65,536 of the id range a row: a roaring bitmap (64 bit,
-- portable format). A million ids that lie together are sixteen rows of 8 kB.
create table segment_members (
    segment_id bigint not null references segments (id) on delete cascade,
    chunk      bigint not null, -- id >> 16
    members    bytea not null,
    count      int not null,
    primary key (segment_id, chunk)
);
