-- Addresses and secrets of chat groups, sealed for their row; null = url and secret hold them
-- as they are, which is so of rows of the previous version until a worker of this version starts.

-- +goose Up
alter table alert_destinations add column sealed bytea;
