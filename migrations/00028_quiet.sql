-- Whoever has quiet hours is found among a thousand recipients without reading
-- them all.

-- +goose NO TRANSACTION
-- +goose Up
create index concurrently if not exists users_quiet on users (id) where quiet_from <> quiet_to;

-- +goose Down
drop index concurrently if exists users_quiet;
