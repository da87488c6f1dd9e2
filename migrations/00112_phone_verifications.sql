-- Phone numbers that their users have proved, and the codes by which they do.

-- +goose Up

-- When the user proved the number, or the shop said that it was proved; null = it was
-- not.
alter table users add column phone_verified_at timestamptz;

-- +goose StatementBegin
-- Another number is not proved, whichever version of the programs stores it; a change
-- that says otherwise sets a new instant.
create function forget_phone_verification() returns trigger language plpgsql as $$
begin
    new.phone_verified_at := null;
    return new;
end
$$;
-- +goose StatementEnd

create trigger users_phone_changed before update of phone on users
    for each row when (old.phone <> new.phone and old.phone_verified_at is not null and new.phone_verified_at is not distinct from old.phone_verified_at)
    execute function forget_phone_verification();

-- Codes that users asked for, the newest of each user counts; kept a day. A row that is
-- held is like the others to its user, but no message is sent.
create table phone_verifications (
    id           bigint generated always as identity primary key,
    user_id      bigint not null,
    phone        text not null, -- as it is stored with the user once it is proved
    number       text not null, -- E.164, the same for every way to write it
    locale       text not null default '',
    state        text not null default 'waiting' check (state in ('waiting', 'sending', 'sent', 'failed', 'held')),
    reason       text not null default '', -- for failed
    code_hash    bytea, -- keyed, of the code that was sent last
    attempts     int not null default 0, -- of the user, to enter it
    tries        int not null default 0, -- of workers, to send it
    created_at   timestamptz not null default clock_timestamp(),
    due_at       timestamptz not null default clock_timestamp(),
    expires_at   timestamptz not null, -- ten minutes after the last code was made
    confirmed_at timestamptz,
    token        uuid,
    lease_until  timestamptz
) with (fillfactor = 70);
create index phone_verifications_user on phone_verifications (user_id, id);
create index phone_verifications_number on phone_verifications (number, created_at);
create index phone_verifications_open on phone_verifications (due_at) where state in ('waiting', 'sending');
create index phone_verifications_created on phone_verifications (created_at);
