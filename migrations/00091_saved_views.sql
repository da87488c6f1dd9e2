-- Filters of lists that members saved under a name, for themselves or for everybody.

-- +goose Up

create table saved_views (
    id         bigint generated always as identity primary key,
    staff_id   bigint not null references staff (id),
    list       text not null check (char_length(list) <= 40),
    name       text not null check (char_length(name) between 1 and 60),
    query      text not null check (char_length(query) <= 1000), -- of the list's address
    shared     boolean not null default false,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp()
);
create unique index saved_views_name on saved_views (staff_id, list, lower(name));
create index saved_views_shared on saved_views (list) where shared;
