-- +goose Up

-- The figures of drops whose reservations were removed, a row per drop. The counts of users
-- and the curve are of the moment before the removal. packed_at is when the rows of the drop's
-- slots were moved here as well; the functions below return them as rows.
create table drop_archives (
    template_id bigint primary key references templates (id) on delete cascade,
    counted_at  timestamptz not null default clock_timestamp(),
    -- Users who booked; of these who were reminded, opened a link, got a coupon, used it; and
    -- users who got a coupon without having booked.
    booked      bigint not null,
    reminded    bigint not null,
    opened      bigint not null,
    claimed     bigint not null,
    used        bigint not null,
    others      bigint not null,
    partial     boolean not null, -- some of the rows were removed before they were counted
    growth      jsonb, -- the booking curve, thinned: [[seconds since 1970, booked], …]
    packed_at   timestamptz,
    slots       jsonb,
    results     jsonb,
    forecasts   jsonb,
    bookings    jsonb
);

create function slots_of(drop_id bigint) returns setof slots language sql stable parallel safe rows 12 as $$
    select * from slots where template_id = drop_id
    union all
    select p.* from drop_archives a, jsonb_populate_recordset(null::slots, a.slots) p where a.template_id = drop_id
$$;

create function slot_results_of(drop_id bigint) returns setof slot_results language sql stable parallel safe rows 24 as $$
    select r.* from slots s join slot_results r on r.slot_id = s.id where s.template_id = drop_id
    union all
    select p.* from drop_archives a, jsonb_populate_recordset(null::slot_results, a.results) p where a.template_id = drop_id
$$;

create function slot_forecasts_of(drop_id bigint) returns setof slot_forecasts language sql stable parallel safe rows 24 as $$
    select f.* from slots s join slot_forecasts f on f.slot_id = s.id where s.template_id = drop_id
    union all
    select p.* from drop_archives a, jsonb_populate_recordset(null::slot_forecasts, a.forecasts) p where a.template_id = drop_id
$$;

create function bookings_of(drop_id bigint) returns setof bookings language sql stable parallel safe rows 24 as $$
    select * from bookings where template_id = drop_id
    union all
    select p.* from drop_archives a, jsonb_populate_recordset(null::bookings, a.bookings) p where a.template_id = drop_id
$$;
