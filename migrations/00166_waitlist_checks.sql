-- +goose Up
-- Checks of the migration before, with a lock that lets claims pass.
alter table coupons validate constraint coupons_origin_check;
alter table templates validate constraint templates_held;
alter table message_versions validate constraint message_versions_kind_check;
alter table announcements validate constraint announcements_kind_check;
