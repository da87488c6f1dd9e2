-- +goose Up
-- The percentage of a drop's users who get no reminder, so that the effect of its reminders can
-- be measured. A worker of an earlier program reminds them too.
alter table templates add column hold_out_percent int not null default 0 check (hold_out_percent between 0 and 90);
