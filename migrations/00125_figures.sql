-- Figures that events keep are recounted from the rows.

-- +goose Up

-- The states of removed coupons; null = removed before this step.
alter table removed_coupons add column used bigint, add column expired bigint, add column revoked bigint, add column discounted bigint;

-- When the figures of a template were last compared with the rows; none = never.
create table figure_recounts (
    template_id bigint not null,
    figure      text not null check (figure in ('bookings', 'tallies')),
    at          timestamptz not null default clock_timestamp(),
    primary key (template_id, figure)
) with (fillfactor = 50);

-- When an event last changed the tallies.
alter table coupon_tallies add column changed_at timestamptz not null default now();
