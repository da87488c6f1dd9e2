-- Destinations of notifications that are sent every kind are sent the new one, of disabled
-- webhook endpoints, as well. Programs of before raise none of that kind, and show the
-- kinds that they know.

-- +goose Up
update alert_destinations set kinds = kinds || array['endpoint']
where removed_at is null and not 'endpoint' = any(kinds)
    and kinds @> array['channel', 'late', 'dead_letters', 'balance', 'sold_out', 'approval', 'job'];
