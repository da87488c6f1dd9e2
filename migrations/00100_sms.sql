-- Text messages: their cost, their names at providers, and opt-outs by text message.

-- +goose Up

-- Parts of text messages that were handed over on a day (UTC). refused_at is when the
-- day's budget first had no room for a message.
create table sms_spent (
    day        date primary key,
    parts      bigint not null,
    refused_at timestamptz
);

-- Names that a provider gave to messages, for receipts that name nothing else; kept four
-- days. reference is signed.
create table sms_serials (
    provider  text not null,
    serial    text not null,
    reference text not null,
    kept_at   timestamptz not null default clock_timestamp(),
    primary key (provider, serial)
);
create index sms_serials_kept on sms_serials (kept_at);

-- Users whose opt-out of SMS was set by STOP, and by nothing else: START takes it back.
create table sms_stops (
    user_id    bigint primary key references users (id) on delete cascade,
    stopped_at timestamptz not null default clock_timestamp()
);

-- Text messages that people sent and that were carried out, so that a repeated callback
-- changes nothing; kept four days. No numbers and no texts.
create table sms_replies (
    provider text not null,
    id       bytea not null, -- SHA-256 of the provider's name of the message
    word     text not null check (word in ('stop', 'start', 'help')),
    users    int not null,
    taken_at timestamptz not null default clock_timestamp(),
    primary key (provider, id)
);
create index sms_replies_taken on sms_replies (taken_at);

-- +goose StatementBegin
-- An opt-out that is set or lifted in any other way is no longer STOP's.
create function forget_sms_stop() returns trigger language plpgsql as $$
begin
    delete from sms_stops where user_id = new.id;
    return null;
end
$$;
-- +goose StatementEnd

create trigger users_sms_opt_out after update of opt_outs on users
    for each row when (old.opt_outs & 4 <> new.opt_outs & 4) execute function forget_sms_stop();
