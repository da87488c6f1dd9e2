-- Every process looks each second who was erased since its last look, so that erased users
-- claim and reserve nothing. It serves the statements of the previous version as well.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists erased_users_order;
create index concurrently erased_users_order on erased_users (erased_at) include (user_id);
