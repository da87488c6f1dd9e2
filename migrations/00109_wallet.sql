-- Passes of coupons in the wallets of phones: which coupons have one, the
-- updates that phones are still to be sent, and the phones that registered for it.

-- +goose Up
create table wallet_passes (
    coupon_id      bigint primary key,
    user_id        bigint not null,
    expires_at     timestamptz not null, -- the coupon's
    google         boolean not null default false, -- a link that saves it to Google Wallet was made
    coupon_version bigint not null, -- of the coupon at the last change of the pass
    expiry_noted   boolean not null default false, -- the expiry was a change of the pass
    revision       bigint not null default 1, -- grows with each change of the pass
    -- When the pass changed last, in whole seconds: each change is at least one
    -- second after the one before, as Last-Modified of HTTP needs.
    modified_at    timestamptz not null default date_trunc('second', clock_timestamp()),
    google_told    bigint not null default 0, -- the revision that Google has
    next_at        timestamptz, -- when phones are told next; null = all were
    changed_at     timestamptz, -- since when they are to be told
    attempts       int not null default 0,
    lease_token    uuid,
    lease_until    timestamptz
) with (fillfactor = 80);
create index wallet_passes_due on wallet_passes (next_at) where next_at is not null;
create index wallet_passes_expiring on wallet_passes (expires_at) where not expiry_noted;
create index wallet_passes_expired on wallet_passes (expires_at) where expiry_noted;
create index wallet_passes_user on wallet_passes (user_id);

-- Apple's devices with a pass. Device and token are Apple's names for the device.
create table wallet_registrations (
    device     text not null check (char_length(device) between 1 and 200),
    coupon_id  bigint not null references wallet_passes (coupon_id) on delete cascade,
    user_id    bigint not null, -- the pass's
    push_token text not null check (char_length(push_token) between 1 and 200),
    told       bigint not null default 0, -- the revision that the device was woken for
    primary key (device, coupon_id)
);
create index wallet_registrations_coupon on wallet_registrations (coupon_id);
