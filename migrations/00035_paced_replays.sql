-- How far a replay with a rate is within a batch, and up to when it has used
-- its rate up.

-- +goose Up
alter table dead_letter_jobs add column if not exists part_batch bigint;
alter table dead_letter_jobs add column if not exists part_user bigint;
alter table dead_letter_jobs add column if not exists paced_at timestamptz;
