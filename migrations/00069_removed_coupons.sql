-- +goose Up

-- What was removed of a drop's coupons after their retention, so that its stock
-- still adds up: rows of coupons, those of them that were returned to stock, and
-- what the removed rows of claim_counts added up to.
create table removed_coupons (
    template_id bigint primary key,
    coupons     bigint not null,
    returned    bigint not null,
    counted     bigint not null,
    removed_at  timestamptz not null default now()
);
