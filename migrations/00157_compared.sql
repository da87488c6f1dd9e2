-- +goose Up
-- Whether the results of the campaign have what the interval of an increment is computed from, or
-- cannot get it any more. Results that were final before increments existed are false, until a worker
-- has counted them once more.
alter table campaigns add column compared boolean not null default false;
