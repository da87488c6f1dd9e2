-- +goose Up

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

-- Chat groups that alerts are sent to. A removed one keeps its name for the log, and
-- neither address nor secret.
create table alert_destinations (
    id          bigint generated always as identity primary key,
    shop_number bigint not null default 0, -- 0 = of all shops
    form        text not null check (form in ('feishu', 'wecom', 'slack')),
    name        text not null,
    url         text not null,
    secret      text not null default '',
    language    text not null,
    kinds       text[] not null,
    created_by  text not null,
    created_at  timestamptz not null default clock_timestamp(),
    removed_at  timestamptz
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
