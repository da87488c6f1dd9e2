-- What campaigns led to: counted now and then by a worker, never by a page.

-- +goose Up

-- One row per group of recipients, all of them as of campaigns.counted_to.
-- What each column counts is said in domain/campaign/results.go.
create table campaign_results (
    campaign_id bigint not null references campaigns (id) on delete cascade,
    variant     smallint not null check (variant between -1 and 1), -- -1 = held out
    assigned    bigint not null,
    sent        bigint not null,
    opened      bigint not null,
    reserved    bigint not null,
    claimed     bigint not null,
    used        bigint not null,
    primary key (campaign_id, variant)
);

alter table campaigns
    add column counted_to   timestamptz, -- the results count what happened before; null = never counted
    add column count_due_at timestamptz not null default '-infinity', -- when to count again; infinity = the results are final
    add column account_off  bigint; -- what the account was off by when it was last recounted; null = never

create index campaigns_to_count on campaigns (count_due_at) where started_at is not null and not archived and count_due_at < 'infinity';
