-- +goose Up

-- Draws with doors: an entry through a door has the door's weight (ADR 116). Doors of other drops have 1.
alter table doors add column weight smallint not null default 1 check (weight between 1 and 10);

-- For how many hours winners may accept their coupon; 0 = winners get it at once.
alter table templates add column accept_hours int not null default 0 check (accept_hours between 0 and 336);

-- door is the place of the door that the user entered through, 0 = the drop has none. channels are
-- those over which the user is told of the result, a bit each. offered_until is the first instant at
-- which a winner cannot accept any more, null = the coupon is given without acceptance; accepted_at is when
-- the winner did. told_by is the announcement that told the winner.
alter table draw_entries
    add column door          smallint not null default 0 check (door between 0 and 4),
    add column channels      smallint not null default 1 check (channels between 1 and 31),
    add column offered_until timestamptz,
    add column accepted_at   timestamptz,
    add column told_by       bigint;
alter table draw_entries drop constraint draw_entries_state_check;
alter table draw_entries add constraint draw_entries_state_check check (state in ('entered', 'won', 'struck', 'lapsed')) not valid;

-- A winner who did not accept in time lapsed: the draw is made again without the ticket, as with a
-- struck ticket. offers counts how often offers were made, and offers_until is when the first open
-- offer ends. lost_told is whether the users who did not win are told by an announcement.
alter table draws
    add column lapsed       bigint not null default 0,
    add column offers       smallint not null default 0,
    add column offers_until timestamptz,
    add column lost_told    boolean not null default false;
alter table draws drop constraint draws_state_check;
alter table draws add constraint draws_state_check
    check (state in ('open', 'closed', 'sealed', 'drawn', 'offered', 'done', 'cancelled')) not valid;
drop index draws_unfinished;
create index draws_unfinished on draws (template_id) where state in ('open', 'closed', 'sealed', 'drawn', 'offered');

-- The root of the chunk's subtree: with the roots of all chunks a path to the sealed root needs one chunk.
alter table draw_chunks add column root bytea check (length(root) = 32);

-- Messages to users who won, and to users who did not.
alter table message_versions drop constraint message_versions_kind_check;
alter table message_versions add constraint message_versions_kind_check
    check (kind in ('reminder', 'correction', 'cancelled', 'notice', 'waitlist', 'offer', 'won', 'lost', 'names', 'settings', 'picture')) not valid;
alter table announcements drop constraint announcements_kind_check;
alter table announcements add constraint announcements_kind_check check (kind in ('correction', 'cancelled', 'waitlist', 'offer', 'won', 'lost')) not valid;
