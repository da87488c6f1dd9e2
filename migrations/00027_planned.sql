-- Lateness counts from when a reminder could have gone out.

-- +goose Up

-- Set where an opening was moved so near that the slot was due before it came
-- into being: when it did, or waited again. Null, and what an older program
-- writes, is due_at.
alter table slots add column planned_at timestamptz;
alter table batches add column planned_at timestamptz;
