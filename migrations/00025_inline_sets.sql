-- The sets of a batch lie in its row.

-- +goose Up

-- Sets of a thousand scattered users take 2 kB each and do not compress. At
-- the default they go to a table of their own, which costs a row and an index
-- entry at every checkpoint, and a search at every look at somebody's outcome.
-- Rows that are written from now on keep them.
alter table batches set (toast_tuple_target = 8160);
