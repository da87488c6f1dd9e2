-- +goose Up

-- Rehearsals of drops (docs/rehearsal.md). The id of a rehearsal is drawn from that of templates: it is the id of the copy of the
-- drop, and names the schema rehearsal_<id> that the copy is in. report is null unless the rehearsal is done.
create table rehearsals (
    id             bigint primary key,
    template_id    bigint not null,
    shop_number    bigint not null,
    state          text collate "C" not null default 'asked' check (state in ('asked', 'running', 'done', 'failed')),
    share_permille int not null default 0 check (share_permille between 0 and 1000),
    asked_by       text not null,
    asked_at       timestamptz not null default clock_timestamp(),
    opens_at       timestamptz,
    ended_at       timestamptz,
    progress       jsonb not null default '{}',
    report         jsonb,
    detail         text not null default '',
    token          text not null default '',
    lease_until    timestamptz not null default 'epoch',
    removed_at     timestamptz
);
-- One rehearsal runs at a time.
create unique index rehearsals_running on rehearsals ((true)) where state in ('asked', 'running');
create index rehearsals_template on rehearsals (template_id, id desc);
create index rehearsals_remains on rehearsals (ended_at) where removed_at is null and state in ('done', 'failed');
