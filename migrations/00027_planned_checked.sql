-- Lateness counts from when a reminder could have gone out; checks of uploaded
-- tables know which users a table has twice.

-- +goose Up

-- Set where an opening was moved so near that the slot was due before it came
-- into being: when it did, or waited again. Null, and what an older program
-- writes, is due_at.
alter table slots add column planned_at timestamptz;
alter table batches add column planned_at timestamptz;

-- What the check of a table has seen: the last row of each user in each part
-- that was read at once. The check removes it at its end, else its job's
-- removal does. A crash of the database may empty it, as it may empty nothing
-- that was promised.
create unlogged table checked_rows (
    job_id  bigint not null references jobs (id) on delete cascade,
    user_id bigint not null,
    line    bigint not null,
    digest  bigint not null, -- of what the row says
    primary key (job_id, user_id, line)
);
