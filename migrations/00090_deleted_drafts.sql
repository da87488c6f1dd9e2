-- Drafts of drops and campaigns that staff deleted, for as long as they can be
-- restored. The version before does not know them: to it they are gone.

-- +goose Up

create table deleted_drafts (
    kind        text not null check (kind in ('template', 'campaign')),
    id          bigint not null, -- which the draft has again once it is restored
    shop_number bigint not null, -- 0 = belongs to no shop
    name        text not null,
    content     jsonb not null,  -- the row as it was
    deleted_at  timestamptz not null default clock_timestamp(),
    deleted_by  text not null,   -- as in audit
    primary key (kind, id)
);
create index deleted_drafts_at on deleted_drafts (deleted_at);
