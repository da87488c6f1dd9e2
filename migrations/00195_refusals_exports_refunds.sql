-- +goose Up
-- Refused claims of drops with doors by the door of the user and the code of the refusal; door 0 = the user comes
-- through none, or the door was not known. A crash of a web process loses the counts of its last quarter of a second.
create table door_refusals (
    template_id bigint not null,
    door        smallint not null check (door between 0 and 4),
    code        text not null,
    claims      bigint not null check (claims > 0),
    primary key (template_id, door, code)
) with (fillfactor = 50);

-- Attempts to export a drop that have failed, or are being made; each next one is later. late_since is since when the export has been
-- due; null = no attempt has failed.
alter table exports
    add column failures   int not null default 0,
    add column late_since timestamptz;

-- The user of a coupon is called its holder, as in refunds of orders. Rows with the former name stay and are read as
-- holder: the table is not written.
alter table templates alter column refund_to set default 'holder';
alter table templates drop constraint templates_refund_to_check;
alter table templates add constraint templates_refund_to_check check (refund_to in ('user', 'holder', 'stock')) not valid;

-- What refunds of orders with several coupons take back of the sums of each drop (sale_hours), in the hour of the refund. orders
-- is 1 if it returned the order's last lines. shared as in sale_hours: another drop of the shop counted the order.
create table coupon_order_nets (
    template_id bigint not null,
    order_id    text collate "C" not null,
    refund_id   text collate "C" not null,
    hour        timestamptz not null,
    orders      smallint not null,
    ordered     bigint not null,
    discount    bigint not null,
    shared      boolean not null,
    primary key (template_id, order_id, refund_id)
);
create index coupon_order_nets_order on coupon_order_nets (order_id);
