-- +goose Up

-- Databases that were taken out of the installation. Home has a row for each of them, so that another
-- database with the number draws greater ids; a database that was taken out has its own row, and takes no
-- shops.
create table removed_cells (
    cell       smallint primary key check (cell between 1 and 63),
    last_id    bigint not null, -- no id of the database is greater,
    last_code  bigint not null, -- and no serial number of its redeem codes
    removed_at timestamptz not null default clock_timestamp()
);

-- +goose StatementBegin
create function refuse_shop_of_removed_cell() returns trigger language plpgsql as $$
begin
    if exists (select from removed_cells r join cell c on c.number = r.cell) then
        raise exception 'the database was taken out of the installation' using errcode = 'DB003';
    end if;
    return new;
end
$$;
-- +goose StatementEnd
create trigger shops_of_removed_cell before insert on shops for each row execute function refuse_shop_of_removed_cell();
