-- +goose Up

-- How far the coupons of a template that is selling are counted, so that each is
-- counted once. Ids are drawn before they are committed: coupons up to counted_to
-- are in coupons for good, because every transaction that ran when counted_to was
-- looked up has ended; seen_to is the next counted_to, once every transaction
-- before seen_xact has ended.
create table stock_counts (
    template_id bigint primary key,
    coupons     bigint not null,
    counted_to  bigint not null,
    seen_to     bigint not null,
    seen_xact   xid8 not null,
    -- Owners of coupons up to this id have as many as claim_counts says.
    checked_to  bigint not null default 0
) with (fillfactor = 50);
