-- +goose Up

-- The key of the row's claim where that is not the list and the user: coupons that staff
-- give one user beyond the limit, or in the place of another coupon. '' = list and user.
alter table grant_rows add column claim_key text collate "C" not null default '';

-- Members who asked at sign-in for a mail with a link that sets a new password; a member
-- has one row at most. A worker makes the link when it sends the mail, so that only the hash
-- of its token is stored.
create table password_mails (
    staff_id     bigint primary key references staff on delete cascade,
    locale       text not null, -- of the page; the member's own goes first
    requested_at timestamptz not null default clock_timestamp(),
    next_at      timestamptz default clock_timestamp(), -- null = sent, or given up
    attempts     int not null default 0,
    lease        uuid
) with (fillfactor = 70);
create index password_mails_due on password_mails (next_at) where next_at is not null;

-- What users or staff changed about users' opt-outs and contacts, for timelines: channels as
-- bits, contacts without their text (1 = e-mail address, 2 = phone number).
create table user_changes (
    id        bigint generated always as identity primary key,
    user_id   bigint not null,
    at        timestamptz not null default clock_timestamp(),
    opted_out smallint not null default 0,
    opted_in  smallint not null default 0,
    contacts  smallint not null default 0
);
create index user_changes_user on user_changes (user_id, id desc);
create index user_changes_at on user_changes (at); -- for their removal

-- +goose StatementBegin
create function note_user_change() returns trigger language plpgsql security definer set search_path from current as $$
begin
    insert into user_changes (user_id, opted_out, opted_in, contacts) values (new.id, new.opt_outs & ~old.opt_outs, old.opt_outs & ~new.opt_outs,
        case when new.email <> old.email then 1 else 0 end + case when new.phone <> old.phone then 2 else 0 end);
    return null;
end
$$;
-- +goose StatementEnd
revoke execute on function note_user_change() from public;
create trigger users_noted after update of opt_outs, email, phone on users
    for each row when (new.id = old.id and (new.opt_outs <> old.opt_outs or new.email <> old.email or new.phone <> old.phone))
    execute function note_user_change();

-- A refund by staff that is undone: the order uses the coupon again. The line of the refund
-- gets the outcome 'undone', so that payment can refund the order later. Not valid: the rows
-- there are obey the narrower rule, so the table is not read.
alter table coupon_operations drop constraint coupon_operations_step_check;
alter table coupon_operations add constraint coupon_operations_step_check
    check (step in ('lock', 'confirm', 'release', 'refund', 'timeout', 'expire', 'revoke', 'restore')) not valid;
