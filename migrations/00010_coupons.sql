-- What becomes of a coupon after it was issued: the steps of payment and
-- their log, expiry, the notices that tell about it, and grants by staff.

-- +goose Up

-- Grows with every step; a step is stored only if nobody was faster.
alter table coupons add column version bigint not null default 0;

-- Every step and its outcome, append-only. One line per coupon, order, step
-- and outcome: what is repeated adds nothing, and of two requests that arrive
-- at once only one is recorded as done.
create table coupon_operations (
    id           bigint generated always as identity primary key,
    coupon_id    bigint not null,
    order_id     text not null default '', -- '' = about no order: expire, revoke
    step         text not null check (step in ('lock', 'confirm', 'release', 'refund', 'timeout', 'expire', 'revoke')),
    outcome      text not null,            -- 'done', or why it was refused
    from_state   text not null,
    to_state     text not null,
    order_amount bigint not null default 0,
    eligible     bigint not null default 0,
    discount     bigint not null default 0,
    actor        text not null default '', -- as in audit
    reason       text not null default '',
    at           timestamptz not null default clock_timestamp(),
    unique (coupon_id, order_id, step, outcome)
);
create index coupon_operations_order on coupon_operations (order_id, coupon_id) where order_id <> '';

-- What a template's coupons have become, kept by event handlers; unused is
-- templates.issued less the rest.
create table coupon_tallies (
    template_id bigint primary key,
    locked      bigint not null default 0,
    used        bigint not null default 0,
    expired     bigint not null default 0,
    revoked     bigint not null default 0,
    discounted  bigint not null default 0 -- minor units taken off by used coupons
) with (fillfactor = 50);

-- When users are told that a coupon expires: bit d = d days before, and the
-- channels to tell them over, a bit each.
alter table templates
    add column notify_days     int not null default 0 check (notify_days >= 0),
    add column notify_channels smallint not null default 1 check (notify_channels between 1 and 31);

-- One planned notice per user, template and day, however many coupons expire.
create table notices (
    user_id     bigint not null,
    template_id bigint not null,
    day         date not null,        -- on which it is sent, in the reader's zone
    days        smallint not null,    -- so many days before the expiry
    due_at      timestamptz not null,
    expires_at  timestamptz not null, -- of the last coupon it tells about
    status      smallint not null default 0 check (status in (0, 1, 2)), -- 0 planned, 1 sent, 2 failed
    reason      text not null default '',
    run_id      bigint,               -- the batches that deliver it; null = not cut yet
    primary key (user_id, template_id, day)
) with (fillfactor = 85);
create index notices_due on notices (due_at) where status = 0 and run_id is null;
create index notices_run on notices (run_id) where run_id is not null;
create index notices_day on notices (day, template_id, user_id);

-- What was cut at once: up to a thousand readers of one template who have
-- equally many days left. It owns one batch per channel.
create table notice_runs (
    id          bigint generated always as identity primary key,
    template_id bigint not null,
    days        smallint not null,
    due_at      timestamptz not null,
    created_at  timestamptz not null default clock_timestamp(),
    settled_at  timestamptz -- when the notices learned what became of them
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

-- The rows of a list of users who are given coupons, and what became of each.
create table grant_rows (
    sheet_id  bigint not null, -- the job that read the list
    line      bigint not null,
    input     text not null default '',
    user_id   bigint,          -- null = unreadable
    result    text not null default '', -- '' = not judged yet; else ok, issued or why not
    coupon_id bigint,
    primary key (sheet_id, line)
);
create index grant_rows_user on grant_rows (sheet_id, user_id, line) where user_id is not null;
