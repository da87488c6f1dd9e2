-- The person at the identity provider who signs in as a member of the staff: linked with the
-- first sign-in by the verified e-mail address, which may belong to another person later.
-- The statements of the previous version know nothing of it.

-- +goose Up
alter table staff add column sso_issuer text not null default '', add column sso_subject text not null default '';
create unique index staff_identity on staff (sso_issuer, sso_subject) where sso_subject <> '';
