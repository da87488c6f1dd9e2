-- +goose Up

-- How users get the coupons of a drop: the first come, or by a draw among all who entered
-- (ADR 112). entry_minutes is how long before the opening entries are taken, 0 = from the
-- publication. draw_source is the source of randomness, '' = the installation's; draw_public
-- names the public draw.
alter table templates
    add column opening_mode  text collate "C" not null default 'first_come' check (opening_mode in ('first_come', 'shuffled', 'draw')),
    add column entry_minutes int not null default 0 check (entry_minutes between 0 and 525600),
    add column draw_source   text collate "C" not null default '' check (draw_source in ('', 'drand', 'public', 'commit', 'local')),
    add column draw_public   text not null default '' check (char_length(draw_public) <= 200);
create index templates_with_draw on templates (id) where opening_mode <> 'first_come';

-- A further origin. The rows there are satisfy the narrower rule; 00160 has PostgreSQL check that.
alter table coupons drop constraint coupons_origin_check,
    add constraint coupons_origin_check check (origin in ('claim', 'code', 'grant', 'campaign', 'draw')) not valid;

-- The draw of a template, from its first card on. Groups of entries lock the row for share, so
-- that no entry is committed after the row was closed. The state goes
-- open → closed → sealed → drawn → done; a struck ticket leads from drawn and done back to sealed.
create table draws (
    template_id      bigint primary key references templates (id) on delete cascade,
    template_version bigint not null,   -- of which the last card was made
    state            text collate "C" not null default 'open' check (state in ('open', 'closed', 'sealed', 'drawn', 'done', 'cancelled')),
    key              text not null,     -- the public key that signs
    source           text collate "C" not null check (source in ('drand', 'public', 'commit', 'local')), -- as on the cards
    cards            text[] not null,   -- all versions of the signed card
    opens_at         timestamptz not null, -- as on the last card: the window of entries
    closes_at        timestamptz not null,
    seal             text,
    sealed_at        timestamptz,
    round            bigint not null default 0, -- of the source, which decides; 0 = the source has none
    figures          text,              -- of a public draw, as the first member typed them
    figures_by       text,              -- who that was, as in audit
    evidence         text,              -- of the random value
    result           text,
    drawn_at         timestamptz,
    won              bigint not null default 0,
    struck           bigint not null default 0,
    told_to          bigint not null default 0, -- servers of shops: entries that did not win, up to this user
    check ((state in ('sealed', 'drawn', 'done')) <= (seal is not null and sealed_at is not null)),
    check ((state in ('drawn', 'done')) <= (result is not null and evidence is not null))
);
create index draws_unfinished on draws (template_id) where state in ('open', 'closed', 'sealed', 'drawn');

-- One row per (template, user). ticket is public, salt is known to the user and the server.
create table draw_entries (
    template_id bigint not null,
    user_id     bigint not null check (user_id > 0),
    ticket      uuid not null,
    salt        uuid not null,
    entered_at  timestamptz not null,   -- whole seconds, as the receipt has them
    weight      smallint not null default 1 check (weight between 1 and 10),
    state       text collate "C" not null default 'entered' check (state in ('entered', 'won', 'struck')),
    rank        int,                    -- of a winner: the place in the order of the scores
    coupon_id   bigint,                 -- of a winner, once it is issued
    -- Of a struck ticket: whether it is in the sealed list, why and when it was struck. Of a winner
    -- without a coupon: why it was refused.
    listed      boolean not null default false,
    reason      text,
    struck_at   timestamptz,
    primary key (template_id, user_id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
create index draw_entries_user on draw_entries (user_id);
create index draw_entries_won on draw_entries (template_id, rank) where state = 'won';
create index draw_entries_struck on draw_entries (template_id, struck_at) where state = 'struck';

-- How many entries there were, and how many were left again. Each connection counts in one of 16
-- rows, so that groups do not wait for each other.
create table draw_counts (
    template_id bigint not null,
    shard       smallint not null,
    entered     bigint not null default 0,
    departed    bigint not null default 0,
    primary key (template_id, shard)
) with (fillfactor = 50);

-- The sealed list, 65,536 rows a chunk. It stays as it was sealed, also if a user is erased: it names nobody.
create table draw_chunks (
    template_id bigint not null,
    chunk       int not null,
    rows        bytea not null,
    primary key (template_id, chunk)
);
alter table draw_chunks alter column rows set storage external; -- tickets and hashes cannot be compressed
