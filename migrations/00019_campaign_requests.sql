-- A second person's consent to exactly what was asked for, the version of a
-- segment's rule that a campaign uses, and indexes for the calendar.

-- +goose Up

-- The segment as it was when the campaign was published; null until then, and
-- for other audiences.
alter table campaigns
    add column segment_version bigint,
    add column segment_name    text,
    add column segment_rule    jsonb; -- null for a list, whose members are ids

-- Who asked a second person for what. The columns are those of campaigns at
-- that moment.
create table campaign_requests (
    id                bigint generated always as identity primary key,
    campaign_id       bigint not null references campaigns (id) on delete cascade,
    shop_number       bigint not null, -- 0 = none
    name              text not null,
    channel           smallint not null,
    content           jsonb not null,
    audience          jsonb not null,
    audience_users    bytea,
    grant_template_id bigint not null, -- 0 = none
    starts_at         timestamptz not null,
    ends_at           timestamptz not null,
    rate_per_second   int not null,
    segment_version   bigint,
    segment_name      text,
    segment_rule      jsonb,
    reach             bigint not null,
    reach_exact       boolean not null,
    reach_at          timestamptz not null,
    state             text not null default 'asked' check (state in ('asked', 'approved', 'refused', 'lapsed')),
    asked_by          text not null, -- label
    asked_name        text not null,
    asked_at          timestamptz not null default clock_timestamp(),
    reason            text not null default '',
    decided_by        text not null default '',
    decided_at        timestamptz,
    decided_reason    text not null default ''
);
create index campaign_requests_campaign on campaign_requests (campaign_id, id desc);
create unique index campaign_requests_open on campaign_requests (campaign_id) where state = 'asked';

-- A shop's month.
create index campaigns_shop_starts on campaigns (shop_number, starts_at, id);
create index templates_shop_opening on templates (shop_number, opens_at, id);
