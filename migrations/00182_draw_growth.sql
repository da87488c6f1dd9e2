-- +goose Up
-- How many entries of a draw were made and left in each minute; the sum is the number of entries. Each connection
-- counts in one of 16 rows, as in draw_counts.
create table draw_growth (
    template_id bigint not null,
    minute      timestamptz not null,
    shard       smallint not null,
    delta       bigint not null,
    primary key (template_id, minute, shard)
) with (fillfactor = 50);
