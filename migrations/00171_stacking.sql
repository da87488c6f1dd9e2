-- +goose Up
-- Which coupons go together in one order, and what a partial refund does about a threshold. An
-- earlier program locks each coupon by itself and knows no orders of several coupons.
alter table templates
    add column stack_group text collate "C" not null default '',
    add column stacks_with text collate "C" not null default '', -- names of groups, separated by blanks
    add column max_per_order int not null default 1 check (max_per_order between 1 and 5),
    add column refund_rule text not null default 'keep' check (refund_rule in ('keep', 'recompute'));
