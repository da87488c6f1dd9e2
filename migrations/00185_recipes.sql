-- +goose Up

-- Recipes: campaigns that a shop sends by itself (docs/recipes.md). One of each form a shop.
create table recipes (
    id          bigint generated always as identity primary key,
    shop_number bigint not null references shops (number),
    form        text not null check (form in ('missed', 'lost', 'win_back', 'calendar')),
    settings    jsonb not null,
    is_on       boolean not null default false,
    version     bigint not null default 1,
    due_at      timestamptz not null default clock_timestamp(), -- when a worker looks at it next
    since       timestamptz not null default clock_timestamp(), -- it was turned on: drops that opened before have no round
    unique (shop_number, form)
);
create index recipes_due on recipes (due_at) where is_on;

-- Their rounds: each finds its users, as a list, and sends them one campaign.
create table recipe_rounds (
    id          bigint generated always as identity primary key,
    recipe_id   bigint not null,
    key         text not null, -- the drop or the day
    state       text not null default 'begun' check (state in ('begun', 'found', 'made', 'done')),
    template_id bigint,
    at          timestamptz not null default clock_timestamp(),
    until       timestamptz not null,
    settings    jsonb not null, -- of the recipe at that time
    users       bigint not null default 0,
    segment_id  bigint,
    campaign_id bigint,
    why         jsonb, -- why the campaign could not be stored or published
    unique (recipe_id, key)
);
create index recipe_rounds_unfinished on recipe_rounds (id) where state <> 'done';
create index recipe_rounds_latest on recipe_rounds (recipe_id, id);
create unique index recipe_rounds_campaign on recipe_rounds (campaign_id) where campaign_id is not null;

-- A list that a recipe made; it is not among the lists of staff.
alter table segments add column hidden boolean not null default false;

-- +goose StatementBegin
do $$
begin
    set local lock_timeout = '500ms';
    perform name_cell(array['recipes', 'recipe_rounds']);
end
$$;
-- +goose StatementEnd
