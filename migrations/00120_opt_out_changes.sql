-- The users whose opt-outs were changed, and the transaction that did so: a worker that
-- remembers the opted-out users of a channel asks for those that have changed since it
-- read them. Housekeeping notes when it first saw a row, which is after its transaction
-- ended, and removes it an hour later.

-- +goose Up
create table opt_out_changes (
    changed xid8 not null default pg_current_xact_id(),
    user_id bigint not null,
    seen    timestamptz
);
create index opt_out_changes_changed on opt_out_changes (changed);
create index opt_out_changes_seen on opt_out_changes (seen);

-- +goose StatementBegin
create function note_opt_outs() returns trigger language plpgsql security definer set search_path from current as $$
begin
    if tg_op <> 'INSERT' then
        insert into opt_out_changes (user_id) values (old.id);
    end if;
    if tg_op = 'INSERT' or tg_op = 'UPDATE' and new.id <> old.id then
        insert into opt_out_changes (user_id) values (new.id);
    end if;
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function note_opt_outs() from public;

create trigger users_opt_outs_stored after insert on users
    for each row when (new.opt_outs <> 0) execute function note_opt_outs();
create trigger users_opt_outs_changed after update of id, opt_outs on users
    for each row when (old.opt_outs <> new.opt_outs or old.id <> new.id) execute function note_opt_outs();
create trigger users_opt_outs_removed after delete on users
    for each row when (old.opt_outs <> 0) execute function note_opt_outs();
