-- +goose Up
-- Checks of the migration before, with a lock that lets entries pass.
alter table draw_entries validate constraint draw_entries_state_check;
alter table draws validate constraint draws_state_check;
alter table message_versions validate constraint message_versions_kind_check;
alter table announcements validate constraint announcements_kind_check;
