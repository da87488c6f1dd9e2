-- The phones on which a user has the shop's app: platform, the token that Apple
-- or Google gave the app, its version and language, and when it was last seen.
-- They stand in the user's row, as browsers do, so that a batch reads both at once.
-- A token belongs to one user: it is looked up when another user signs in on the
-- same phone.

-- +goose NO TRANSACTION
-- +goose Up
alter table users add column if not exists devices jsonb not null default '[]';
drop index concurrently if exists users_devices;
create index concurrently users_devices on users using gin (devices jsonb_path_ops) where devices <> '[]';
