-- Indexes for the console's long lists: each filter of a page has one that
-- yields its rows in the page's order, so that a page reads about as many rows
-- as it shows, however many there are. A batch is a thousand recipients, so
-- what these cost its few updates is nothing per recipient.

-- +goose NO TRANSACTION
-- +goose Up

-- Deliveries, latest due first: all, of a template, on a channel, of a kind.
-- An index that was left half made by an interrupted attempt is made again.
drop index concurrently if exists batches_due;
create index concurrently batches_due on batches (due_at, id);
drop index concurrently if exists batches_template_due;
create index concurrently batches_template_due on batches (template_id, due_at, id);
drop index concurrently if exists batches_channel_due;
create index concurrently batches_channel_due on batches (channel, due_at, id);
drop index concurrently if exists batches_kind_due;
create index concurrently batches_kind_due on batches (kind, due_at, id);

-- The same for what is rare, where a walk through all batches would end only
-- at the last one: unfinished, and with people whom the message did not reach.
drop index concurrently if exists batches_unfinished;
create index concurrently batches_unfinished on batches (due_at, id) where state <> 'done';
drop index concurrently if exists batches_failed;
create index concurrently batches_failed on batches (due_at, id) where failed_count > 0;
drop index concurrently if exists batches_dead;
create index concurrently batches_dead on batches (due_at, id) where dead_count > 0;
drop index concurrently if exists batches_expired;
create index concurrently batches_expired on batches (due_at, id) where expired_count > 0;
drop index concurrently if exists batches_skipped;
create index concurrently batches_skipped on batches (due_at, id) where skipped_count > 0;

-- Which batches may hold a user. The greatest id has no successor, which
-- int8range would need for its end: it is written as unbounded.
drop index concurrently if exists batches_range;
create index concurrently batches_range on batches using gist (int8range(from_user, nullif(to_user, 9223372036854775807), '[]'));

-- The audit log, newest first: of one actor by label (the name behind it may
-- have changed), of one action, of a shop, and those for which somebody gave
-- a reason, in which text is searched.
drop index concurrently if exists audit_label;
create index concurrently audit_label on audit (split_part(actor, ' ', 1), id desc);
drop index concurrently if exists audit_action;
create index concurrently audit_action on audit (action, id desc);
drop index concurrently if exists audit_shop;
create index concurrently audit_shop on audit (shop_number, id desc);
drop index concurrently if exists audit_reason;
create index concurrently audit_reason on audit (id desc) where reason <> '';
