-- Who was erased: nothing is stored about these numbers again until somebody
-- allows it.

-- +goose Up
create table erased_users (
    user_id   bigint primary key,
    erased_at timestamptz not null default now(),
    erased_by text not null -- label and name
);
