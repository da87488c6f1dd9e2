-- Consents to one message each, as WeChat demands: bit k-1 is that to the push reminder
-- of slot k. Null = none. A row without any takes no room for the column.

-- +goose Up
alter table reservations add column consents smallint;
