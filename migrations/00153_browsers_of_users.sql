-- +goose NO TRANSACTION
-- +goose Up

-- Users by their browsers: a browser that registers for another user is looked up among
-- all users. An interrupted build leaves an index that is not valid.
drop index concurrently if exists users_push;
create index concurrently users_push on users using gin (push jsonb_path_ops) where push <> '[]';
