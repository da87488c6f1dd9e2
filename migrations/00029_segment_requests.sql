-- A form that is sent twice makes one segment.

-- +goose Up
alter table segments add column request_key text unique;

-- +goose Down
alter table segments drop column request_key;
