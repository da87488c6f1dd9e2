-- The picture of a drop's coupon is a version of a text, so that a batch keeps the one of the
-- moment at which it was cut. Programs of the release before it ignore the kind.

-- +goose Up
alter table message_versions drop constraint message_versions_kind_check;
alter table message_versions add constraint message_versions_kind_check
    check (kind in ('reminder', 'correction', 'cancelled', 'notice', 'names', 'settings', 'picture')) not valid;
