-- +goose Up
-- What a drop demands of claims and entries against scripts. A web process of an earlier program
-- demands nothing.
alter table templates add column protection text not null default 'off' check (protection in ('off', 'standard', 'strict'));
-- Workers ask each second which protected drops are over.
create index templates_protected on templates (closes_at) where protection <> 'off';
