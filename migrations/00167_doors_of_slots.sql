-- +goose Up

-- For which doors a slot is, as bits of their places, the first door in bit 0; 0 = for all users of the
-- drop. The doors of a slot open at its opens_at.
alter table slots add column doors smallint not null default 0 check (doors between 0 and 15);

-- How many thousandths of the users with a reservation, and of those with a coupon that was claimed, come
-- through the door, as estimated from a sample at counted_at; null = not estimated yet.
alter table doors
    add column booked_share  smallint check (booked_share between 0 and 1000),
    add column claimed_share smallint check (claimed_share between 0 and 1000),
    add column counted_at    timestamptz;
create index doors_counted on doors (counted_at nulls first) where place = 1;

-- The doors of the drop that open at the instant, as in slots; 0 = none.
-- +goose StatementBegin
create function doors_at(drop_id bigint, at timestamptz) returns smallint language sql stable parallel safe as $$
    select coalesce(bit_or(1 << (d.place - 1)), 0)::smallint from doors d join templates t on t.id = d.template_id
    where d.template_id = drop_id and at = t.opens_at - make_interval(mins => d.lead_minutes)
$$;

-- About how many of the drop's bookings are by users of these doors.
create function booked_by(drop_id bigint, of_doors smallint, booked bigint) returns bigint language sql stable parallel safe as $$
    select case when coalesce(of_doors, 0) = 0 or booked = 0 then booked else (
        select case when count(d.booked_share) = count(*) then (booked * coalesce(sum(d.booked_share) filter (where of_doors & (1 << (d.place - 1)) <> 0), 0) + 500) / 1000
            else booked * count(*) filter (where of_doors & (1 << (d.place - 1)) <> 0) / greatest(1, count(*)) end
        from doors d where d.template_id = drop_id) end
$$;
-- +goose StatementEnd
