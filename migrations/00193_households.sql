-- +goose Up

-- household is a keyed hash that the shop sends with its users; users of one household have the same.
-- household_limit is how many coupons of a drop the users of one household may have, 0 = no limit.
alter table users add column household text collate "C" not null default '';
alter table templates add column household_limit int not null default 0 check (household_limit between 0 and 1000);

-- The household of which the user was when the user's first coupon of a drop with household_limit was issued; null = of none,
-- or the drop has no such limit. The user's coupons of the drop count for it, whatever becomes of the user.
alter table claim_counts add column household bigint;
create index claim_counts_household on claim_counts (template_id, household) where household is not null;

-- household_number is the number of a household in claim_counts and in the gate, null for users of none. It is never
-- negative.
create function household_number(household text) returns bigint language sql immutable parallel safe as $$
select case when household <> '' then greatest(hashtextextended(household, 193) & 9223372036854775807, 1) end
$$;

