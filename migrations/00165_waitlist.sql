-- +goose Up

-- Who gets stock that comes back after a drop sold out: 'off' = the first tap, 'issue' = the
-- next user of the waitlist. held is stock that is kept for waiting users; taps get none of it.
alter table templates
    add column waitlist text not null default 'off' check (waitlist in ('off', 'issue', 'offer')),
    add column held     bigint not null default 0 check (held >= 0);
alter table templates add constraint templates_held check (issued + held <= stock) not valid;
create index templates_holding on templates (id) where held > 0;

-- The counters of one drop's waitlist: joined = filled + waiting + lapsed + left + skipped.
-- put and released are the coupons that were put aside for waiting users, and those of them
-- that went back on sale: templates.held = put - released - filled. The row is there before
-- the first user joins; joining and putting stock aside exclude each other on it.
create table waitlists (
    template_id bigint primary key,
    joined      bigint not null default 0,
    waiting     bigint not null default 0 check (waiting >= 0),
    filled      bigint not null default 0,
    lapsed      bigint not null default 0,
    "left"      bigint not null default 0 check ("left" >= 0),
    skipped     bigint not null default 0,
    put         bigint not null default 0,
    released    bigint not null default 0,
    put_at      timestamptz, -- since when coupons are kept; of use while there are any
    settled     boolean not null default false -- the drop is over, no user waits and no stock is kept
) with (fillfactor = 50);
create index waitlists_unsettled on waitlists (template_id) where not settled;

-- Users on waitlists, one row per user and drop. rank comes before the order of joining; lower
-- ranks are first. channels are those over which the user is told, a bit each.
create table waiters (
    template_id bigint not null,
    user_id     bigint not null check (user_id > 0),
    rank        bigint not null default 0,
    joined_at   timestamptz not null,
    state       text collate "C" not null default 'waiting' check (state in ('waiting', 'offered', 'filled', 'lapsed', 'left', 'skipped')),
    channels    smallint not null default 1 check (channels between 1 and 31),
    changed_at  timestamptz not null default clock_timestamp(),
    coupon_id   bigint, -- of a user who was filled
    reason      text not null default '', -- why the user was skipped: the code of a refusal
    primary key (template_id, user_id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
create index waiters_next on waiters (template_id, rank, joined_at, user_id) where state = 'waiting';
create index waiters_user on waiters (user_id);

-- A refused claim of a gate whose coupon was put aside for waiting users. Its shard keeps it
-- as taken.
alter table claim_results add column held boolean not null default false;

-- Not valid: the rows that are there obey the narrower rule, so the table is not read.
alter table coupons drop constraint coupons_origin_check;
alter table coupons add constraint coupons_origin_check
    check (origin in ('claim', 'code', 'grant', 'campaign', 'draw', 'waitlist')) not valid;

alter table message_versions drop constraint message_versions_kind_check;
alter table message_versions add constraint message_versions_kind_check
    check (kind in ('reminder', 'correction', 'cancelled', 'notice', 'waitlist', 'names', 'settings', 'picture')) not valid;

-- A message about the drop to users whom its waitlist gave a coupon.
alter table announcements drop constraint announcements_kind_check;
alter table announcements add constraint announcements_kind_check check (kind in ('correction', 'cancelled', 'waitlist')) not valid;
