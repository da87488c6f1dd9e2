-- How many of its messages a run had sent when its notices last learned who was
-- reached. Those who sleep keep a run open for hours, and the calendar does not
-- wait for them.

-- +goose Up
alter table notice_runs add column if not exists told bigint not null default 0;
