-- What operators see by: the trace that an event belongs to, and the slots
-- whose balance sheet is checked again after they have finished.

-- +goose NO TRANSACTION
-- +goose Up

-- W3C traceparent of what caused the event; '' when it is not traced.
alter table outbox add column if not exists trace text not null default '';

-- An index that was left half made by an interrupted attempt is made again.
drop index concurrently if exists slots_finished;
create index concurrently slots_finished on slots (finished_at) where state = 'finished';
