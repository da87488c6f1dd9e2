-- +goose Up

-- The first time a user opened the link in a reminder or a correction of a drop,
-- and the message it stood in; a second one changes nothing. Slot 0 = a correction.
create table drop_openings (
    template_id bigint not null references templates (id) on delete cascade,
    user_id     bigint not null check (user_id > 0),
    slot        smallint not null check (slot between 0 and 12),
    channel     smallint not null check (channel between 0 and 4),
    opened_at   timestamptz not null,
    primary key (template_id, user_id)
);

-- How many there were, by the channel of the first; kept when the rows are removed.
create table drop_opening_counts (
    template_id bigint not null references templates (id) on delete cascade,
    channel     smallint not null,
    opened      bigint not null check (opened >= 0),
    primary key (template_id, channel)
);
