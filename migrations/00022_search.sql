-- Looking for a part of a name, and for what is in one state, without reading
-- everything else.

-- +goose NO TRANSACTION
-- +goose Up

-- The parts of a text, in lower case: every run of up to three characters, but
-- none shorter than asked for, as far as the text is that long. A name holds
-- a text only if it has all of that text's parts, which an ordinary index of
-- arrays can tell. That is what the extension pg_trgm does, except that no
-- extension has to be installed, which not every server allows, and that one
-- or two characters are found too: a Chinese word is often no longer.
-- +goose StatementBegin
create or replace function text_parts(value text, shortest int) returns text[] language plpgsql immutable strict parallel safe cost 1000 as $$
declare
    s constant text := lower(value);
    length constant int := char_length(s);
    parts text[] := '{}';
begin
    for n in greatest(1, least(shortest, 3, length)) .. 3 loop
        for at in 1 .. length - n + 1 loop
            parts := parts || substr(s, at, n);
        end loop;
    end loop;
    return parts;
end
$$;
-- +goose StatementEnd

-- An index that was left half made by an interrupted attempt is made again.
drop index concurrently if exists templates_parts;
create index concurrently templates_parts on templates using gin (text_parts(name, 1));
drop index concurrently if exists campaigns_parts;
create index concurrently campaigns_parts on campaigns using gin (text_parts(name, 1));

-- The list in the order of its pages, for the states that few templates are in.
drop index concurrently if exists templates_state;
create index concurrently templates_state on templates (state, opens_at, id);

-- A template's coupons in a state that may be rare. The many unused ones, and
-- the rush in which they are issued, are not in it.
drop index concurrently if exists coupons_template_state;
create index concurrently coupons_template_state on coupons (template_id, state, id) where state in ('locked', 'used', 'expired', 'revoked');

-- The few dead among a batch's exceptions, in the order of their list.
drop index concurrently if exists exceptions_dead_batch;
create index concurrently exceptions_dead_batch on exceptions (batch_id, user_id) where outcome = 'dead';

-- Without these the planner would not know how common a part is until the
-- next round of autovacuum.
analyze templates;
analyze campaigns;
