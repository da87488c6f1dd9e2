-- +goose Up
alter table coupons validate constraint coupons_origin_check;
