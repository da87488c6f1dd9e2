-- How many mails a new sender domain has sent on a day.

-- +goose Up

-- A row for each day (UTC) of a warm-up plan. refused_at is when the day's number first
-- left mails over.
create table mail_warmup (
    day        date primary key,
    mails      bigint not null,
    refused_at timestamptz
);
