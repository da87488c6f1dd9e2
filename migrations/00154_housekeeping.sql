-- +goose Up

-- What housekeeping will remove, and from when on the retention counts: a row per step and
-- drop or campaign. A step reads the rows whose retention is over by the index and deletes a
-- row when it has removed everything, so that a step with nothing to do reads nothing.
create table removals (
    step      text not null,
    object_id bigint not null, -- templates.id; campaigns.id for the step "campaigns"
    at        timestamptz not null,
    primary key (step, object_id)
);
create index removals_at on removals (step, at, object_id);

-- The progress of each step. A step that walks over rows in the order of their ids has
-- examined all rows up to position. again_from is the first of the examined rows that could
-- not be removed yet; they are examined again at again_at.
create table housekeeping_steps (
    step         text primary key,
    position     bigint not null default 0,
    again_from   bigint,
    again_at     timestamptz,
    ran_at       timestamptz, -- when the last run ended; null = no run yet
    ended_at     timestamptz, -- when a run last left nothing to do; null = no run did yet
    behind_since timestamptz, -- the first of the latest runs in a row that did not finish; null = the last run finished
    took_ms      bigint not null default 0, -- of the last run
    removed      bigint not null default 0, -- rows that the last run removed
    removed_ever bigint not null default 0,
    per_second   double precision not null default 0, -- rows of the last run that removed any
    remaining    bigint  -- drops, campaigns or rows that the last run left; null = not counted
) with (fillfactor = 50);

-- Plans the removal of a published drop's rows. Coupons are looked at when they may have
-- expired; the step then finds when the last of them does.
-- +goose StatementBegin
create function plan_removals() returns trigger language plpgsql security definer set search_path from current as $$
begin
    insert into removals as r (step, object_id, at) values
        ('reservations', new.id, new.opens_at), ('openings', new.id, new.closes_at),
        ('drops', new.id, greatest(new.opens_at, new.closes_at, new.ended_at)),
        ('coupons', new.id, coalesce(new.valid_until, new.closes_at + new.valid_hours * interval '1 hour'))
    on conflict (step, object_id) do update set at = excluded.at where r.at <> excluded.at;
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function plan_removals() from public;
create trigger templates_planned after insert or update of state, opens_at, closes_at, ended_at, valid_until, valid_hours on templates
    for each row when (new.state <> 'draft') execute function plan_removals();

-- Staff may give coupons of a drop away after its end, and after its coupons were removed.
-- +goose StatementBegin
create function plan_late_coupons() returns trigger language plpgsql security definer set search_path from current as $$
begin
    insert into removals as r (step, object_id, at) values ('coupons', new.id, coalesce(new.valid_until, now() + new.valid_hours * interval '1 hour'))
    on conflict (step, object_id) do update set at = excluded.at where r.at < excluded.at;
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function plan_late_coupons() from public;
create trigger templates_given after update of issued on templates
    for each row when (old.state in ('closed', 'cancelled') and new.issued > old.issued) execute function plan_late_coupons();

insert into removals (step, object_id, at)
select s.step, t.id, s.at from templates t cross join lateral (values
    ('reservations', t.opens_at), ('openings', t.closes_at), ('drops', greatest(t.opens_at, t.closes_at, t.ended_at)),
    ('coupons', coalesce(t.valid_until, t.closes_at + t.valid_hours * interval '1 hour'))) s (step, at)
where t.state <> 'draft';

-- Campaigns whose results are final, until they are archived. Their rows are removed then.
create index campaigns_settled on campaigns (ends_at) where settled_at is not null and not archived;
-- +goose StatementBegin
create function plan_campaign_removal() returns trigger language plpgsql security definer set search_path from current as $$
begin
    insert into removals (step, object_id, at) values ('campaigns', new.id, new.ends_at) on conflict (step, object_id) do nothing;
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function plan_campaign_removal() from public;
create trigger campaigns_archived after update of archived on campaigns
    for each row when (new.archived and not old.archived) execute function plan_campaign_removal();
insert into removals (step, object_id, at) select 'campaigns', id, ends_at from campaigns where archived;

-- The rows of a list go with their job. Programs of this version remove them in chunks
-- before the job; those of the version before found them by reading all rows.
-- +goose StatementBegin
create function remove_grant_rows() returns trigger language plpgsql security definer set search_path from current as $$
begin
    delete from grant_rows where sheet_id = old.id;
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function remove_grant_rows() from public;
create trigger jobs_grant_rows after delete on jobs for each row execute function remove_grant_rows();
