-- +goose Up

-- For the removal of lists that rounds of recipes made.
create index segments_hidden on segments (created_at) where hidden;
