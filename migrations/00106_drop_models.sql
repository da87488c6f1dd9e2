-- Drops that staff saved under a name, for new drops of the shop to start from.

-- +goose Up

create table drop_models (
    id          bigint generated always as identity primary key,
    shop_number bigint not null references shops (number),
    name        text not null check (char_length(name) between 1 and 60),
    content     jsonb not null, -- staff's settings of the drop at the time of saving
    saved_by    text not null,  -- as in audit
    created_at  timestamptz not null default clock_timestamp(),
    deleted_at  timestamptz     -- it can be restored for a while from then on
);
create unique index drop_models_name on drop_models (shop_number, lower(name)) where deleted_at is null;
create index drop_models_deleted on drop_models (deleted_at) where deleted_at is not null;
