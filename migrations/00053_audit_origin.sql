-- Where a change came from: the client's address and the id of the request that
-- made it. Null for changes of the programs themselves and from before.

-- +goose Up
alter table audit add column if not exists address text, add column if not exists request_id text;
