-- Links with which members of staff set their password: an invitation for a
-- member without one, a reset for others. Only the hash of a link's token is
-- stored, and a member has one link at most.

-- +goose Up
create table if not exists password_links (
    staff_id   bigint primary key references staff on delete cascade,
    hash       bytea not null constraint password_links_hash unique,
    purpose    text not null check (purpose in ('invitation', 'password_reset')),
    expires_at timestamptz not null,
    created_at timestamptz not null default now()
);
