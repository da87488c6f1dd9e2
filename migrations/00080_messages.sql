-- Texts of messages as content: versions of staff's texts per shop and drop, the
-- claim address of a shop, and which drops' messages staff have looked at. The
-- version before knows none of it: its workers send the texts that are built in.

-- +goose Up

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

-- A batch keeps the texts of the moment when it was cut, so that a second attempt
-- sends the same. Null = cut before this column: the built-in texts.
alter table batches add column messages_upto bigint;
alter table batches alter column messages_upto set default newest_message();

-- Where coupons of the shop's drops are claimed that name no address of their own;
-- {id} stands for the drop's number. Empty = nowhere.
alter table shops add column claim_url text not null default '';

-- Drops whose messages staff have looked at before publication.
create table message_looks (
    template_id bigint primary key,
    by_member   text not null,
    at          timestamptz not null default now()
);

-- The text that staff try on themselves, as its editor shows it; null = the text for
-- test messages. Forgotten with the result.
alter table channel_tests add column draft jsonb;
