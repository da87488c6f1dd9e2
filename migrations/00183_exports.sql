-- +goose Up

-- Drops that are over, to be exported in the next night of the shop's time zone, and again in the
-- night after their last coupons have expired (docs/exports.md).
create table exports (
    template_id bigint primary key,
    due_at      timestamptz, -- null = the last export is done
    final       boolean not null default false, -- the export that is due, or was made last, is the last one
    exported_at timestamptz,
    rows        bigint not null default 0,
    bytes       bigint not null default 0
);
create index exports_due on exports (due_at, template_id) where due_at is not null;

-- The first instant of the night after an instant: three o'clock in the time zone.
create function night_after(at timestamptz, zone text) returns timestamptz language sql stable as $$
    select (date_trunc('day', at at time zone zone) + case when extract(hour from at at time zone zone) < 3 then interval '3 hours' else interval '27 hours' end) at time zone zone
$$;

-- +goose StatementBegin
create function plan_export() returns trigger language plpgsql security definer set search_path from current as $$
begin
    insert into exports (template_id, due_at)
    select new.id, night_after(coalesce(new.ended_at, clock_timestamp()), s.timezone) from shops s where s.number = new.shop_number
    on conflict (template_id) do nothing;
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function plan_export() from public;
create trigger templates_over after update of state on templates
    for each row when (new.state in ('closed', 'cancelled') and old.state not in ('closed', 'cancelled') and new.published_at is not null) execute function plan_export();

insert into exports (template_id, due_at)
select t.id, night_after(coalesce(t.ended_at, clock_timestamp()), s.timezone) from templates t join shops s on s.number = t.shop_number
where t.state in ('closed', 'cancelled') and t.published_at is not null and not exists (select from drop_archives a where a.template_id = t.id);
