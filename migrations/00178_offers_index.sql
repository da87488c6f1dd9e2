-- +goose NO TRANSACTION
-- +goose Up
-- Offers by the instant at which they end. An interrupted build leaves an index that is not valid.
drop index concurrently if exists waiters_offers;
create index concurrently waiters_offers on waiters (offer_until, template_id) where state = 'offered';
alter table message_versions validate constraint message_versions_kind_check;
alter table announcements validate constraint announcements_kind_check;
