-- +goose Up

-- The last flight check of each drop that has not opened (docs/rehearsal.md). version is the version of
-- the template that was checked, 0 before the first check. A check that a worker makes is hidden from
-- other workers until taken_until.
create table flight_checks (
    template_id bigint primary key references templates (id) on delete cascade,
    version     bigint not null default 0,
    checked_at  timestamptz not null default 'epoch',
    red         int not null default 0,
    amber       int not null default 0,
    findings    jsonb not null default '[]',
    taken_until timestamptz not null default 'epoch'
);
