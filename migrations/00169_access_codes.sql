-- +goose Up

-- Access codes that users have entered: each belongs to the first user who does. They are codes of a
-- batch, known by their serial numbers. user_id is null after the user was erased; the code stays used.
-- There are no foreign keys: they would wait for locks of a busy drop, and drops with codes are not deleted.
create table door_codes (
    serial      bigint primary key,
    template_id bigint not null,
    batch_id    bigint not null,
    user_id     bigint,
    at          timestamptz not null default clock_timestamp(),
    unique (template_id, user_id)
);
create index door_codes_user on door_codes (user_id) where user_id is not null;
