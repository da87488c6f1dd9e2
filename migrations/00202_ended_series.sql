-- +goose Up

-- When a series ended, as long as its standing reservations are kept; null = it has not ended, or they are removed.
alter table series add column ended_at timestamptz;
update series set ended_at = clock_timestamp() where state = 'ended';
create index series_ended on series (ended_at) where ended_at is not null;
