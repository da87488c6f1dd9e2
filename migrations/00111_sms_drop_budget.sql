-- The part of each drop's budget that its text messages have used up.

-- +goose Up

-- Parts of text messages about a drop that were handed over. refused_at is when its
-- budget first had no room for a message.
create table sms_spent_drops (
    template_id bigint primary key references templates (id) on delete cascade,
    parts       bigint not null,
    refused_at  timestamptz
);
