-- Second factors of the console's staff: authenticator apps (RFC 6238) and
-- passkeys (WebAuthn), and the recovery codes that replace a lost one.
--
-- counter guards against a second use: of an authenticator app it is the last
-- time step that was accepted, of a passkey how often it was used. handle tells
-- one authenticator from all others.
--
-- A database without staff is a new installation: there operators and admins
-- must have a second factor. Elsewhere an admin switches that on.

-- +goose Up
create table if not exists second_factors (
    id         bigint generated always as identity primary key,
    staff_id   bigint not null references staff on delete cascade,
    kind       text not null check (kind in ('totp', 'passkey')),
    name       text not null,
    handle     bytea not null constraint second_factors_handle unique,
    secret     bytea not null,
    counter    bigint not null default 0,
    created_at timestamptz not null default now(),
    used_at    timestamptz
);
create index if not exists second_factors_staff on second_factors (staff_id);

create table if not exists recovery_codes (
    staff_id bigint not null references staff on delete cascade,
    hash     bytea not null,
    used_at  timestamptz,
    primary key (staff_id, hash)
);

create table if not exists console_settings (
    id            boolean primary key default true check (id),
    second_factor text not null check (second_factor in ('required', 'optional'))
);
insert into console_settings (second_factor)
select case when exists (select from staff) then 'optional' else 'required' end
on conflict (id) do nothing;

alter table sign_ins add column if not exists method text not null default 'password';
