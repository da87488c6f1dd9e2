-- Redeem codes. A code is derived from its serial number and a key that is
-- not in the database; only ranges of serial numbers, checksums and counters
-- are here. That a code was used is told by coupons: origin 'code', with the
-- serial number as origin_key, which is unique.

-- +goose Up

-- The next serial number. Whoever updates the row takes a range.
create table code_serials (
    singleton boolean primary key default true check (singleton),
    next      bigint not null default 1 check (next between 1 and 1099511627776) -- 2^40
);
insert into code_serials default values;

create table code_batches (
    id            bigint generated always as identity primary key,
    template_id   bigint not null references templates (id),
    first_serial  bigint not null check (first_serial > 0),
    count         int not null check (count between 1 and 1000000),
    key_id        smallint not null check (key_id between 1 and 31),
    -- generating → ready → revoked; revoked from generating as well
    state         text not null default 'generating' check (state in ('generating', 'ready', 'revoked')),
    generated     int not null default 0 check (generated between 0 and count),
    -- Coupons issued for codes of the batch, kept by the transaction that
    -- issues them.
    used          int not null default 0 check (used between 0 and count),
    job_id        bigint not null default 0, -- may have been cleaned away
    request_key   text not null default '',
    created_by    text not null,
    created_at    timestamptz not null default now(),
    ready_at      timestamptz,
    revoked_at    timestamptz,
    revoked_by    text not null default '',
    revoke_reason text not null default '',
    -- A serial number has one batch at most, whoever hands out ranges.
    constraint code_batches_apart exclude using gist (int8range(first_serial, first_serial + count) with &&)
) with (fillfactor = 50); -- used is updated once per group of claims
create unique index code_batches_first on code_batches (first_serial);
create unique index code_batches_request on code_batches (template_id, request_key) where request_key <> '';
create index code_batches_template on code_batches (template_id, id desc);

-- SHA-256 of every ten thousand codes: exports are held to it, so that a key
-- that was changed by mistake is noticed before worthless codes are printed.
create table code_parts (
    batch_id bigint not null references code_batches (id) on delete cascade,
    part     int not null,
    codes    int not null check (codes > 0),
    sha256   bytea not null check (octet_length(sha256) = 32),
    primary key (batch_id, part)
);
