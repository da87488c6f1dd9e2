-- +goose Up
-- A note of a drop is for staff only. Most drops have none, and the index leaves them out.
alter table templates add column note text not null default '' check (char_length(note) <= 500);
create index templates_note_parts on templates using gin (text_parts(note, 1)) where note <> '';
