-- +goose Up

-- The looks at tests of two versions: which version is sent to the remaining recipients.
-- A look is stored once, whichever worker makes it. The winner is also part of
-- campaigns.content.
create table campaign_decisions (
    campaign_id bigint not null references campaigns (id) on delete cascade,
    look        smallint not null check (look in (1, 2)), -- 1 = at half of the time, 2 = at the end
    at          timestamptz not null, -- the numbers count events before it
    winner      smallint check (winner in (0, 1)), -- null = the test goes on
    arms        jsonb not null, -- the numbers of both versions
    primary key (campaign_id, look)
);

-- Campaigns with a test that is not decided.
create index campaigns_undecided on campaigns (started_at)
    where state in ('running', 'paused') and content ? 'test' and not (content -> 'test') ? 'winner';

-- Decided campaigns, whose remaining recipients are released.
create index campaigns_decided on campaigns (id)
    where state = 'running' and settled_at is null and (content -> 'test') ? 'winner';

-- -2 = the recipients who were not in the test.
alter table campaign_results drop constraint campaign_results_variant_check;
alter table campaign_results add constraint campaign_results_variant_check check (variant between -2 and 1);

-- What a campaign brought about over time, as of its last count: numbers of its recipients in
-- the span that begins at the instant.
create table campaign_series (
    campaign_id bigint not null references campaigns (id) on delete cascade,
    at          timestamptz not null,
    sent        bigint not null default 0,
    delivered   bigint not null default 0, -- of those sent in the span, as reported by providers since
    opened      bigint not null default 0,
    claimed     bigint not null default 0,
    earned      bigint not null default 0, -- minor units of the template's currency
    primary key (campaign_id, at)
);
