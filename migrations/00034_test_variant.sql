-- +goose Up
-- Which of a campaign's versions a test message is; null = the reader's own.
alter table batches add column if not exists variant smallint;
