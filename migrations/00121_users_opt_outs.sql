-- The users who have opted out with their channels, so that all who have opted out of one
-- are read from the index alone. It serves the statements of the previous version as well.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists users_opt_outs;
create index concurrently users_opt_outs on users (id) include (opt_outs) where opt_outs <> 0;
drop index concurrently if exists users_opted_out;
