-- +goose Up

-- Coupons of the order that were refunded by themselves before this refund: their steps have been counted in what the
-- drops earned. A step of a coupon that is not named by a refund of its order counts nothing.
alter table coupon_order_refunds add column alone bigint[] not null default '{}';
