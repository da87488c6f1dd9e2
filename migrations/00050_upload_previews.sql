-- +goose Up

-- The beginnings of an uploaded table, one for each sheet of a workbook: its
-- page is shown without reading the file again.
alter table uploads add column previews jsonb;
