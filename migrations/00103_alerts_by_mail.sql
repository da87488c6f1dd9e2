-- Notifications of staff go to mail addresses as well: url holds the address then.

-- +goose Up
alter table alert_destinations drop constraint if exists alert_destinations_form_check;
alter table alert_destinations add constraint alert_destinations_form_check check (form in ('feishu', 'wecom', 'slack', 'email')) not valid;
alter table alert_destinations validate constraint alert_destinations_form_check;
