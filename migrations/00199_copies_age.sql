-- +goose Up

-- Since when a change waits to be told to a cell: dropbell_copies_due_age_seconds is the age of the oldest.
alter table copies_due add column at timestamptz not null default clock_timestamp();
