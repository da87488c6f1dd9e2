-- Reports of providers on messages that they took: delivered, bounced, complained.

-- +goose Up

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
