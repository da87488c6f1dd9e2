-- Browsers on which members of staff are notified by push, and the messages to them.
-- The version before knows neither: its workers raise alerts without them.

-- +goose Up

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
