-- +goose Up

-- How often staff changed the group of a door after the first card, until the members were frozen.
alter table draws add column group_changes integer not null default 0;
