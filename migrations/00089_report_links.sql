-- +goose Up

-- Links that lead to the report of a drop without signing in. The address holds
-- the id, signed; whether it is valid is decided here.
create table report_links (
    id          bigint generated always as identity primary key,
    template_id bigint not null references templates (id),
    created_at  timestamptz not null default clock_timestamp(),
    created_by  text not null,
    expires_at  timestamptz not null check (expires_at > created_at),
    revoked_at  timestamptz
);
create index report_links_template on report_links (template_id, id);
