-- +goose Up

-- Drops whose coupons changed lately, with the first change of the last day (UTC) on which
-- some changed: the counts that compare figures with the rows read these drops, not all that
-- ever were.
create table tally_changes (
    template_id bigint primary key,
    at          timestamptz not null
);
create index tally_changes_at on tally_changes (at);

-- +goose StatementBegin
create function note_tally_change() returns trigger language plpgsql security definer set search_path from current as $$
begin
    insert into tally_changes as c (template_id, at) values (new.template_id, new.changed_at)
    on conflict (template_id) do update set at = excluded.at where c.at < excluded.at;
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function note_tally_change() from public;
create trigger coupon_tallies_stored after insert on coupon_tallies for each row execute function note_tally_change();
create trigger coupon_tallies_changed after update of changed_at on coupon_tallies
    for each row when (floor(extract(epoch from old.changed_at) / 86400) <> floor(extract(epoch from new.changed_at) / 86400))
    execute function note_tally_change();
insert into tally_changes (template_id, at) select template_id, changed_at from coupon_tallies;

-- What sold lately, and whose owners are still to be checked.
create index claim_seconds_second on claim_seconds (second);
create index stock_counts_unchecked on stock_counts (template_id) where checked_to < seen_to;
-- Sums of the last hours.
create index sale_hours_hour on sale_hours (hour);
