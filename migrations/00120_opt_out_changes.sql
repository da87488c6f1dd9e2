-- The users whose opt-outs were changed, and the transaction that did so, kept for an
-- hour: a worker that holds the opted-out users of a channel in memory asks for those
-- that have changed since it read them. A row without a user says that any may have.

-- +goose Up
create table opt_out_changes (
    changed xid8 not null default pg_current_xact_id(),
    user_id bigint,
    at      timestamptz not null default clock_timestamp()
);
create index opt_out_changes_changed on opt_out_changes (changed);
create index opt_out_changes_at on opt_out_changes (at);

-- +goose StatementBegin
create function note_opt_outs() returns trigger language plpgsql as $$
begin
    if tg_op = 'TRUNCATE' then
        insert into opt_out_changes default values;
    elsif tg_op = 'DELETE' then
        insert into opt_out_changes (user_id) values (old.id);
    else
        insert into opt_out_changes (user_id) values (new.id);
    end if;
    return null;
end
$$;
-- +goose StatementEnd

create trigger users_opt_outs_stored after insert on users
    for each row when (new.opt_outs <> 0) execute function note_opt_outs();
create trigger users_opt_outs_changed after update of opt_outs on users
    for each row when (old.opt_outs <> new.opt_outs) execute function note_opt_outs();
create trigger users_opt_outs_removed after delete on users
    for each row when (old.opt_outs <> 0) execute function note_opt_outs();
create trigger users_opt_outs_truncated after truncate on users
    for each statement execute function note_opt_outs();
