-- +goose Up

-- The cell that this database is: a database that holds whole shops (ADR 110). An
-- installation with one database is cell 0.
create table cell (
    here   boolean primary key default true check (here), -- one row
    number smallint not null default 0 check (number between 0 and 63)
);
insert into cell default values;

-- Tables of shops whose ids name their cell: (id - 1) mod 64 is its number. since is the
-- first id that does; ids below it are older and belong to cell 0.
create table cell_identities (
    name  text primary key,
    since bigint not null check (since > 0)
);

-- Makes the identities of tables name the cell of this database, from the next id on, which
-- is greater than all ids of the table and than older, the greatest id of cell 0 that is
-- older than cells. A table whose identity does so already is left as it is.
-- +goose StatementBegin
create function name_cell(tables text[], older bigint default 0) returns void language plpgsql as $$
declare
    title text;
    drawn bigint;
    used  bigint;
    first bigint;
    own   int := (select number + 1 from cell);
    ids   regclass;
begin
    foreach title in array tables loop
        continue when exists (select from cell_identities where name = title);
        ids := pg_get_serial_sequence(title, 'id');
        -- From here to the end of the transaction no other transaction draws an id.
        execute format('alter sequence %s increment by 64 start with %s', ids, own);
        execute format('select last_value - (not is_called)::int from %s', ids) into drawn;
        execute format('select coalesce(max(id), 0) from %I', title) into used;
        first := greatest(drawn, used, older) + 1;
        first := first + (own + 64 - first % 64) % 64;
        execute format('alter sequence %s restart with %s', ids, first);
        insert into cell_identities (name, since) values (title, first);
    end loop;
end
$$;
-- +goose StatementEnd

-- Shorter than deadlock_timeout: where a transaction waits for an id and this step for the
-- transaction, the step gives way, and is tried again.
set local lock_timeout = '500ms';

-- In the order in which transactions draw ids. Tables of the whole installation, such as
-- staff, api_keys and segments, and tables that only their own database reads, such as
-- outbox, are numbered as before.
select name_cell(array['templates', 'slots', 'announcements', 'campaigns', 'campaign_requests', 'notice_runs', 'batches',
    'code_batches', 'coupons', 'coupon_operations', 'uploads', 'jobs', 'dead_letter_jobs', 'report_links', 'drop_models',
    'message_versions', 'pictures', 'hook_endpoints', 'hook_events', 'hook_deliveries']);
