-- Results outlive the batches they were counted from. Once those are past
-- their retention, the balance sheet can no longer be recomputed.

-- +goose Up
alter table slot_results add column archived boolean not null default false;
