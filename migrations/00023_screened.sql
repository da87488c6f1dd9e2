-- Which of the batches in somebody's hands was the first to look at whom it reaches.

-- +goose Up

-- The lease under which the batch's recipients were held to the limits of their
-- shop: from then on, until the lease ends, they belong to this batch, and
-- batches of the shop's other campaigns wait. Null in shops without limits.
alter table batches add column screened uuid;
