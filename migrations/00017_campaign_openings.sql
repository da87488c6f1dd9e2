-- Who followed the link in a campaign's message.

-- +goose Up

-- The first time a recipient opened the link; a second one changes nothing.
create table campaign_openings (
    campaign_id bigint not null references campaigns (id) on delete cascade,
    user_id     bigint not null check (user_id > 0),
    variant     smallint not null,
    opened_at   timestamptz not null,
    primary key (campaign_id, user_id)
);
