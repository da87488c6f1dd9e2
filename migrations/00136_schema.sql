-- The database of release 0.1.0, grouped by subject. Later changes are steps of their
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

-- The least id of an event made at that instant. Ids of events begin with the
-- millisecond at which they were made (UUID version 7, RFC 9562).
-- +goose StatementBegin
create function first_event_id(at timestamptz) returns uuid language sql immutable strict parallel safe as $$
    select rpad(lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;
-- +goose StatementEnd

-- A new id for an event.
-- +goose StatementBegin
create function new_event_id() returns uuid language sql volatile parallel safe as $$
    select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;
-- +goose StatementEnd

-- ---------------------------------------------------------------- shops and drops

create table shops (
    number     bigint primary key check (number > 0),
    name       text not null,
    timezone   text not null,
    created_at timestamptz not null default now(),
    -- Where coupons of the shop's drops are claimed that name no address of their
    -- own; {id} stands for the drop's number. Empty = nowhere.
    claim_url  text not null default ''
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
    -- Consents to one message each, as WeChat demands: bit k-1 is the consent to the
    -- push reminder of slot k. Null = none: such a row takes no room for the column.
    consents    smallint,
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

-- The last forecast of a slot on a channel before it fired, which a report sets beside
-- the outcome.
create table slot_forecasts (
    slot_id    bigint not null references slots (id) on delete cascade,
    channel    smallint not null check (channel between 0 and 4),
    opens_at   timestamptz not null, -- the slot's
    made_at    timestamptz not null,
    booked     bigint not null,
    messages   bigint not null, -- the part of booked with a contact
    missed     bigint not null, -- the part of messages that would not go out before the opening
    per_second double precision not null,
    finish_at  timestamptz not null,
    primary key (slot_id, channel)
);
create index slot_forecasts_opening on slot_forecasts (opens_at desc);

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

-- When the figures of a template were last compared with the rows; no row = never.
create table figure_recounts (
    template_id bigint not null,
    figure      text not null check (figure in ('bookings', 'tallies')),
    at          timestamptz not null default clock_timestamp(),
    primary key (template_id, figure)
) with (fillfactor = 50);

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

-- The first time a user opened the link in a reminder or a correction of a drop,
-- and the message it stood in; a second one changes nothing. Slot 0 = a correction.
create table drop_openings (
    template_id bigint not null references templates (id) on delete cascade,
    user_id     bigint not null check (user_id > 0),
    slot        smallint not null check (slot between 0 and 12),
    channel     smallint not null check (channel between 0 and 4),
    opened_at   timestamptz not null,
    primary key (template_id, user_id)
);

-- How many there were, by the channel of the first; kept when the rows are removed.
create table drop_opening_counts (
    template_id bigint not null references templates (id) on delete cascade,
    channel     smallint not null,
    opened      bigint not null check (opened >= 0),
    primary key (template_id, channel)
);

-- Links that lead to the report of a drop without signing in. The address holds
-- the signed id; this table decides whether the link is valid.
create table report_links (
    id          bigint generated always as identity primary key,
    template_id bigint not null references templates (id),
    created_at  timestamptz not null default clock_timestamp(),
    created_by  text not null,
    expires_at  timestamptz not null check (expires_at > created_at),
    revoked_at  timestamptz
);
create index report_links_template on report_links (template_id, id);

-- Drops that staff saved under a name, for new drops of the shop to start from.
create table drop_models (
    id          bigint generated always as identity primary key,
    shop_number bigint not null references shops (number),
    name        text not null check (char_length(name) between 1 and 60),
    content     jsonb not null, -- staff's settings of the drop at the time of saving
    saved_by    text not null,  -- as in audit
    created_at  timestamptz not null default clock_timestamp(),
    deleted_at  timestamptz     -- it can be restored for a while from then on
);
create unique index drop_models_name on drop_models (shop_number, lower(name)) where deleted_at is null;
create index drop_models_deleted on drop_models (deleted_at) where deleted_at is not null;

-- Deleted drafts of drops and campaigns, for as long as they can be restored.
create table deleted_drafts (
    kind        text not null check (kind in ('template', 'campaign')),
    id          bigint not null, -- which the draft has again once it is restored
    shop_number bigint not null, -- 0 = belongs to no shop
    name        text not null,
    content     jsonb not null,  -- the row as it was
    deleted_at  timestamptz not null default clock_timestamp(),
    deleted_by  text not null,   -- as in audit
    primary key (kind, id)
);
create index deleted_drafts_at on deleted_drafts (deleted_at);

-- Apple's broadcast channels, one for each drop, by which Live Activities on iPhones
-- follow the drop.
create table live_channels (
    template_id bigint primary key,
    channel_id  text not null default '', -- Apple's name; '' = none yet
    told        text not null default '', -- the last broadcast, JSON; '' = none
    told_at     timestamptz,
    ended       boolean not null default false, -- activities were ended
    next_at     timestamptz not null default clock_timestamp(), -- when a worker looks at the drop next
    failures    int not null default 0, -- in a row
    lease_token uuid,
    lease_until timestamptz
) with (fillfactor = 70);
create index live_channels_due on live_channels (next_at);

-- ---------------------------------------------------------------- messages

-- One save of one text. Rows are never changed; of each place (template 0 = the
-- shop's own) and key the one with the greatest id counts. Saves wait for each
-- other, so that a row is never visible before one with a smaller id.
create table message_versions (
    id            bigint generated always as identity primary key,
    shop_number   bigint not null,
    template_id   bigint not null default 0,
    kind          text not null check (kind in ('reminder', 'correction', 'cancelled', 'notice', 'names', 'settings')),
    channel       text not null default '',
    language      text not null default '',
    content       jsonb, -- null = removed
    restored_from bigint,
    created_by    text not null,
    created_at    timestamptz not null default clock_timestamp()
);
create index message_versions_current on message_versions (shop_number, template_id, kind, channel, language, id desc);

-- The version up to which texts count for batches that are cut now.
-- +goose StatementBegin
create function newest_message() returns bigint language sql stable as 'select coalesce(max(id), 0) from message_versions';
-- +goose StatementEnd

-- Drops whose messages staff have looked at before publication.
create table message_looks (
    template_id bigint primary key,
    by_member   text not null,
    at          timestamptz not null default now()
);

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
    -- A batch keeps the texts of the moment when it was cut, so that a second attempt
    -- sends the same.
    messages_upto   bigint not null default newest_message(),
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
-- In-app messages that may have come since a client lost its stream: batches by
-- their end, a row per thousand recipients.
create index batches_app_finished on batches (finished_at) where channel = 0;

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
    provider_id   bigint not null default 0, -- that answered last; 0 = the environment's
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
    at       timestamptz not null default clock_timestamp(),
    provider_id bigint not null default 0
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
    provider_id bigint not null default 0,
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
    finished_at timestamptz,
    -- The text that staff try on themselves, as its editor shows it; null = the text
    -- for test messages. Emptied with the result.
    draft       jsonb,
    provider_id bigint not null default 0 -- that is tested; 0 = the channel
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

-- Providers that staff configure, several per channel. The id 0 is the provider of the
-- environment.
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

-- The users of each batch whose messages a provider took. users is a roaring bitmap
-- like batches.sent; null = all sent users. Sent users of the batch who are in no row
-- were sent to by the environment's provider.
create table batch_providers (
    batch_id    bigint not null references batches (id) on delete cascade,
    provider_id bigint not null,
    users       bytea,
    sent_count  int not null,
    primary key (batch_id, provider_id)
) with (fillfactor = 50);

-- Reports of providers on messages that they took: delivered, bounced, complained.
-- Of each batch the sets of users of whose messages something is known, as roaring
-- bitmaps like batches.sent. A row of its own, since receipts come while checkpoints
-- lock the batch's. kind, owner_id and channel are the batch's.
-- A user is in delivered or bounced or neither; users in complained are in
-- delivered as well. soft are the users of whom only a failure that may pass is
-- known.
create table batch_feedback (
    batch_id         bigint primary key references batches (id) on delete cascade,
    kind             text not null,
    owner_id         bigint not null,
    channel          smallint not null,
    delivered        bytea,
    bounced          bytea,
    complained       bytea,
    soft             bytea,
    delivered_count  int not null default 0,
    bounced_count    int not null default 0,
    complained_count int not null default 0
) with (fillfactor = 50, toast_tuple_target = 8160);
create index batch_feedback_owner on batch_feedback (kind, owner_id, channel);

-- Reports that say more than that a message was delivered.
create table feedback_reports (
    batch_id     bigint not null references batch_feedback (batch_id) on delete cascade,
    user_id      bigint not null,
    status       text not null check (status in ('delivered', 'bounced', 'soft_bounced', 'complained')),
    provider     text not null,
    cause        text not null default '',
    price_micros bigint not null default 0, -- in millionths of the currency's unit; 0 = not reported
    currency     text not null default '',
    happened_at  timestamptz, -- by the provider's clock
    reported_at  timestamptz not null default clock_timestamp(),
    primary key (batch_id, user_id)
);
create index feedback_reports_user on feedback_reports (user_id);

-- The sums of batches that are past their retention.
create table feedback_totals (
    kind        text not null,
    owner_id    bigint not null,
    channel     smallint not null,
    delivered   bigint not null,
    bounced     bigint not null,
    complained  bigint not null,
    primary key (kind, owner_id, channel)
);

-- Mail addresses that nothing is sent to, since they bounced, complained, or staff
-- said so, in lower case. A row stays when the address is released, so that a
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

-- How many mails a new sender domain has sent on a day (UTC) of its warm-up plan.
-- refused_at is when the day's number first left mails over.
create table mail_warmup (
    day        date primary key,
    mails      bigint not null,
    refused_at timestamptz
);

-- Parts of text messages that were handed over on a day (UTC). refused_at is when the
-- day's budget first had no room for a message.
create table sms_spent (
    day        date primary key,
    parts      bigint not null,
    refused_at timestamptz,
    -- Their cost by the price list, in millionths of a unit of its currency.
    micros     bigint not null default 0
);

-- Names that a provider gave to messages, for receipts that name nothing else; kept four
-- days. reference is signed.
create table sms_serials (
    provider  text not null,
    serial    text not null,
    reference text not null,
    kept_at   timestamptz not null default clock_timestamp(),
    primary key (provider, serial)
);
create index sms_serials_kept on sms_serials (kept_at);

-- Parts of text messages about a drop that were handed over. refused_at is when its
-- budget first had no room for a message.
create table sms_spent_drops (
    template_id bigint primary key references templates (id) on delete cascade,
    parts       bigint not null,
    refused_at  timestamptz
);

-- Receipts for a message whose serial is not stored yet: providers may report before
-- they answer. They are matched with sms_serials soon, or removed. No numbers.
create table sms_early (
    provider text not null,
    serial   text not null,
    status   text not null,
    cause    text not null,
    at       timestamptz,
    kept_at  timestamptz not null default clock_timestamp(),
    primary key (provider, serial, status)
);
create index sms_early_kept on sms_early (kept_at);

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
-- Coupons that expire at one instant, such as all of a drop at midnight, are written
-- down in the order of their ids: the sweep goes on behind the last one.
create index coupons_due on coupons (expires_at, id) where state = 'unused';
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
    created_at  timestamptz not null default now(),
    -- When the gate, or its shards that are being built, will be open, as the builder
    -- estimates with each renewal of its lease. Waiting claims are told to come again then.
    ready_at    timestamptz
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
    -- A shard that was lost is built anew alone, so it has an epoch of its own.
    epoch       bigint not null check (epoch > 0),
    lease_until timestamptz, -- of the process that builds this shard alone; null = none does
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
    refunded    bigint not null default 0,
    changed_at  timestamptz not null default now() -- when an event last changed the row
) with (fillfactor = 50);

-- How far the coupons of a template that is selling are counted, so that each is
-- counted once. Ids are drawn before they are committed: coupons up to counted_to
-- are in coupons for good, because every transaction that ran when counted_to was
-- looked up has ended; seen_to is the next counted_to, once every transaction
-- before seen_xact has ended.
create table stock_counts (
    template_id bigint primary key,
    coupons     bigint not null,
    counted_to  bigint not null,
    seen_to     bigint not null,
    seen_xact   xid8 not null,
    -- Owners of coupons up to this id have as many as claim_counts says.
    checked_to  bigint not null default 0
) with (fillfactor = 50);

-- Numbers of a drop's rows that were removed after their retention, so that its stock
-- still adds up: rows of coupons, of these the returned to stock, and the sum of the
-- removed rows of claim_counts.
create table removed_coupons (
    template_id bigint primary key,
    coupons     bigint not null,
    returned    bigint not null,
    counted     bigint not null,
    removed_at  timestamptz not null default now(),
    -- The removed coupons by state.
    used        bigint not null,
    expired     bigint not null,
    revoked     bigint not null,
    discounted  bigint not null
);

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

-- Passes of coupons in the wallets of phones, and the updates that phones are still to
-- be sent.
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
    updated_at timestamptz not null default now(),
    -- The phones on which the user has the shop's app: platform, the token that Apple or
    -- Google gave the app, its version and language, and when it was last seen. They
    -- stand here, as browsers do in push, so that a batch reads both at once.
    devices    jsonb not null default '[]',
    -- When the user proved the number, or the shop said that it was proved; null = it
    -- was not.
    phone_verified_at timestamptz
);
create index users_email on users (lower(email) text_pattern_ops) where email <> '';
create index users_phone on users (phone text_pattern_ops) where phone <> '';
create index users_name on users (lower(name) text_pattern_ops) where name <> '';
-- The users who have opted out of a channel are read from the index alone.
create index users_opt_outs on users (id) include (opt_outs) where opt_outs <> 0;
create index users_quiet on users (id) where quiet_from <> quiet_to;
-- A token belongs to one user: it is looked up when another user signs in on the
-- same phone.
create index users_devices on users using gin (devices jsonb_path_ops) where devices <> '[]';

-- Another number is not proved; a change that says otherwise sets a new instant.
-- +goose StatementBegin
create function forget_phone_verification() returns trigger language plpgsql as $$
begin
    new.phone_verified_at := null;
    return new;
end
$$;
-- +goose StatementEnd

create trigger users_phone_changed before update of phone on users
    for each row when (old.phone <> new.phone and old.phone_verified_at is not null and new.phone_verified_at is not distinct from old.phone_verified_at)
    execute function forget_phone_verification();

-- Codes that users asked for, the newest of each user counts; kept a day. A held row is
-- like the others to its user, but no message is sent.
create table phone_verifications (
    id           bigint generated always as identity primary key,
    user_id      bigint not null,
    phone        text not null, -- as it is stored with the user once it is proved
    number       text not null, -- E.164, the same for every way to write it
    locale       text not null default '',
    state        text not null default 'waiting' check (state in ('waiting', 'sending', 'sent', 'failed', 'held')),
    reason       text not null default '', -- for failed
    code_hash    bytea, -- keyed, of the code that was sent last
    attempts     int not null default 0, -- of the user, to enter it
    tries        int not null default 0, -- of workers, to send it
    created_at   timestamptz not null default clock_timestamp(),
    due_at       timestamptz not null default clock_timestamp(),
    expires_at   timestamptz not null, -- ten minutes after the last code was made
    confirmed_at timestamptz,
    token        uuid,
    lease_until  timestamptz
) with (fillfactor = 70);
create index phone_verifications_user on phone_verifications (user_id, id);
create index phone_verifications_number on phone_verifications (number, created_at);
create index phone_verifications_open on phone_verifications (due_at) where state in ('waiting', 'sending');
create index phone_verifications_created on phone_verifications (created_at);

-- The users whose opt-outs were changed, and the transaction that did so: a worker that
-- remembers the opted-out users of a channel asks for changes since it read them.
-- Housekeeping notes in seen when it first saw a row, which is after the row's
-- transaction ended, and removes the row an hour later.
create table opt_out_changes (
    changed xid8 not null default pg_current_xact_id(),
    user_id bigint not null,
    seen    timestamptz
);
create index opt_out_changes_changed on opt_out_changes (changed);
create index opt_out_changes_seen on opt_out_changes (seen);

-- +goose StatementBegin
create function note_opt_outs() returns trigger language plpgsql security definer set search_path from current as $$
begin
    if tg_op <> 'INSERT' then
        insert into opt_out_changes (user_id) values (old.id);
    end if;
    if tg_op = 'INSERT' or tg_op = 'UPDATE' and new.id <> old.id then
        insert into opt_out_changes (user_id) values (new.id);
    end if;
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function note_opt_outs() from public;

create trigger users_opt_outs_stored after insert on users
    for each row when (new.opt_outs <> 0) execute function note_opt_outs();
create trigger users_opt_outs_changed after update of id, opt_outs on users
    for each row when (old.opt_outs <> new.opt_outs or old.id <> new.id) execute function note_opt_outs();
create trigger users_opt_outs_removed after delete on users
    for each row when (old.opt_outs <> 0) execute function note_opt_outs();

-- Users whose opt-out of SMS was set by STOP, and by nothing else: START takes it back.
create table sms_stops (
    user_id    bigint primary key references users (id) on delete cascade,
    stopped_at timestamptz not null default clock_timestamp()
);

-- Text messages that people sent and that were carried out, so that a repeated callback
-- changes nothing; kept four days. No numbers and no texts.
create table sms_replies (
    provider text not null,
    id       bytea not null, -- SHA-256 of the provider's name of the message
    word     text not null check (word in ('stop', 'start', 'help')),
    users    int not null,
    taken_at timestamptz not null default clock_timestamp(),
    primary key (provider, id)
);
create index sms_replies_taken on sms_replies (taken_at);

-- An opt-out that is set or lifted in any other way is no longer STOP's.
-- +goose StatementBegin
create function forget_sms_stop() returns trigger language plpgsql as $$
begin
    delete from sms_stops where user_id = new.id;
    return null;
end
$$;
-- +goose StatementEnd

create trigger users_sms_opt_out after update of opt_outs on users
    for each row when (old.opt_outs & 4 <> new.opt_outs & 4) execute function forget_sms_stop();

-- Erased users: no data about these ids is stored again until staff allow it.
create table erased_users (
    user_id   bigint primary key,
    erased_at timestamptz not null default now(),
    erased_by text not null -- label and name
);
-- Every process looks each second for users who were erased since its last look, so that
-- erased users claim and reserve nothing.
create index erased_users_order on erased_users (erased_at) include (user_id);

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
    updated_at    timestamptz not null default now(),
    -- The person at the identity provider who signs in as this member: linked with the
    -- first sign-in by the verified e-mail address, which may belong to another person
    -- later.
    sso_issuer    text not null default '',
    sso_subject   text not null default ''
);
create unique index staff_email on staff (lower(email));
create unique index staff_identity on staff (sso_issuer, sso_subject) where sso_subject <> '';

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

-- Filters of lists that members saved under a name, for themselves or for everybody.
create table saved_views (
    id         bigint generated always as identity primary key,
    staff_id   bigint not null references staff (id),
    list       text not null check (char_length(list) <= 40),
    name       text not null check (char_length(name) between 1 and 60),
    query      text not null check (char_length(query) <= 1000), -- of the list's address
    shared     boolean not null default false,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp()
);
create unique index saved_views_name on saved_views (staff_id, list, lower(name));
create index saved_views_shared on saved_views (list) where shared;

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
    event_id   uuid not null default new_event_id(),
    topic      text not null,
    payload    jsonb not null,
    created_at timestamptz not null default now(),
    -- W3C traceparent of the event's cause; '' when it is not traced.
    trace      text not null default '',
    -- An event that is a sum of others, committed before it is published: an event that
    -- may have been published alone must not be part of a sum, too (see workdb.Outbox).
    merged     boolean not null default false
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Events that a handler has dealt with: a second delivery changes nothing. A table for
-- each day, which is dropped when the day is past its retention. The day is part of an
-- event's id, so an id is unique over all days. Other ids are in handled_events_rest.
create table handled_events (
    handler  text not null,
    event_id uuid not null,
    at       timestamptz not null default now(),
    primary key (handler, event_id)
) partition by range (event_id);
create table handled_events_rest (
    handler  text not null,
    event_id uuid not null,
    at       timestamptz not null default now(),
    primary key (handler, event_id)
);
create index handled_events_rest_at on handled_events_rest (at);
alter table handled_events attach partition handled_events_rest default;

-- Adds the table of the day (UTC) that at belongs to, unless there is one, and
-- moves the events of that day there from handled_events_rest.
-- +goose StatementBegin
create function add_event_day(at timestamptz) returns boolean language plpgsql as $$
declare
    day   constant timestamptz := date_trunc('day', at, 'UTC');
    name  constant text := 'handled_events_' || to_char(day at time zone 'UTC', 'YYYYMMDD');
    first constant uuid := first_event_id(day);
    past  constant uuid := first_event_id(day + interval '24 hours');
begin
    if to_regclass(name) is not null then
        return false;
    end if;
    lock table handled_events in access exclusive mode;
    if to_regclass(name) is not null then -- another one was faster
        return false;
    end if;
    execute format('create table %I (handler text not null, event_id uuid not null, at timestamptz not null default now(), primary key (handler, event_id))', name);
    if to_regclass('handled_events_rest') is not null then
        execute format('with moved as (delete from handled_events_rest where event_id >= %L and event_id < %L returning *) insert into %I (handler, event_id, at)
            select handler, event_id, at from moved', first, past, name);
    end if;
    execute format('alter table handled_events attach partition %I for values from (%L) to (%L)', name, first, past);
    return true;
end
$$;
-- +goose StatementEnd
select add_event_day(now() + n * interval '1 day') from generate_series(0, 14) n;

-- Events that the relay has published stay until every handler is known to have
-- acknowledged them, so that they are published again after Redis forgot some.
--
-- Two tables in turn: new rows go into the one that event_relay.turn names. Once every
-- row of the other one is handled, it is truncated, and its turn has come.
create table relayed_events (
    turn     smallint not null,
    -- In the order of relays: drawn while the relay holds its advisory lock.
    seq      bigint generated always as identity,
    event_id uuid not null,
    topic    text not null,
    payload  jsonb not null,
    trace    text not null default ''
) partition by list (turn);
create table relayed_events_0 partition of relayed_events for values in (0) with (autovacuum_vacuum_insert_threshold = -1);
create table relayed_events_1 partition of relayed_events for values in (1) with (autovacuum_vacuum_insert_threshold = -1);
create index relayed_events_seq on relayed_events (seq);

-- How far relayed events have got.
create table event_relay (
    only_row  boolean primary key default true check (only_row),
    -- Every handler has acknowledged the events up to this seq.
    settled   bigint not null default 0,
    -- The number that each stream's mark in Redis has; it grows.
    mark      bigint not null default 1,
    turn      smallint not null default 0,
    -- The first seq that is kept, and the first in the table whose turn it is.
    kept_from bigint not null default 1,
    turn_from bigint not null default 1,
    turned_at timestamptz not null default now(),
    -- The history of the database that the events belong to: its system identifier and
    -- its timeline; '' = not looked at yet. A restore or a failover makes another one.
    history   text not null default ''
);
insert into event_relay default values;

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
    -- A key that is stored in the transaction of its change has no stored text of the
    -- answer, but the facts that the answer follows from: known are the facts that the
    -- caller read before the change, found are the results of the statement. Such a key
    -- has status null and locked_until infinity.
    known        bytea,
    found        bigint[],
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

-- The running processes. Where Redis keeps a limit for all of them, each keeps its part of
-- it while Redis does not answer, and counts the others here. A process enters itself when it
-- starts, renews its row while it runs, and removes it when it ends.
create table processes (
    id       uuid primary key,
    program  text not null,
    channels smallint not null, -- bits of the channels that it delivers
    seen_at  timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

-- ---------------------------------------------------------------- notifications of staff

-- Conditions that need the attention of staff, a row for each time that they are told.
create table alerts (
    id          bigint generated always as identity primary key,
    kind        text not null,
    key         text not null, -- kind and object
    shop_number bigint not null default 0, -- 0 = concerns all shops
    template_id bigint not null default 0,
    member_id   bigint not null default 0, -- 0 = every member who may see the shop
    name        text not null,
    count       bigint not null default 0,
    detail      text not null default '',
    path        text not null default '',
    -- How often the condition came again, or grew, since the alert before, without
    -- a message; and since this one.
    repeated    bigint not null default 0,
    swallowed   bigint not null default 0,
    raised_at   timestamptz not null default clock_timestamp(),
    ended_at    timestamptz -- null while it lasts
);
create unique index alerts_open on alerts (key) where ended_at is null;
create index alerts_key on alerts (key, id desc);

-- Chat groups and mail addresses that alerts are sent to. A removed destination keeps its
-- name for the log, and neither address nor secret.
create table alert_destinations (
    id          bigint generated always as identity primary key,
    shop_number bigint not null default 0, -- 0 = of all shops
    form        text not null check (form in ('feishu', 'wecom', 'slack', 'email')),
    name        text not null,
    url         text not null,
    secret      text not null default '',
    language    text not null,
    kinds       text[] not null,
    created_by  text not null,
    created_at  timestamptz not null default clock_timestamp(),
    removed_at  timestamptz,
    -- url and secret, sealed for the row; null = they are stored as they are, until a
    -- worker starts.
    sealed      bytea
);

-- One alert on its way to one destination.
create table alert_deliveries (
    id             bigint generated always as identity primary key,
    alert_id       bigint not null references alerts (id) on delete cascade,
    destination_id bigint not null references alert_destinations (id),
    state          text not null default 'waiting' check (state in ('waiting', 'sent', 'failed', 'dropped')),
    attempts       int not null default 0,
    next_at        timestamptz not null default clock_timestamp(),
    lease          uuid,
    deadline_at    timestamptz not null,
    detail         text not null default '',
    created_at     timestamptz not null default clock_timestamp(),
    ended_at       timestamptz,
    unique (alert_id, destination_id)
);
create index alert_deliveries_due on alert_deliveries (next_at) where state = 'waiting';

-- The last alert that each member has read, and the kinds that they do not want to see.
create table alert_readers (
    staff_id     bigint primary key references staff (id) on delete cascade,
    read_through bigint not null default 0,
    muted        text[] not null default '{}'
);

-- Browsers on which members of staff are notified by push.
create table staff_browsers (
    id         bigint generated always as identity primary key,
    staff_id   bigint not null references staff (id) on delete cascade,
    -- The sign-in in which it was turned on: nothing is sent once that was revoked.
    sign_in    uuid not null,
    endpoint   text not null check (char_length(endpoint) <= 2000),
    p256dh     text not null,
    auth       text not null,
    agent      text not null,
    language   text not null,
    created_at timestamptz not null default clock_timestamp()
);
create unique index staff_browsers_endpoint on staff_browsers (endpoint);
create index staff_browsers_staff on staff_browsers (staff_id);

-- One alert on its way to one browser.
create table alert_pushes (
    id          bigint generated always as identity primary key,
    alert_id    bigint not null references alerts (id) on delete cascade,
    browser_id  bigint not null references staff_browsers (id) on delete cascade,
    state       text not null default 'waiting' check (state in ('waiting', 'sent', 'failed', 'dropped')),
    attempts    int not null default 0,
    next_at     timestamptz not null default clock_timestamp(),
    lease       uuid,
    deadline_at timestamptz not null,
    detail      text not null default '',
    created_at  timestamptz not null default clock_timestamp(),
    ended_at    timestamptz,
    unique (alert_id, browser_id)
);
create index alert_pushes_due on alert_pushes (next_at) where state = 'waiting';
create index alert_pushes_browser on alert_pushes (browser_id, id desc);

-- ---------------------------------------------------------------- events for servers of shops

-- Numbers events of drops: drawn by the transaction of a change after it has
-- locked the changed row, so that of two events of one subject the later change
-- has the greater number.
create sequence hook_sequence;

create table hook_endpoints (
    id              bigint generated always as identity primary key,
    shop_number     bigint not null references shops (number),
    url             text not null check (char_length(url) between 1 and 2000),
    description     text not null default '' check (char_length(description) <= 200),
    types           text[] not null default '{}', -- of events; none = all
    secret          bytea not null, -- sealed, see domain/seal
    -- The secret before the last rotation signs as well until then.
    old_secret      bytea,
    old_until       timestamptz,
    enabled         boolean not null default true,
    disabled_reason text not null default '' check (disabled_reason in ('', 'staff', 'failing', 'gone')),
    disabled_at     timestamptz,
    failures        int not null default 0, -- in a row
    failing_since   timestamptz, -- null = the last attempt succeeded
    held_until      timestamptz, -- nothing is sent before: the circuit is open, or the endpoint asked for a pause
    last_success_at timestamptz,
    last_failure_at timestamptz,
    last_error      text not null default '',
    version         bigint not null default 1,
    request_key     text unique, -- makes creation repeatable
    created_at      timestamptz not null default clock_timestamp(),
    created_by      text not null,
    updated_at      timestamptz not null default clock_timestamp()
);
create index hook_endpoints_shop on hook_endpoints (shop_number, id);

-- Keys that read a shop's events as a stream: while one does, the events are
-- kept although no endpoint is sent them.
create table hook_listeners (
    shop_number bigint not null references shops (number),
    listener    text not null,
    types       text[] not null default '{}', -- none = all
    since       timestamptz not null default clock_timestamp(),
    until       timestamptz not null,
    primary key (shop_number, listener)
);

-- Which events of which shops are wanted, and since when. An endpoint that its
-- failures disabled still wants them: they can be replayed when it works again.
create view hook_wants as
    select shop_number, types, created_at as since from hook_endpoints where enabled or disabled_reason = 'failing'
    union all
    select shop_number, types, since from hook_listeners where until > now();

-- Events that a shop wanted when they happened. payload is sent byte
-- for byte. Ids are in the order of commits: inserting takes a lock.
create table hook_events (
    id          bigint generated always as identity primary key,
    shop_number bigint not null,
    type        text not null,
    subject     text not null,
    sequence    bigint not null,
    at          timestamptz not null,
    items       int not null default 1,
    payload     text not null,
    stored_at   timestamptz not null default clock_timestamp()
);
create index hook_events_shop on hook_events (shop_number, id);

create table hook_deliveries (
    id          bigint generated always as identity primary key,
    endpoint_id bigint not null references hook_endpoints (id) on delete cascade,
    event_id    bigint not null references hook_events (id) on delete cascade,
    cause       text not null default 'event' check (cause in ('event', 'replay', 'test')),
    state       text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
    attempts    int not null default 0,
    next_at     timestamptz not null default clock_timestamp(),
    lease_token uuid,
    lease_until timestamptz,
    created_at  timestamptz not null default clock_timestamp(),
    done_at     timestamptz
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
create index hook_deliveries_due on hook_deliveries (endpoint_id, next_at, id) where state = 'waiting';
create index hook_deliveries_log on hook_deliveries (endpoint_id, id);
create index hook_deliveries_state on hook_deliveries (endpoint_id, state, id) where state <> 'delivered';
create index hook_deliveries_event on hook_deliveries (event_id);

create table hook_attempts (
    delivery_id bigint not null references hook_deliveries (id) on delete cascade,
    attempt     int not null,
    at          timestamptz not null,
    took_ms     int not null,
    status      int not null, -- of HTTP; 0 = there was no answer
    error       text not null default '',
    response    text not null default '', -- the beginning of the answer's body
    primary key (delivery_id, attempt)
);

-- How an endpoint does, by hour.
create table hook_hours (
    endpoint_id bigint not null references hook_endpoints (id) on delete cascade,
    hour        timestamptz not null,
    delivered   bigint not null default 0,
    failed      bigint not null default 0,
    took_ms     bigint not null default 0,
    primary key (endpoint_id, hour)
) with (fillfactor = 70);

-- How far the issued coupons have become events; see notice_cursor.
create table hook_cursor (
    only_row   boolean primary key default true check (only_row),
    planned_to bigint not null default 0,
    seen_to    bigint not null default 0,
    seen_xmax  xid8 not null default '0'
);
insert into hook_cursor default values;
