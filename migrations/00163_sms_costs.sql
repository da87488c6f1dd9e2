-- +goose Up

-- What text messages about a drop, and of a campaign, cost by the price list, by the hour (UTC) in
-- which they were handed over. Parts that a provider did not take are taken off again. Sums are per
-- currency; empty = there was no price list, and micros, millionths of the currency's unit, are 0.
create table sms_drop_costs (
    template_id bigint not null references templates (id) on delete cascade,
    hour        timestamptz not null,
    currency    text not null,
    parts       bigint not null,
    micros      bigint not null,
    primary key (template_id, hour, currency)
);
create index sms_drop_costs_hour on sms_drop_costs (hour);
create table sms_campaign_costs (
    campaign_id bigint not null references campaigns (id) on delete cascade,
    hour        timestamptz not null,
    currency    text not null,
    parts       bigint not null,
    micros      bigint not null,
    primary key (campaign_id, hour, currency)
);
create index sms_campaign_costs_hour on sms_campaign_costs (hour);

-- Parts before this migration have no currency, so that their cost is not known, and no hour: they
-- count in the hour of the drop's opening.
insert into sms_drop_costs (template_id, hour, currency, parts, micros)
    select s.template_id, date_trunc('hour', t.opens_at, 'utc'), '', s.parts, 0 from sms_spent_drops s join templates t on t.id = s.template_id where s.parts > 0
    on conflict do nothing;

comment on column sms_spent_drops.micros is 'not used any more: sms_drop_costs has the costs by currency';
