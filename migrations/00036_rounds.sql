-- An opening that was moved away and back is delivered again to those who were
-- not reached before. due_at lies as many microseconds behind the due instant,
-- so that (template_id, slot, due_at) stays unique.

-- +goose Up
alter table slots add column if not exists round smallint not null default 0 check (round >= 0);
