-- +goose Up

-- The cells that this database tells of changes: cell 0 tells every other cell of the tables that all
-- cells have a copy of (ADR 126). An installation with one database has no row.
create table copying_cells (
    cell        smallint primary key check (cell between 0 and 63),
    since       timestamptz not null default clock_timestamp(),
    compared_at timestamptz -- when all rows were last compared; null = not yet
);

-- Rows whose change is still to be told to a cell. Only the key is kept: the row is copied as it is then.
create table copies_due (
    seq  bigint generated always as identity primary key,
    cell smallint not null references copying_cells (cell) on delete cascade,
    name text not null, -- of the table
    key  text[] not null -- the columns of the primary key, in order
);
create index copies_due_cell on copies_due (cell, seq);

-- +goose StatementBegin
create function note_copies() returns trigger language plpgsql security definer set search_path from current as $$
begin
    execute format('insert into copies_due (cell, name, key) select c.cell, %L, array[%s] from changed t, copying_cells c', tg_table_name, tg_argv[0]);
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function note_copies() from public;

-- Makes changes of the tables known to the cells in copying_cells, from now on. A table that does so
-- already is left as it is. An installation with one database has none of these triggers.
-- +goose StatementBegin
create function copy_changes(tables text[]) returns void language plpgsql as $$
declare
    title text;
    keys  text;
begin
    foreach title in array tables loop
        continue when exists (select from pg_trigger where tgrelid = title::regclass and tgname = 'copied_insert');
        select string_agg(format('t.%I::text', a.attname), ', ' order by k.place) into keys
            from pg_index i, unnest(i.indkey::int2[]) with ordinality k (attnum, place), pg_attribute a
            where i.indrelid = title::regclass and i.indisprimary and a.attrelid = i.indrelid and a.attnum = k.attnum;
        execute format('create trigger copied_insert after insert on %I referencing new table as changed for each statement execute function note_copies(%L)', title, keys);
        execute format('create trigger copied_update after update on %I referencing new table as changed for each statement execute function note_copies(%L)', title, keys);
        execute format('create trigger copied_delete after delete on %I referencing old table as changed for each statement execute function note_copies(%L)', title, keys);
    end loop;
end
$$;
-- +goose StatementEnd

-- Shops that other cells have, as their workers told. A shop is made in one cell only.
create table shops_elsewhere (
    shop_number bigint primary key,
    cell        smallint not null check (cell between 0 and 63)
);

-- +goose StatementBegin
create or replace function refuse_moved_shop() returns trigger language plpgsql as $$
begin
    if exists (select from moves where shop_number = new.number and state in ('emptied', 'left'))
        or exists (select from shops_elsewhere e where e.shop_number = new.number and not exists (select from moves m where m.shop_number = new.number and m.state = 'arriving')) then
        raise exception 'the shop has moved to another database' using errcode = 'DB003';
    end if;
    return new;
end
$$;
-- +goose StatementEnd
