-- The cost of text messages, beside their parts, and receipts that come before the name
-- of their message is stored.

-- +goose Up

-- The cost of the parts by the price list, in millionths of a unit of its currency. The
-- previous version's programs count parts alone.
alter table sms_spent add column micros bigint not null default 0;

-- Receipts that name a message which no worker has stored the name of yet: providers may
-- report before they answer. They are matched with sms_serials soon, or forgotten. No numbers.
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
