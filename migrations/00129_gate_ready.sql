-- +goose Up

-- ready_at: when the gate, or its shards that are being built, will be open, as the builder
-- estimates with each renewal of its lease. Claims that wait in vain are told to come again
-- then. The programs of the version before do not write it.
alter table gates add column ready_at timestamptz;
