-- +goose Up

-- Shops that move to another database, have left for one, or are arriving from one (ADR 110).
create table moves (
    shop_number bigint primary key,
    cell        smallint not null check (cell between 0 and 63), -- the other database
    -- leaving → emptied (the rows are removed here, moving_rows are still to be stored there) → left;
    -- arriving: the rows are copied to this database, until they are removed in the other one
    state       text not null check (state in ('leaving', 'emptied', 'left', 'arriving')),
    started_at  timestamptz not null default clock_timestamp(),
    moved_at    timestamptz -- when the rows were removed here
);

-- Rows of a shop that has left that begin work by themselves, such as waiting slots: they are
-- never in both databases. Each is stored in the other database and then removed here.
create table moving_rows (
    shop_number bigint not null references moves (shop_number) on delete cascade,
    seq         bigint not null,
    name        text not null, -- of the table
    content     jsonb not null,
    primary key (shop_number, seq)
);

-- A shop that has left is not begun anew under its number.
-- +goose StatementBegin
create function refuse_moved_shop() returns trigger language plpgsql as $$
begin
    if exists (select from moves where shop_number = new.number and state in ('emptied', 'left')) then
        raise exception 'the shop has moved to another database' using errcode = 'DB003';
    end if;
    return new;
end
$$;
-- +goose StatementEnd
create trigger shops_moved before insert on shops for each row execute function refuse_moved_shop();

-- Makes the next id of a table greater than beyond, an id of another cell, unless it is already.
-- +goose StatementBegin
create function begin_above(title text, beyond bigint) returns void language plpgsql as $$
declare
    drawn bigint;
    first bigint := beyond + 1;
    own   int := (select number + 1 from cell);
    ids   regclass := pg_get_serial_sequence(title, 'id');
begin
    -- From here to the end of the transaction no other transaction draws an id.
    execute format('alter sequence %s increment by 64', ids);
    execute format('select last_value from %s', ids) into drawn;
    if drawn <= beyond then
        execute format('alter sequence %s restart with %s', ids, first + (own + 64 - first % 64) % 64);
    end if;
end
$$;
-- +goose StatementEnd
