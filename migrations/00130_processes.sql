-- The running processes. Where Redis keeps a limit for all of them, each keeps its part of
-- it while Redis does not answer, and counts the others here. A process enters itself when it
-- starts, renews its row while it runs, and removes it when it ends.

-- +goose Up
create table processes (
    id       uuid primary key,
    program  text not null,
    channels smallint not null, -- bits of the channels that it delivers
    seen_at  timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
