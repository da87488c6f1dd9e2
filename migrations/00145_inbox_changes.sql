-- +goose Up

-- In-app batches whose sent messages changed, with the number of the transaction that
-- changed them: web remembers batches, and reads with each page of an inbox the changes
-- since. topic is 0 for a drop, 1 for a campaign and 2 for the test messages of all
-- campaigns, which have the id 0. batch_id is 0 if batches of the topic were removed.
-- Housekeeping notes in seen when it first saw a row, which is after the row's
-- transaction ended, and removes the row an hour later.
create table inbox_changes (
    changed  xid8 not null default pg_current_xact_id(),
    topic    smallint not null check (topic between 0 and 2),
    topic_id bigint not null,
    batch_id bigint not null,
    seen     timestamptz
);
create index inbox_changes_changed on inbox_changes (changed);
create index inbox_changes_seen on inbox_changes (seen);

-- +goose StatementBegin
create function note_inbox_change() returns trigger language plpgsql security definer set search_path from current as $$
begin
    insert into inbox_changes (topic, topic_id, batch_id) values (
        case new.kind when 'campaign' then 1 when 'test' then 2 else 0 end,
        case new.kind when 'campaign' then new.owner_id when 'test' then 0 else new.template_id end, new.id);
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function note_inbox_change() from public;

-- +goose StatementBegin
create function note_inbox_removal() returns trigger language plpgsql security definer set search_path from current as $$
begin
    insert into inbox_changes (topic, topic_id, batch_id)
    select distinct case kind when 'campaign' then 1 when 'test' then 2 else 0 end,
        case kind when 'campaign' then owner_id when 'test' then 0 else template_id end, 0
    from gone where channel = 0 and kind <> 'notice';
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function note_inbox_removal() from public;

create trigger batches_inbox_stored after insert on batches
    for each row when (new.channel = 0 and new.sent is not null and new.kind <> 'notice') execute function note_inbox_change();
create trigger batches_inbox_changed after update of sent, finished_at on batches
    for each row when (new.channel = 0 and new.kind <> 'notice'
        and (old.sent is distinct from new.sent or old.finished_at is distinct from new.finished_at))
    execute function note_inbox_change();
create trigger batches_inbox_removed after delete on batches
    referencing old table as gone for each statement execute function note_inbox_removal();

-- Names the server's transaction history: numbers of transactions may be given again after
-- a crash, a failover or a restore, and after each of these an unlogged table is empty. web
-- writes the row.
create unlogged table inbox_history (
    single boolean primary key default true check (single),
    name uuid not null default gen_random_uuid()
);
