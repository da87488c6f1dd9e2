-- Everything the main job needs: templates, reservations, firing, delivery,
-- the people involved, and the tables that make each step repeatable.
-- Tables that grow with users are keyed by template or user so that they can
-- be hash-distributed; none of them has a foreign key on the hot path.

-- +goose Up

create table shops (
    number     bigint primary key check (number > 0),
    name       text not null,
    timezone   text not null,
    created_at timestamptz not null default now()
);

create table templates (
    id             bigint generated always as identity primary key,
    shop_number    bigint not null references shops (number),
    name           text not null check (char_length(name) between 1 and 200),
    description    text not null default '' check (char_length(description) <= 4000),
    kind           text not null check (kind in ('amount_off', 'threshold_off', 'percent_off')),
    amount_off     bigint not null default 0 check (amount_off >= 0),
    threshold      bigint not null default 0 check (threshold >= 0),
    percent_off    int not null default 0 check (percent_off between 0 and 100),
    max_off        bigint not null default 0 check (max_off >= 0),
    currency       text not null check (currency ~ '^[A-Z]{3}$'),
    target         text not null check (target in ('shop', 'product')),
    product        text not null default '',
    stock          bigint not null check (stock >= 0),
    issued         bigint not null default 0 check (issued >= 0 and issued <= stock),
    per_user_limit int not null check (per_user_limit > 0),
    opens_at       timestamptz not null check (opens_at = date_trunc('second', opens_at)),
    closes_at      timestamptz not null check (closes_at > opens_at),
    valid_until    timestamptz,
    valid_hours    int not null default 0 check (valid_hours >= 0),
    obtain         text not null check (obtain in ('claim', 'code')),
    claim_mode     text not null check (claim_mode in ('durable', 'gate')),
    claim_url      text not null default '',
    -- 'open' and 'sold out' follow from the clock and the counters and are not stored.
    state          text not null check (state in ('draft', 'published', 'paused', 'closed', 'cancelled')),
    version        bigint not null default 1,
    request_key    text unique, -- makes creation repeatable
    created_at     timestamptz not null default now(),
    updated_at     timestamptz not null default now(),
    published_at   timestamptz,
    ended_at       timestamptz,
    check (valid_until is not null or valid_hours > 0)
);
create index templates_opening on templates (opens_at, id);
create index templates_shop on templates (shop_number, id);
create index templates_ending on templates (closes_at) where state in ('published', 'paused');

-- One row per (template, user): every reminder the user asked for in 60 bits.
-- Fillfactor leaves room for in-page (HOT) updates of the bitmap.
create table reservations (
    template_id bigint not null,
    user_id     bigint not null check (user_id > 0),
    slots       bigint not null check (slots > 0 and slots < 1152921504606846976),
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now(),
    primary key (template_id, user_id)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
create index reservations_user on reservations (user_id);

-- One row per (template, slot, due instant). Moving the opening makes new
-- rows, so that "once per slot and opening" is a unique key.
create table slots (
    id              bigint generated always as identity primary key,
    template_id     bigint not null references templates (id),
    slot            smallint not null check (slot between 1 and 12),
    opens_at        timestamptz not null,
    due_at          timestamptz not null,
    -- waiting → firing (batches are being cut) → sending (all are stored) → finished
    -- waiting → passed (due before publication) | moved | cancelled
    state           text not null check (state in ('waiting', 'firing', 'sending', 'finished', 'passed', 'moved', 'cancelled')),
    stop_reason     text, -- set while firing or sending: what is left is skipped for this reason
    fired_at        timestamptz,
    cut_at          timestamptz,
    finished_at     timestamptz,
    watched_at      timestamptz,
    cut_token       uuid,
    cut_lease_until timestamptz,
    unique (template_id, slot, due_at)
) with (fillfactor = 70);
create index slots_due on slots (due_at) where state = 'waiting';
create index slots_unfinished on slots (id) where state in ('firing', 'sending');

-- What a slot found when it fired, per channel; outcome counters are filled
-- in when the slot finishes and derived from batches until then.
create table slot_results (
    slot_id  bigint not null references slots (id) on delete cascade,
    channel  smallint not null check (channel between 0 and 4),
    reserved bigint not null,
    sent     bigint not null default 0,
    skipped  bigint not null default 0,
    expired  bigint not null default 0,
    dead     bigint not null default 0,
    primary key (slot_id, channel)
);

-- Live counters for the console, kept by event handlers, corrected by recounts.
create table bookings (
    template_id bigint not null,
    slot        smallint not null,
    channel     smallint not null,
    booked      bigint not null default 0,
    primary key (template_id, slot, channel)
) with (fillfactor = 50);
create table booking_growth (
    template_id bigint not null,
    minute      timestamptz not null,
    delta       bigint not null,
    primary key (template_id, minute)
);

-- A range of recipients delivered by one task. due and sent are roaring
-- bitmaps (64 bit, portable format) of user ids.
create table batches (
    id              bigint generated always as identity primary key,
    kind            text not null,
    owner_id        bigint not null, -- slots.id for reminders
    template_id     bigint not null default 0,
    channel         smallint not null check (channel between 0 and 4),
    from_user       bigint not null,
    to_user         bigint not null check (to_user >= from_user),
    state           text not null default 'ready' check (state in ('ready', 'running', 'done')),
    priority        smallint not null default 0, -- lower goes first
    due_at          timestamptz not null,
    worthless_after timestamptz not null,
    next_run_at     timestamptz not null default now(),
    enqueued_at     timestamptz,
    runs            int not null default 0,
    lease_token     uuid,
    lease_until     timestamptz,
    stop_reason     text,
    due             bytea not null,
    sent            bytea,
    due_count       int not null,
    sent_count      int not null default 0,
    skipped_count   int not null default 0,
    expired_count   int not null default 0,
    dead_count      int not null default 0,
    failed_count    int not null default 0, -- waiting for a retry
    -- The outcome of everybody in due who is neither in sent nor in exceptions.
    rest_outcome    text check (rest_outcome in ('skipped', 'expired')),
    rest_reason     text,
    created_at      timestamptz not null default now(),
    started_at      timestamptz,
    finished_at     timestamptz,
    unique (kind, owner_id, channel, from_user)
) with (fillfactor = 70);
create index batches_next on batches (channel, priority, worthless_after, id) where state = 'ready';
create index batches_leased on batches (lease_until) where state = 'running';
create index batches_template on batches (template_id, id);

-- Whatever did not simply go out, one row per person.
create table exceptions (
    batch_id      bigint not null references batches (id) on delete cascade,
    user_id       bigint not null,
    channel       smallint not null,
    outcome       text not null check (outcome in ('failed', 'recovered', 'dead', 'discarded', 'expired', 'skipped')),
    reason        text not null,
    detail        text not null default '',
    fingerprint   text not null default '',
    attempts      int not null default 0,
    next_retry_at timestamptz,
    first_at      timestamptz not null default now(),
    last_at       timestamptz not null default now(),
    primary key (batch_id, user_id)
);
create index exceptions_user on exceptions (user_id, batch_id);
create index exceptions_dead on exceptions (channel, fingerprint, batch_id, user_id) where outcome = 'dead';

create table channel_settings (
    channel         smallint primary key check (channel between 0 and 4),
    paused          boolean not null default false,
    paused_reason   text not null default '',
    rate_per_second int not null default 0 check (rate_per_second >= 0), -- 0 = unlimited
    updated_at      timestamptz not null default now()
);
insert into channel_settings (channel) select generate_series(0, 4);

-- Events leave through here: written in the transaction of the change they
-- announce, deleted when they are on the wire.
create table outbox (
    id         bigint generated always as identity primary key,
    event_id   uuid not null default gen_random_uuid(),
    topic      text not null,
    payload    jsonb not null,
    created_at timestamptz not null default now()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create table handled_events (
    handler  text not null,
    event_id uuid not null,
    at       timestamptz not null default now(),
    primary key (handler, event_id)
);
create index handled_events_at on handled_events (at);
create table dead_messages (
    id           bigint generated always as identity primary key,
    message_id   text not null,
    topic        text not null,
    handler      text not null,
    reason       text not null,
    payload      bytea not null,
    at           timestamptz not null default now(),
    requeued_at  timestamptz,
    discarded_at timestamptz,
    unique (message_id, handler)
);

create table users (
    id         bigint primary key check (id > 0),
    name       text not null default '',
    email      text not null default '',
    phone      text not null default '',
    locale     text not null default '',
    timezone   text not null default '',
    push       jsonb not null default '[]',
    opt_outs   smallint not null default 0,
    quiet_from smallint not null default 0,
    quiet_to   smallint not null default 0,
    attributes jsonb not null default '{}',
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);
create index users_email on users (lower(email) text_pattern_ops) where email <> '';
create index users_phone on users (phone text_pattern_ops) where phone <> '';
create index users_name on users (lower(name) text_pattern_ops) where name <> '';
create index users_opted_out on users (id) where opt_outs <> 0;
create table inbox_reads (
    user_id      bigint primary key,
    read_through timestamptz not null
);

create table staff (
    id            bigint generated always as identity primary key,
    email         text not null,
    name          text not null default '',
    role          text not null check (role in ('viewer', 'marketer', 'operator', 'admin')),
    shops         bigint[] not null default '{}', -- empty = all
    password_hash text not null default '',
    locale        text not null default '',
    theme         text not null default '',
    disabled_at   timestamptz,
    created_at    timestamptz not null default now(),
    updated_at    timestamptz not null default now()
);
create unique index staff_email on staff (lower(email));
create table sessions (
    token  text primary key, -- a hash; the cookie holds what hashes to it
    data   bytea not null,
    expiry timestamptz not null
);
create index sessions_expiry on sessions (expiry);
create table sign_ins (
    id           uuid primary key,
    staff_id     bigint not null references staff (id) on delete cascade,
    ip           text not null,
    user_agent   text not null,
    created_at   timestamptz not null default now(),
    last_seen_at timestamptz not null default now(),
    revoked_at   timestamptz
);
create index sign_ins_staff on sign_ins (staff_id, created_at desc);
create table api_keys (
    id           bigint generated always as identity primary key,
    name         text not null,
    prefix       text not null,
    hash         bytea not null unique, -- SHA-256; keys have 160 random bits, so no salt is needed
    scopes       text[] not null,
    created_by   text not null,
    created_at   timestamptz not null default now(),
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz
);

create table audit (
    id          bigint generated always as identity primary key,
    at          timestamptz not null default now(),
    actor       text not null, -- "staff:1 demo@…", "key:3 name", "system"
    action      text not null,
    object_kind text not null,
    object_id   text not null,
    shop_number bigint,
    reason      text not null default '',
    before      jsonb,
    after       jsonb
);
create index audit_object on audit (object_kind, object_id, id desc);
create index audit_actor on audit (actor, id desc);
create index audit_at on audit (at);

create table idempotency_keys (
    actor        text not null,
    key          text not null,
    request_hash bytea not null,
    status       int, -- null while the first request is being answered
    header       jsonb,
    body         bytea,
    locked_until timestamptz not null,
    created_at   timestamptz not null default now(),
    primary key (actor, key)
);
create index idempotency_keys_created on idempotency_keys (created_at);
