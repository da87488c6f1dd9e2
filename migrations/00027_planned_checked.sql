-- Lateness counts from when a reminder could have gone out; checks of uploaded
-- tables know which users a table has twice; templates have the fields of their
-- kind and target alone.

-- +goose NO TRANSACTION
-- +goose Up

-- May be repeated from the start.

-- Set where an opening was moved so near that the slot was due before it came
-- into being: when it did, or waited again. Null, and what an older program
-- writes, is due_at.
alter table slots add column if not exists planned_at timestamptz;
alter table batches add column if not exists planned_at timestamptz;

-- What the check of a table has seen: the last row of each user in each part
-- that was read at once. The check removes it at its end, else its job's
-- removal does. A crash of the database may empty it, as it may empty nothing
-- that was promised.
create unlogged table if not exists checked_rows (
    job_id  bigint not null references jobs (id) on delete cascade,
    user_id bigint not null,
    line    bigint not null,
    digest  bigint not null, -- of what the row says
    primary key (job_id, user_id, line)
);

-- Nobody looks at these; what is written from now on does not have them.
update templates set amount_off = case kind when 'percent_off' then 0 else amount_off end,
    threshold = case kind when 'amount_off' then 0 else threshold end,
    percent_off = case kind when 'percent_off' then percent_off else 0 end,
    max_off = case kind when 'percent_off' then max_off else 0 end,
    product = case target when 'product' then product else '' end
where kind = 'percent_off' and amount_off <> 0 or kind = 'amount_off' and threshold <> 0
    or kind <> 'percent_off' and (percent_off <> 0 or max_off <> 0) or target <> 'product' and product <> '';
