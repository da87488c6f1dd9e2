-- The database of release 0.1.0, grouped by room. Later changes are steps of their
-- own, each safe beside the programs of the release before it; see package
-- migrations.
--
-- Tables that grow with users are keyed by template or user so that they can be
-- hash-distributed; none of them has a foreign key on the hot path. Templates are
-- drops and their drafts; a reminder is a bit of a reservation.

-- +goose Up

-- The parts of a text, in lower case: every run of up to three characters, but
-- none shorter than asked for, as far as the text is that long. A name holds
-- a text only if it has all of that text's parts, which an ordinary index of
-- arrays can tell. The extension pg_trgm does the same, except that no
-- extension has to be installed, which not every server allows, and that one
-- or two characters are found too: a Chinese word is often no longer.
-- +goose StatementBegin
create function text_parts(value text, shortest int) returns text[] language plpgsql immutable strict parallel safe cost 1000 as $$
declare
    s constant text := lower(value);
    length constant int := char_length(s);
    parts text[] := '{}';
begin
    for n in greatest(1, least(shortest, 3, length)) .. 3 loop
        for at in 1 .. length - n + 1 loop
            parts := parts || substr(s, at, n);
        end loop;
    end loop;
    return parts;
end
$$;
-- +goose StatementEnd

-- Ends the transaction with SQLSTATE DB001 unless the expectation holds.
-- +goose StatementBegin
create function expect(holds boolean) returns void language plpgsql volatile as $$
begin
    if holds is not true then
        raise exception 'something has changed since it was read' using errcode = 'DB001';
    end if;
end
$$;
-- +goose StatementEnd

-- ---------------------------------------------------------------- shops and drops

create table shops (
    number     bigint primary key check (number > 0),
    name       text not null,
    timezone   text not null,
    created_at timestamptz not null default now()
);

-- Drops and drafts. The hottest row of all is that of a template in its rush:
-- fillfactor leaves room for in-page (HOT) updates of the issued counter.
create table templates (
    id              bigint generated always as identity primary key,
    shop_number     bigint not null references shops (number),
    name            text not null check (char_length(name) between 1 and 200),
    description     text not null default '' check (char_length(description) <= 4000),
    kind            text not null check (kind in ('amount_off', 'threshold_off', 'percent_off')),
    amount_off      bigint not null default 0 check (amount_off >= 0),
    threshold       bigint not null default 0 check (threshold >= 0),
    percent_off     int not null default 0 check (percent_off between 0 and 100),
    max_off         bigint not null default 0 check (max_off >= 0),
    currency        text not null check (currency ~ '^[A-Z]{3}$'),
    target          text not null check (target in ('shop', 'product')),
    product         text not null default '',
    stock           bigint not null check (stock >= 0),
    issued          bigint not null default 0 check (issued >= 0 and issued <= stock),
    per_user_limit  int not null check (per_user_limit > 0),
    opens_at        timestamptz not null check (opens_at = date_trunc('second', opens_at)),
    closes_at       timestamptz not null check (closes_at > opens_at),
    valid_until     timestamptz,
    valid_hours     int not null default 0 check (valid_hours >= 0),
    obtain          text not null check (obtain in ('claim', 'code')),
    claim_mode      text not null check (claim_mode in ('durable', 'gate')),
    claim_url       text not null default '',
    -- 'open' and 'sold out' follow from the clock and the counters and are not stored.
    state           text not null check (state in ('draft', 'published', 'paused', 'closed', 'cancelled')),
    version         bigint not null default 1,
    request_key     text unique, -- makes creation repeatable
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    published_at    timestamptz,
    ended_at        timestamptz,
    -- When users are told that a coupon expires: bit d = d days before, and the
    -- channels to tell them over, a bit each.
    notify_days     int not null default 0 check (notify_days >= 0),
    notify_channels smallint not null default 1 check (notify_channels between 1 and 31),
    -- Coupons that staff took away and returned to stock.
    returned        bigint not null default 0 check (returned >= 0),
    -- True after a move for which staff chose to remind once: a user who has been
    -- sent the reminder of a slot and channel is not sent it again for the new opening.
    remind_once     boolean not null default false,
    check (valid_until is not null or valid_hours > 0)
) with (fillfactor = 50);
create index templates_opening on templates (opens_at, id);
create index templates_shop on templates (shop_number, id);
create index templates_ending on templates (closes_at) where state in ('published', 'paused');
create index templates_shop_opening on templates (shop_number, opens_at, id);
create index templates_parts on templates using gin (text_parts(name, 1));
create index templates_state on templates (state, opens_at, id);
create index templates_expiring on templates (valid_until) where state in ('published', 'paused') and valid_until is not null;

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

-- Users who have cancelled all that was left of their reservation of a template.
-- Their inbox reads this table as well: it keeps the messages sent before.
create table former_reservations (
    user_id     bigint not null,
    template_id bigint not null,
    at          timestamptz not null default now(),
    primary key (user_id, template_id)
);
create index former_reservations_template on former_reservations (template_id);

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
    stop_reason     text, -- set while firing or sending: the rest is skipped for this reason
    fired_at        timestamptz,
    cut_at          timestamptz,
    finished_at     timestamptz,
    watched_at      timestamptz,
    cut_token       uuid,
    cut_lease_until timestamptz,
    -- Set where an opening was moved so near that the slot was due before it came
    -- into being: when it did, or waited again. Null = due_at.
    planned_at      timestamptz,
    -- An opening that was moved away and back is delivered again to those who were
    -- not reached before. due_at lies as many microseconds behind the due instant,
    -- so that (template_id, slot, due_at) stays unique.
    round           smallint not null default 0 check (round >= 0),
    unique (template_id, slot, due_at)
) with (fillfactor = 70);
create index slots_due on slots (due_at) where state = 'waiting';
create index slots_unfinished on slots (id) where state in ('firing', 'sending');
create index slots_finished on slots (finished_at) where state = 'finished';

-- Reservations that a slot found when it fired, per channel; the counters of outcomes
-- are written when the slot finishes and derived from batches until then.
create table slot_results (
    slot_id  bigint not null references slots (id) on delete cascade,
    channel  smallint not null check (channel between 0 and 4),
    reserved bigint not null,
    sent     bigint not null default 0,
    skipped  bigint not null default 0,
    expired  bigint not null default 0,
    dead     bigint not null default 0,
    -- Results outlive the batches they were counted from. Once those are past
    -- their retention, the balance sheet can no longer be recomputed.
    archived boolean not null default false,
    -- Figures of the slot and channel that outlive their batches.
    late     jsonb, -- the batches' sums: {"7": 1200, …}
    done_at  timestamptz, -- when the last batch was done
    expected double precision, -- messages per second as forecast when the slot fired
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

-- Reservations per minute, for the curve of a drop.
create table booking_growth (
    template_id bigint not null,
    minute      timestamptz not null,
    delta       bigint not null,
    primary key (template_id, minute)
);

-- Messages that staff send to users whose last message about the drop is no
-- longer true: corrections after a moved opening, notices of a cancelled drop.
create table announcements (
    id              bigint generated always as identity primary key,
    template_id     bigint not null references templates (id),
    kind            text not null check (kind in ('correction', 'cancelled')),
    opens_at        timestamptz not null, -- the opening it tells about
    -- waiting → cutting (batches are being cut) → sending (all are stored) → finished
    state           text not null default 'waiting' check (state in ('waiting', 'cutting', 'sending', 'finished')),
    stop_reason     text, -- once set, messages not yet sent are skipped for this reason
    cut_token       uuid,
    cut_lease_until timestamptz,
    created_by      text not null,
    -- Whole seconds apart from others of the template and kind: the instant
    -- is part of the key by which providers recognise a repetition.
    created_at      timestamptz not null,
    worthless_after timestamptz not null,
    cut_at          timestamptz,
    finished_at     timestamptz,
    superseded_at   timestamptz, -- the opening moved once more, so that it may be needed again
    -- A user who has been sent this many corrections of the drop gets no more.
    per_person      smallint not null default 3 check (per_person > 0)
) with (fillfactor = 70);
-- Once per template, kind and opening, unless the opening moved away and back.
create unique index announcements_once on announcements (template_id, kind, opens_at) where superseded_at is null;
create index announcements_template on announcements (template_id, id);
create index announcements_unfinished on announcements (id) where state <> 'finished';

-- ---------------------------------------------------------------- delivery

-- A range of recipients delivered by one task. due and sent are roaring
-- bitmaps (64 bit, portable format) of user ids.
--
-- Sets of a thousand scattered users take 2 kB each and do not compress. At
-- the default of toast_tuple_target they would go to a table of their own, which
-- costs a row and an index entry at every checkpoint, and a search at every look
-- at a user's outcome.
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
    -- The outcome of all users in due who are neither in sent nor in exceptions.
    rest_outcome    text check (rest_outcome in ('skipped', 'expired')),
    rest_reason     text,
    created_at      timestamptz not null default now(),
    started_at      timestamptz,
    finished_at     timestamptz,
    -- Held batches belong to a paused campaign: they are not leased.
    held            boolean not null default false,
    -- Sent messages by how long after the due instant they were recorded: element
    -- i counts those in the i-th span of delivery.LatenessBounds, 0 being below
    -- the first. Written by the checkpoint that records them. Null = none recorded.
    late            int[],
    -- The lease under which the batch's recipients were held to the limits of their
    -- shop: from then on, until the lease ends, they belong to this batch, and
    -- batches of the shop's other campaigns wait. Null in shops without limits.
    screened        uuid,
    planned_at      timestamptz,
    -- Which of a campaign's versions a test message is; null = the reader's own.
    variant         smallint,
    unique (kind, owner_id, channel, from_user)
) with (fillfactor = 70, toast_tuple_target = 8160);
create index batches_leased on batches (lease_until) where state = 'running';
create index batches_template on batches (template_id, id);
create index batches_runnable on batches (channel, priority, worthless_after, id) where state = 'ready' and not held;
-- Deliveries, latest due first: all, of a template, on a channel, of a kind. Each
-- filter of the console's lists has an index that yields its rows in the page's
-- order, so that a page reads about as many rows as it shows.
create index batches_due on batches (due_at, id);
create index batches_template_due on batches (template_id, due_at, id);
create index batches_channel_due on batches (channel, due_at, id);
create index batches_kind_due on batches (kind, due_at, id);
create index batches_unfinished on batches (due_at, id) where state <> 'done';
create index batches_failed on batches (due_at, id) where failed_count > 0;
create index batches_dead on batches (due_at, id) where dead_count > 0;
create index batches_expired on batches (due_at, id) where expired_count > 0;
create index batches_skipped on batches (due_at, id) where skipped_count > 0;
create index batches_range on batches using gist (int8range(from_user, nullif(to_user, 9223372036854775807), '[]'));

-- Outcomes other than sent at the first attempt, one row per recipient.
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
create index exceptions_dead_batch on exceptions (batch_id, user_id) where outcome = 'dead';

-- Messages that a provider has taken, where they are handed over one by one, recorded
-- one by one, until the batch's checkpoint has them and the batch is done. A worker
-- that takes a batch over reads here those missing from the last checkpoint. There
-- is no foreign key: checking it would lock the batch's row for every message.
create table accepted_messages (
    batch_id bigint not null,
    users    bigint[] not null,
    at       timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0.5);
create index accepted_messages_batch on accepted_messages (batch_id);

-- Decisions of operators about channels.
create table channel_settings (
    channel         smallint primary key check (channel between 0 and 4),
    paused          boolean not null default false,
    paused_reason   text not null default '',
    rate_per_second int not null default 0 check (rate_per_second >= 0), -- 0 = unlimited
    updated_at      timestamptz not null default now(),
    paused_at       timestamptz,
    paused_by       text not null default ''
);
insert into channel_settings (channel) select generate_series(0, 4);

-- Throughput of each channel as it was when slots finished, newest last.
create table channel_rates (
    channel    smallint not null check (channel between 0 and 4),
    at         timestamptz not null,
    per_second double precision not null check (per_second > 0),
    messages   bigint not null,
    primary key (channel, at)
);

-- How a channel's provider did lately, as each worker counted it.
create table provider_calls (
    channel    smallint not null check (channel between 0 and 4),
    worker     text not null,
    at         timestamptz not null, -- end of the ten seconds counted
    calls      bigint not null,
    messages   bigint not null,
    failed     bigint not null, -- messages that got no good answer
    total_ms   bigint not null,
    slowest_ms bigint not null,
    error      text not null default '', -- the provider's last words, without addresses
    primary key (channel, worker, at)
);
create index provider_calls_at on provider_calls (at);

-- Single messages that staff send to see whether a channel works. A worker
-- sends each at most once.
create table channel_tests (
    id          bigint generated always as identity primary key,
    channel     smallint not null check (channel between 0 and 4),
    recipient   text not null, -- an address or a user's number; emptied with the result
    by_user     boolean not null, -- the recipient is a user's number
    template_id bigint not null default 0, -- whose name and opening it tells; 0 = none
    locale      text not null default '',
    -- Whole seconds apart from others of the channel: it is part of the key
    -- by which providers recognise a repetition.
    due_at      timestamptz not null,
    state       text not null default 'waiting' check (state in ('waiting', 'running', 'done')),
    lease_until timestamptz,
    token       uuid,
    -- The provider's answer; 'unknown' when the worker died in the call.
    result      text not null default '' check (result in ('', 'delivered', 'transient', 'throttled', 'permanent', 'unknown')),
    detail      text not null default '',
    took_ms     bigint not null default 0,
    created_by  text not null,
    created_at  timestamptz not null default now(),
    finished_at timestamptz
);
create index channel_tests_channel on channel_tests (channel, id desc);
create index channel_tests_open on channel_tests (id) where state <> 'done';

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
    finished_at timestamptz,
    request_key text unique, -- a replay or discard that is asked for twice with one key is one
    -- How far a replay with a rate is within a batch, and up to when it has used
    -- its rate up.
    part_batch  bigint,
    part_user   bigint,
    paced_at    timestamptz
);
create index dead_letter_jobs_running on dead_letter_jobs (id) where state = 'running';

-- Up to when a user has read the inbox.
create table inbox_reads (
    user_id      bigint primary key,
    read_through timestamptz not null
);

-- ---------------------------------------------------------------- campaigns

-- One message to an audience, delivered by the batches, senders and retries that
-- reminders use. Nothing here grows with the number of users but batches, a
-- thousand users each.
create table campaigns (
    id                bigint generated always as identity primary key,
    shop_number       bigint references shops (number), -- null = belongs to no shop
    name              text not null check (char_length(name) between 1 and 120),
    channel           smallint not null check (channel between 0 and 4),
    content           jsonb not null, -- titles and bodies per language, one or two variants, hold-out share
    audience          jsonb not null,
    audience_users    bytea, -- roaring bitmap of an audience that was named user by user
    grant_template_id bigint references templates (id),
    starts_at         timestamptz not null,
    ends_at           timestamptz not null check (ends_at > starts_at),
    rate_per_second   int not null default 0 check (rate_per_second >= 0), -- 0 = as fast as the channel
    state             text not null check (state in ('draft', 'scheduled', 'running', 'paused', 'finished', 'cancelled', 'failed')),
    reason            text not null default '', -- why cancelled or failed
    version           bigint not null default 1,
    request_key       text unique,    -- makes creation repeatable
    creator           text not null, -- label of the actor, part of "the same campaign"
    created_by        text not null,
    created_at        timestamptz not null default now(),
    updated_at        timestamptz not null default now(),
    published_at      timestamptz,
    started_at        timestamptz,
    cut_at            timestamptz,    -- the whole audience is in campaign_messages
    ended_at          timestamptz,    -- finished, cancelled or failed
    settled_at        timestamptz,    -- each recipient has an outcome; the counters below are final
    -- The lease to cut, and its position: all users up to cut_after are stored.
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
    approved_by       text not null default '',
    counted_to        timestamptz, -- the results count events before it; null = never counted
    count_due_at      timestamptz not null default '-infinity', -- when to count again; infinity = the results are final
    account_off       bigint, -- the account's difference at the last recount; null = never recounted
    -- The segment as it was when the campaign was published; null until then, and
    -- for other audiences.
    segment_version   bigint,
    segment_name      text,
    segment_rule      jsonb, -- null for a list, whose members are ids
    held_at           timestamptz, -- paused until a second person consents to the size of the audience
    published_by      text not null default '' -- label and name of the member or key that published it, or asked for that
) with (fillfactor = 70);
create index campaigns_shop on campaigns (shop_number, id);
create index campaigns_starts on campaigns (starts_at, id);
create index campaigns_due on campaigns (starts_at) where state = 'scheduled';
create index campaigns_open on campaigns (id) where state in ('running', 'paused', 'cancelled', 'failed') and settled_at is null;
create index campaigns_recent on campaigns (started_at) where started_at is not null;
create index campaigns_to_count on campaigns (count_due_at) where started_at is not null and not archived and count_due_at < 'infinity';
-- A shop's month.
create index campaigns_shop_starts on campaigns (shop_number, starts_at, id);
create index campaigns_parts on campaigns using gin (text_parts(name, 1));
create index campaigns_held on campaigns (ends_at) where held_at is not null;

-- "The same campaign" is published once in 30 minutes, even if Redis loses its data.
create table campaign_publications (
    fingerprint  bytea primary key, -- SHA-256 of name, creator, start and end
    campaign_id  bigint not null,
    published_at timestamptz not null
);

-- Ranges of a cut audience on their way to becoming batches. The payload stays
-- until they are: a range that the broker loses is published again.
create table campaign_messages (
    campaign_id  bigint not null references campaigns (id) on delete cascade,
    seq          int not null,
    from_user    bigint not null,
    to_user      bigint not null check (to_user >= from_user),
    users        int not null,
    payload      bytea, -- null once its batches exist
    strangers    bytea, -- roaring bitmap of users without a user row when the audience was cut
    published_at timestamptz,
    stored_at    timestamptz,
    primary key (campaign_id, seq)
);
create index campaign_messages_waiting on campaign_messages (campaign_id, seq) where stored_at is null;

-- Limits that a shop sets for its campaigns; 0 = none. Shop 0 stands for campaigns of no shop.
create table campaign_limits (
    shop_number    bigint primary key,
    per_day        int not null default 0 check (per_day >= 0),
    per_week       int not null default 0 check (per_week >= 0),
    approval_above bigint not null default 0 check (approval_above >= 0),
    updated_at     timestamptz not null default now()
);

-- The first time a recipient opened the link; a second one changes nothing.
create table campaign_openings (
    campaign_id bigint not null references campaigns (id) on delete cascade,
    user_id     bigint not null check (user_id > 0),
    variant     smallint not null,
    opened_at   timestamptz not null,
    primary key (campaign_id, user_id)
);

-- One row per group of recipients, all of them as of campaigns.counted_to.
-- domain/campaign/results.go defines the count of each column.
create table campaign_results (
    campaign_id bigint not null references campaigns (id) on delete cascade,
    variant     smallint not null check (variant between -1 and 1), -- -1 = held out
    assigned    bigint not null,
    sent        bigint not null,
    opened      bigint not null,
    reserved    bigint not null,
    claimed     bigint not null,
    used        bigint not null,
    primary key (campaign_id, variant)
);

-- Requests for a second person's consent. The columns are those of campaigns at
-- that moment: the consent covers exactly these values.
create table campaign_requests (
    id                bigint generated always as identity primary key,
    campaign_id       bigint not null references campaigns (id) on delete cascade,
    shop_number       bigint not null, -- 0 = none
    name              text not null,
    channel           smallint not null,
    content           jsonb not null,
    audience          jsonb not null,
    audience_users    bytea,
    grant_template_id bigint not null, -- 0 = none
    starts_at         timestamptz not null,
    ends_at           timestamptz not null,
    rate_per_second   int not null,
    segment_version   bigint,
    segment_name      text,
    segment_rule      jsonb,
    reach             bigint not null,
    reach_exact       boolean not null,
    reach_at          timestamptz not null,
    state             text not null default 'asked' check (state in ('asked', 'approved', 'refused', 'lapsed')),
    asked_by          text not null, -- label
    asked_name        text not null,
    asked_at          timestamptz not null default clock_timestamp(),
    reason            text not null default '',
    decided_by        text not null default '',
    decided_at        timestamptz,
    decided_reason    text not null default '',
    allowed           bigint -- how many could be reached without this consent, if the program asked; null = a person asked
);
create index campaign_requests_campaign on campaign_requests (campaign_id, id desc);
create unique index campaign_requests_open on campaign_requests (campaign_id) where state = 'asked';

-- ---------------------------------------------------------------- coupons

-- Coupons that users own. templates.issued is the number of the template's rows
-- here less those returned to stock, which templates.returned counts.
create table coupons (
    id           bigint generated always as identity primary key,
    template_id  bigint not null,
    user_id      bigint not null check (user_id > 0),
    claim_id     bigint not null check (claim_id > 0), -- no index: see claim_counts
    origin       text collate "C" not null check (origin in ('claim', 'code', 'grant', 'campaign')),
    -- At most one coupon ever per (origin, origin_key); '' = not repeatable.
    origin_key   text collate "C" not null default '', -- compared byte by byte
    state        text not null default 'unused' check (state in ('unused', 'locked', 'used', 'expired', 'refunded', 'revoked')),
    issued_at    timestamptz not null,
    expires_at   timestamptz not null,
    order_id     text not null default '',
    locked_at    timestamptz,
    locked_until timestamptz,
    discount     bigint not null default 0 check (discount >= 0), -- minor units of the template's currency
    used_at      timestamptz,
    updated_at   timestamptz not null default now(),
    -- Grows with every step; a step is stored only if no other was faster.
    version      bigint not null default 0,
    -- Returned to stock, so that templates.issued does not count it.
    returned     boolean not null default false
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
create unique index coupons_origin on coupons (origin, origin_key) where origin_key <> '';
create index coupons_user on coupons (user_id, id desc);
create index coupons_template on coupons (template_id, id);
create index coupons_expiring on coupons (expires_at) where state = 'unused';
create index coupons_locked on coupons (locked_until) where state = 'locked';
create index coupons_returned on coupons (template_id) where returned;
create index coupons_template_state on coupons (template_id, state, id) where state in ('locked', 'used', 'expired', 'revoked');

-- How many coupons of a template one user was given: the limit per user is
-- judged by it. Only a transaction that has locked the template's row changes it,
-- and it inserts the row of a user's first coupon. That keeps a claim from being
-- given two coupons without an index over the claims' random ids, which was a
-- tenth of a coupon's cost in a rush. A claim is looked for among the coupons
-- of its user.
create table claim_counts (
    template_id bigint not null,
    user_id     bigint not null,
    issued      int not null check (issued > 0),
    primary key (template_id, user_id)
) with (fillfactor = 85, autovacuum_vacuum_insert_scale_factor = 0.05);

-- The sell-out curve: coupons issued per second of the database's clock,
-- written by the group that issued them.
create table claim_seconds (
    template_id bigint not null,
    second      timestamptz not null,
    issued      bigint not null check (issued > 0),
    primary key (template_id, second)
) with (fillfactor = 50);

-- The plans of the claim gate in Redis: the number of shards of each stock. One row per template whose claims the gate decides, from
-- publication on.
create table gates (
    template_id bigint primary key references templates (id),
    shards      int not null check (shards between 1 and 64), -- fixed: it determines the home shard of a user
    -- Counts how often the gate was built. Every change of a shard names it, so
    -- that a process that was taken for dead changes nothing any more.
    epoch       bigint not null check (epoch > 0),
    state       text not null check (state in ('building', 'standing', 'retired')),
    -- Coupons issued when the epoch began, or outside of it since, less those returned
    -- to stock, which may be more than it began with.
    base        bigint not null default 0,
    reason      text not null,
    lease_until timestamptz not null, -- of the process that is building
    built_at    timestamptz,
    created_at  timestamptz not null default now()
);
create index gates_unretired on gates (template_id) where state <> 'retired';

-- The allotment of each shard, and how many of its claims are decided. Changed once
-- per group written, only by a transaction that has locked the template's row.
create table gate_shards (
    template_id bigint not null,
    shard       int not null,
    allot       bigint not null check (allot >= 0),
    settled     bigint not null default 0, -- accepted claims of this epoch that are decided for good
    refused     bigint not null default 0, -- of these, not issued
    primary key (template_id, shard)
) with (fillfactor = 50);

-- Accepted claims that led to no coupon of their own: refused for a reason, or
-- the repetition of an earlier claim, whose coupon they name. Those that did
-- are rows of coupons.
create table claim_results (
    claim_id    bigint primary key check (claim_id > 0),
    template_id bigint not null,
    user_id     bigint not null,
    origin      text not null,
    origin_key  text not null,
    reason      text not null default '',
    coupon_id   bigint,
    at          timestamptz not null default now()
);
create index claim_results_template on claim_results (template_id, claim_id);
create index claim_results_key on claim_results (origin, origin_key) where origin_key <> '';

-- The next serial number of a redeem code; a transaction that updates the row
-- takes a range. A code is derived from its serial number and a key that is not in
-- the database. That a code was used is told by coupons: origin 'code', with the
-- serial number as origin_key, which is unique.
create table code_serials (
    singleton boolean primary key default true check (singleton),
    next      bigint not null default 1 check (next between 1 and 1099511627776) -- 2^40
);
insert into code_serials default values;

-- Ranges of serial numbers.
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
    -- A serial number has one batch at most, whichever process hands out ranges.
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

-- Every step and its outcome, append-only. One line per coupon, order, step
-- and outcome: a repetition adds no line, and of two requests that arrive
-- at once only one is recorded as done.
create table coupon_operations (
    id           bigint generated always as identity primary key,
    coupon_id    bigint not null,
    order_id     text not null default '', -- '' = about no order: expire, revoke
    step         text not null check (step in ('lock', 'confirm', 'release', 'refund', 'timeout', 'expire', 'revoke')),
    outcome      text not null, -- 'done', or why it was refused
    from_state   text not null,
    to_state     text not null,
    order_amount bigint not null default 0,
    eligible     bigint not null default 0,
    discount     bigint not null default 0,
    actor        text not null default '', -- as in audit
    reason       text not null default '',
    at           timestamptz not null default clock_timestamp(),
    -- The job that revoked the coupon, so that a list that is taken back twice
    -- counts each coupon once; null = none.
    job_id       bigint,
    unique (coupon_id, order_id, step, outcome)
);
create index coupon_operations_order on coupon_operations (order_id, coupon_id) where order_id <> '';

-- A template's coupons by state, kept by event handlers; unused is
-- templates.issued less the rest.
create table coupon_tallies (
    template_id bigint primary key,
    locked      bigint not null default 0,
    used        bigint not null default 0,
    expired     bigint not null default 0,
    revoked     bigint not null default 0,
    discounted  bigint not null default 0, -- minor units taken off by used coupons
    -- Steps, where the other columns are states: locks that ended without a use,
    -- and uses that were refunded.
    released    bigint not null default 0,
    refunded    bigint not null default 0
) with (fillfactor = 50);

-- One planned notice per user, template and day, however many coupons expire.
create table notices (
    user_id     bigint not null,
    template_id bigint not null,
    day         date not null, -- on which it is sent, in the reader's zone
    days        smallint not null,    -- so many days before the expiry
    due_at      timestamptz not null,
    expires_at  timestamptz not null, -- of the last coupon it tells about
    status      smallint not null default 0 check (status in (0, 1, 2)), -- 0 planned, 1 sent, 2 failed
    reason      text not null default '',
    run_id      bigint, -- the batches that deliver it; null = not cut yet
    primary key (user_id, template_id, day)
) with (fillfactor = 85);
create index notices_due on notices (due_at) where status = 0 and run_id is null;
create index notices_run on notices (run_id) where run_id is not null;
create index notices_day on notices (day, template_id, user_id);

-- Notices that were cut together: of up to a thousand readers of one template with
-- equally many days left. A run owns one batch per channel.
create table notice_runs (
    id          bigint generated always as identity primary key,
    template_id bigint not null,
    days        smallint not null,
    due_at      timestamptz not null,
    created_at  timestamptz not null default clock_timestamp(),
    settled_at  timestamptz, -- when the notices got their outcomes
    -- How many of its messages it had sent when its notices last learned which
    -- users were reached. Recipients in quiet hours keep a run open for hours, and
    -- the calendar does not wait for them.
    told        bigint not null default 0
);
create index notice_runs_open on notice_runs (id) where settled_at is null;

-- The calendar, kept with the notices so that no page counts them.
create table notice_days (
    day         date not null,
    template_id bigint not null,
    planned     bigint not null default 0, -- ever
    sent        bigint not null default 0,
    failed      bigint not null default 0,
    dropped     bigint not null default 0, -- the coupon was used or gone before
    primary key (day, template_id)
) with (fillfactor = 50);

-- How far notices are planned, by coupon id. Ids are given out before they
-- are committed: up to seen_to is planned only after every transaction that
-- ran when seen_to was looked up has ended.
create table notice_cursor (
    only_row   boolean primary key default true check (only_row),
    planned_to bigint not null default 0,
    seen_to    bigint not null default 0,
    seen_xmax  xid8
);
insert into notice_cursor default values;

-- The rows of a list of users who are given coupons, and the result of each.
create table grant_rows (
    sheet_id  bigint not null, -- the job that read the list
    line      bigint not null,
    input     text not null default '',
    user_id   bigint, -- null = unreadable
    result    text not null default '', -- '' = not judged yet; else ok, issued or why not
    coupon_id bigint,
    primary key (sheet_id, line)
);
create index grant_rows_user on grant_rows (sheet_id, user_id, line) where user_id is not null;

-- ---------------------------------------------------------------- audience

-- End users, as far as they are known by more than their number.
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
create index users_quiet on users (id) where quiet_from <> quiet_to;

-- Erased users: no data about these ids is stored again until staff allow it.
create table erased_users (
    user_id   bigint primary key,
    erased_at timestamptz not null default now(),
    erased_by text not null -- label and name
);

-- Audiences with a name: a rule, or a list of ids.
create table segments (
    id          bigint generated always as identity primary key,
    name        text not null check (char_length(name) between 1 and 120),
    kind        text not null check (kind in ('rules', 'list')),
    rule        jsonb not null,
    version     bigint not null default 1,
    members     bigint, -- counted at counted_at; null = not since the rule changed
    counted_at  timestamptz,
    created_by  text not null,
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now(),
    request_key text unique -- a form that is sent twice makes one segment
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

-- ---------------------------------------------------------------- access

-- Members of staff.
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
    token  text primary key, -- the hash of the cookie's token
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
    revoked_at   timestamptz,
    method       text not null default 'password'
);
create index sign_ins_staff on sign_ins (staff_id, created_at desc);

-- Second factors of members of staff: authenticator apps (RFC 6238) and passkeys
-- (WebAuthn). counter guards against a second use: of an authenticator app it is
-- the last time step that was accepted, of a passkey how often it was used. handle
-- tells one authenticator from all others.
create table second_factors (
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
create index second_factors_staff on second_factors (staff_id);

-- Each replaces a lost second factor once.
create table recovery_codes (
    staff_id bigint not null references staff on delete cascade,
    hash     bytea not null,
    used_at  timestamptz,
    primary key (staff_id, hash)
);

-- Whether operators and admins must have a second factor. An admin may change it.
create table console_settings (
    id            boolean primary key default true check (id),
    second_factor text not null check (second_factor in ('required', 'optional'))
);
insert into console_settings (second_factor) values ('required');

-- Links with which members of staff set their password: an invitation for a
-- member without one, a reset for others. Only the hash of a link's token is
-- stored, and a member has one link at most.
create table password_links (
    staff_id   bigint primary key references staff on delete cascade,
    hash       bytea not null constraint password_links_hash unique,
    purpose    text not null check (purpose in ('invitation', 'password_reset')),
    expires_at timestamptz not null,
    created_at timestamptz not null default now()
);

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

-- Every change by staff and keys, append-only.
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
    after       jsonb,
    -- The client's address and the id of the request that made the change; null
    -- for changes of the programs themselves.
    address     text,
    request_id  text
);
create index audit_object on audit (object_kind, object_id, id desc);
create index audit_actor on audit (actor, id desc);
create index audit_at on audit (at);
create index audit_label on audit (split_part(actor, ' ', 1), id desc);
create index audit_action on audit (action, id desc);
create index audit_shop on audit (shop_number, id desc);
create index audit_reason on audit (id desc) where reason <> '';

-- ---------------------------------------------------------------- work

-- Uploaded files wait here for the job that reads them.
create table uploads (
    id         bigint generated always as identity primary key,
    name       text not null,
    bytes      bigint not null default 0,
    sha256     bytea, -- null until the file is complete; it is not read before
    created_by text not null,
    created_at timestamptz not null default now(),
    -- The beginnings of an uploaded table, one for each sheet of a workbook: its
    -- page is shown without reading the file again.
    previews   jsonb
);
create index uploads_created on uploads (created_at);

create table upload_parts (
    upload_id bigint not null references uploads (id) on delete cascade,
    part      int not null,
    content   bytea not null,
    primary key (upload_id, part)
);
-- Uploaded files are compressed already, or read once.
alter table upload_parts alter column content set storage external;

-- Work in the background that outlives the process that does it: a job knows how
-- far it has come, so that any worker can go on with it.
create table jobs (
    id          bigint generated always as identity primary key,
    kind        text not null,
    title       text not null,
    shop_number bigint not null default 0, -- 0 = belongs to no shop
    needs       text not null, -- the permission to start and to stop it
    params      jsonb not null default '{}',
    cursor      jsonb,
    result      jsonb,
    -- waiting → running → done | failed; cancelled from waiting and running
    state       text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed', 'cancelled')),
    total       bigint not null default 0, -- 0 = not known yet
    done        bigint not null default 0,
    failed      bigint not null default 0,
    reason      text not null default '', -- code of the fault that ended it
    detail      text not null default '',
    created_by  text not null, -- as in audit.actor
    actor       jsonb not null, -- the same with the rights of the moment, in whose name it is done
    upload_id   bigint references uploads (id) on delete set null,
    request_key text not null default '',
    attempts    int not null default 0,    -- steps that failed in a row, workers that died included
    next_run_at timestamptz not null default now(),
    lease_token uuid,
    lease_until timestamptz,
    created_at  timestamptz not null default now(),
    started_at  timestamptz,
    finished_at timestamptz
) with (fillfactor = 50); -- a long job is updated at every step
create unique index jobs_request on jobs (kind, split_part(created_by, ' ', 1), request_key) where request_key <> '';
create index jobs_unfinished on jobs (id) where state in ('waiting', 'running');
create index jobs_shop on jobs (shop_number, id);
create index jobs_finished on jobs (finished_at) where finished_at is not null;
create index jobs_upload on jobs (upload_id) where upload_id is not null;
create index jobs_grants on jobs ((params ->> 'template_id'), id) where kind = 'coupons.grant';
create index jobs_grants_all on jobs (id) where kind = 'coupons.grant';
create index jobs_lists on jobs ((params ->> 'segment_id'), id) where kind = 'segment.list';

-- Rows of a list that could not be worked off, in the order in which they were met.
create table job_errors (
    job_id  bigint not null references jobs (id) on delete cascade,
    id      bigint generated always as identity,
    line    bigint not null,
    row     text not null,
    error   text not null,
    because jsonb not null default '[]', -- error in a form that can be told in any language
    primary key (job_id, id)
);

-- Events leave through here: written in the transaction of the change they
-- announce, deleted when they are on the wire.
create table outbox (
    id         bigint generated always as identity primary key,
    event_id   uuid not null default gen_random_uuid(),
    topic      text not null,
    payload    jsonb not null,
    created_at timestamptz not null default now(),
    -- W3C traceparent of the event's cause; '' when it is not traced.
    trace      text not null default ''
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Events that a handler has dealt with: a second delivery changes nothing.
create table handled_events (
    handler  text not null,
    event_id uuid not null,
    at       timestamptz not null default now(),
    primary key (handler, event_id)
);
create index handled_events_at on handled_events (at);

-- Events that a handler gave up on.
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

-- Requests with an idempotency key, and their answers.
create table idempotency_keys (
    actor        text not null,
    key          text not null,
    request_hash bytea not null,
    status       int, -- null while the first request is being answered
    header       jsonb,
    body         bytea,
    locked_until timestamptz not null,
    created_at   timestamptz not null default now(),
    -- Raised by the attempt that takes the key over, so that one that was thought
    -- dead can neither end nor prolong the one after it.
    attempt      bigint not null default 0,
    primary key (actor, key)
);
create index idempotency_keys_created on idempotency_keys (created_at);

-- Rows that the check of a table has read: the last one of each user in each part
-- that was read at once. The check removes them at its end, else the removal of its
-- job does. A crash of the database may empty this unlogged table: it holds nothing
-- that was promised.
create unlogged table checked_rows (
    job_id  bigint not null references jobs (id) on delete cascade,
    user_id bigint not null,
    line    bigint not null,
    digest  bigint not null, -- of the row's content
    primary key (job_id, user_id, line)
);
