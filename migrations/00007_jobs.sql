-- Work in the background that outlives the process that does it: a job knows
-- where it has come to, so that any worker can go on with it. Uploaded files
-- wait here for the job that reads them.

-- +goose Up

create table uploads (
    id         bigint generated always as identity primary key,
    name       text not null,
    bytes      bigint not null default 0,
    sha256     bytea, -- null until the whole file is here; nobody reads it before
    created_by text not null,
    created_at timestamptz not null default now()
);
create index uploads_created on uploads (created_at);
create table upload_parts (
    upload_id bigint not null references uploads (id) on delete cascade,
    part      int not null,
    content   bytea not null,
    primary key (upload_id, part)
);
-- What people upload was compressed by them already, or is read once.
alter table upload_parts alter column content set storage external;

create table jobs (
    id          bigint generated always as identity primary key,
    kind        text not null,
    title       text not null,
    shop_number bigint not null default 0, -- 0 = belongs to no shop
    needs       text not null,             -- permission: who may start it may stop it
    params      jsonb not null default '{}',
    cursor      jsonb,
    result      jsonb,
    -- waiting → running → done | failed; cancelled from waiting and running
    state       text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed', 'cancelled')),
    total       bigint not null default 0, -- 0 = not known yet
    done        bigint not null default 0,
    failed      bigint not null default 0,
    reason      text not null default '',  -- code of the fault that ended it
    detail      text not null default '',
    created_by  text not null,             -- as in audit.actor
    actor       jsonb not null,            -- the same with the rights of the moment, in whose name it is done
    upload_id   bigint references uploads (id) on delete set null,
    request_key text not null default '',
    attempts    int not null default 0,    -- steps that failed in a row, workers that died included
    next_run_at timestamptz not null default now(),
    lease_token uuid,
    lease_until timestamptz,
    created_at  timestamptz not null default now(),
    started_at  timestamptz,
    finished_at timestamptz
) with (fillfactor = 50); -- a long job is updated at every step
create unique index jobs_request on jobs (kind, split_part(created_by, ' ', 1), request_key) where request_key <> '';
create index jobs_unfinished on jobs (id) where state in ('waiting', 'running');
create index jobs_shop on jobs (shop_number, id);
create index jobs_finished on jobs (finished_at) where finished_at is not null;
create index jobs_upload on jobs (upload_id) where upload_id is not null;

-- Rows of a list that could not be worked off, in the order in which they were met.
create table job_errors (
    job_id bigint not null references jobs (id) on delete cascade,
    id     bigint generated always as identity,
    line   bigint not null,
    row    text not null,
    error  text not null,
    primary key (job_id, id)
);
