-- +goose Up

-- Numbers of a drop's rows that were removed after their retention, so that its stock
-- still adds up: rows of coupons, those of them that were returned to stock, and
-- the sum of the removed rows of claim_counts.
create table removed_coupons (
    template_id bigint primary key,
    coupons     bigint not null,
    returned    bigint not null,
    counted     bigint not null,
    removed_at  timestamptz not null default now()
);
