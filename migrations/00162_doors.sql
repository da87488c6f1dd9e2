-- +goose Up

-- Doors are groups of users with an opening of their own, tried in order. doors is how many doors
-- a drop has, 0 = all users may claim from its opening on. door_base is how many coupons were issued
-- a minute before the first door opened; the shares of doors count from there.
alter table templates
    add column doors     smallint not null default 0,
    add column door_base bigint not null default 0;

create table doors (
    template_id  bigint not null references templates (id) on delete cascade,
    place        smallint not null check (place between 1 and 4),
    name         text not null,
    who          text not null check (who in ('all', 'segment', 'list', 'codes')),
    segment_id   bigint, -- of segment and list; after the drop it may be deleted
    lead_minutes integer not null check (lead_minutes between 0 and 1440), -- it opens so long before the drop
    share        bigint not null check (share >= 0), -- coupons, 0 = no limit
    user_limit   integer not null check (user_limit >= 0), -- 0 = the drop's
    texts        jsonb not null, -- the sentence for users, by language
    -- The members are cut in the order of their ids; those up to cut_to are in door_members.
    cut_to       bigint not null default 0,
    members      bigint not null default 0,
    cut_at       timestamptz, -- when that began; users who were added later are judged one by one
    frozen_at    timestamptz, -- when that ended
    primary key (template_id, place),
    check (who <> 'all' or segment_id is null)
);
create index doors_segment on doors (segment_id) where segment_id is not null;
create index doors_unfrozen on doors (template_id) where frozen_at is null;

-- The members of frozen doors: a Roaring bitmap for 65,536 ids of users.
create table door_members (
    template_id bigint not null,
    place       smallint not null,
    chunk       bigint not null,
    members     bytea not null,
    count       integer not null,
    primary key (template_id, place, chunk),
    foreign key (template_id, place) references doors (template_id, place) on delete cascade
);
create index door_members_chunk on door_members (chunk);

-- Users whom staff name to try the doors with: wants is the door that must let the user in, 0 = none.
create table door_tests (
    template_id bigint not null references templates (id) on delete cascade,
    user_id     bigint not null,
    note        text not null,
    wants       smallint not null check (wants between 0 and 4),
    primary key (template_id, user_id)
);
create index door_tests_user on door_tests (user_id);
