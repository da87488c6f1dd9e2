-- A replay or discard that is asked for twice with one key is one.

-- +goose Up
alter table dead_letter_jobs add column if not exists request_key text unique;
