-- Messages that staff send to those who were told something that no longer
-- holds: corrections after a moved opening, notices of a cancelled drop.

-- +goose Up

create table announcements (
    id              bigint generated always as identity primary key,
    template_id     bigint not null references templates (id),
    kind            text not null check (kind in ('correction', 'cancelled')),
    opens_at        timestamptz not null, -- the opening it tells about
    -- waiting → cutting (batches are being cut) → sending (all are stored) → finished
    state           text not null default 'waiting' check (state in ('waiting', 'cutting', 'sending', 'finished')),
    stop_reason     text, -- what was left when it appeared is skipped for this reason
    cut_token       uuid,
    cut_lease_until timestamptz,
    created_by      text not null,
    -- Whole seconds apart from others of the template and kind: the instant
    -- is part of the key by which providers recognise a repetition.
    created_at      timestamptz not null,
    worthless_after timestamptz not null,
    cut_at          timestamptz,
    finished_at     timestamptz,
    superseded_at   timestamptz  -- the opening moved once more, so that it may be needed again
) with (fillfactor = 70);

-- Once per template, kind and opening, unless the opening moved away and back.
create unique index announcements_once on announcements (template_id, kind, opens_at) where superseded_at is null;
create index announcements_template on announcements (template_id, id);
create index announcements_unfinished on announcements (id) where state <> 'finished';
