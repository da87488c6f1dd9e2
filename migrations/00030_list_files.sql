-- The files of a list are shown with it, and looked at when a campaign to it
-- is published.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists jobs_lists;
create index concurrently jobs_lists on jobs ((params ->> 'segment_id'), id) where kind = 'segment.list';
