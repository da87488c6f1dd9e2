-- +goose Up

-- Whether an endpoint is also told of rehearsals of the shop's drops (docs/rehearsal.md).
alter table hook_endpoints add column rehearsals boolean not null default false;
