-- Which in-app messages may have come since a client lost its stream: batches by
-- their end, a row per thousand recipients. Built beside the work.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists batches_app_finished;
create index concurrently batches_app_finished on batches (finished_at) where channel = 0;
