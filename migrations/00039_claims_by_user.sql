-- A claim is looked for among the coupons of its user, which are few and have
-- an index. One by the claims' random ids was a tenth of what a coupon costs in
-- a rush. That nobody is given two coupons for one claim is seen to by
-- claim_counts: whoever writes a user's first coupon of a template inserts its
-- row, and whoever writes another one has locked the template.

-- +goose Up
alter table coupons drop constraint if exists coupons_claim_id_key;
