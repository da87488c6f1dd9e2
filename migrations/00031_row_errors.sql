-- Why a row of a list could not be worked off, in a form that can be told in
-- any language; error stays what it says in English.

-- +goose Up
alter table job_errors add column if not exists because jsonb not null default '[]';
