-- Limits on repeated messages about one drop whose opening moves several times.

-- +goose Up
set local lock_timeout = '5s';

-- True after a move for which staff chose "nobody again": a user who has been
-- sent the reminder of a slot and channel is not sent it again for the new opening.
alter table templates add column if not exists remind_once boolean not null default false;

-- A user who has been sent this many corrections of the drop gets no more.
alter table announcements add column if not exists per_person smallint not null default 3 check (per_person > 0);
