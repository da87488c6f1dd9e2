-- Events of a topic that is summed before it is relayed (see workdb.Outbox) are
-- published only after their sum was committed: an event that may have been
-- published alone must not be part of a sum, too. The previous version relays all
-- events alone and writes none that is merged.

-- +goose Up
alter table outbox add column merged boolean not null default false;
