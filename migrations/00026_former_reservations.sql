-- What reached a user stays in the inbox when the rest of the reservation is
-- cancelled.

-- +goose Up

-- Who had reserved a template from which something was sent, and has cancelled
-- all that was left: an inbox looks there as well.
create table former_reservations (
    user_id     bigint not null,
    template_id bigint not null,
    at          timestamptz not null default now(),
    primary key (user_id, template_id)
);
create index former_reservations_template on former_reservations (template_id);
