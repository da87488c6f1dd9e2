-- +goose Up
-- drawn_at is when the draw was made, and decided_at when its last result was: after an entry was struck or lapsed.
alter table draws add column decided_at timestamptz;
update draws set decided_at = drawn_at;
