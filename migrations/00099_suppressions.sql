-- Mail addresses that nothing is sent to, since they bounced, complained, or staff
-- said so.

-- +goose Up

-- Addresses are in lower case. A row stays when the address is released, so that a
-- report of before does not suppress it again.
create table suppressions (
    address     text primary key check (address <> ''),
    reason      text not null check (reason in ('bounced', 'soft_bounced', 'complained', 'staff')),
    provider    text not null default '',
    cause       text not null default '', -- the provider's words, or staff's
    since       timestamptz not null default clock_timestamp(),
    released_at timestamptz
);

-- How many mails in a row were refused for a reason that may pass.
create table soft_bounces (
    address text primary key,
    count   int not null,
    last_at timestamptz not null default clock_timestamp()
);
