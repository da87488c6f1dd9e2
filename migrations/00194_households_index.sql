-- +goose NO TRANSACTION
-- +goose Up
-- The users of one household. An interrupted build leaves an index that is not valid.
drop index concurrently if exists users_household;
create index concurrently users_household on users (household) where household <> '';
