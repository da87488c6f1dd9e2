-- A campaign whose audience turns out larger than one person may send to waits
-- for a second person before more of it is cut.

-- +goose Up
alter table campaigns
    add column held_at      timestamptz,              -- paused until a second person consents to the size of the audience
    add column published_by text not null default ''; -- label and name of who published it, or asked for that
alter table campaign_requests
    add column allowed bigint; -- how many could be reached without this consent, if the program asked; null = a person asked
create index campaigns_held on campaigns (ends_at) where held_at is not null;
