SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.add_event_day(at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
    day   constant timestamptz := date_trunc('day', at, 'UTC');
    name  constant text := 'handled_events_' || to_char(day at time zone 'UTC', 'YYYYMMDD');
    first constant uuid := first_event_id(day);
    past  constant uuid := first_event_id(day + interval '24 hours');
begin
    if to_regclass(name) is not null then
        return false;
    end if;
    lock table handled_events in access exclusive mode;
    if to_regclass(name) is not null then -- another one was faster
        return false;
    end if;
    execute format('create table %I (handler text not null, event_id uuid not null, at timestamptz not null default now(), primary key (handler, event_id))', name);
    if to_regclass('handled_events_rest') is not null then
        execute format('with moved as (delete from handled_events_rest where event_id >= %L and event_id < %L returning *) insert into %I (handler, event_id, at)
            select handler, event_id, at from moved', first, past, name);
    end if;
    execute format('alter table handled_events attach partition %I for values from (%L) to (%L)', name, first, past);
    return true;
end
$$;
CREATE FUNCTION public.expect(holds boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if holds is not true then
        raise exception 'something has changed since it was read' using errcode = 'DB001';
    end if;
end
$$;
CREATE FUNCTION public.first_event_id(at timestamp with time zone) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    select rpad(lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;
CREATE FUNCTION public.forget_phone_verification() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.phone_verified_at := null;
    return new;
end
$$;
CREATE FUNCTION public.forget_sms_stop() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    delete from sms_stops where user_id = new.id;
    return null;
end
$$;
CREATE FUNCTION public.new_event_id() RETURNS uuid
    LANGUAGE sql PARALLEL SAFE
    AS $$
    select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;
CREATE FUNCTION public.newest_message() RETURNS bigint
    LANGUAGE sql STABLE
    AS $$select coalesce(max(id), 0) from message_versions$$;
CREATE FUNCTION public.note_opt_outs() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO '$user', 'public'
    AS $$
begin
    if tg_op <> 'INSERT' then
        insert into opt_out_changes (user_id) values (old.id);
    end if;
    if tg_op = 'INSERT' or tg_op = 'UPDATE' and new.id <> old.id then
        insert into opt_out_changes (user_id) values (new.id);
    end if;
    return null;
end
$$;
CREATE FUNCTION public.text_parts(value text, shortest integer) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE STRICT COST 1000 PARALLEL SAFE
    AS $$
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
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.accepted_messages (
    batch_id bigint NOT NULL,
    users bigint[] NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    provider_id bigint DEFAULT 0 NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.5');
CREATE TABLE public.alert_deliveries (
    id bigint NOT NULL,
    alert_id bigint NOT NULL,
    destination_id bigint NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    lease uuid,
    deadline_at timestamp with time zone NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT alert_deliveries_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'sent'::text, 'failed'::text, 'dropped'::text])))
);
ALTER TABLE public.alert_deliveries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.alert_deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.alert_destinations (
    id bigint NOT NULL,
    shop_number bigint DEFAULT 0 NOT NULL,
    form text NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    secret text DEFAULT ''::text NOT NULL,
    language text NOT NULL,
    kinds text[] NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    removed_at timestamp with time zone,
    sealed bytea,
    CONSTRAINT alert_destinations_form_check CHECK ((form = ANY (ARRAY['feishu'::text, 'wecom'::text, 'slack'::text, 'email'::text])))
);
ALTER TABLE public.alert_destinations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.alert_destinations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.alert_pushes (
    id bigint NOT NULL,
    alert_id bigint NOT NULL,
    browser_id bigint NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    lease uuid,
    deadline_at timestamp with time zone NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT alert_pushes_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'sent'::text, 'failed'::text, 'dropped'::text])))
);
ALTER TABLE public.alert_pushes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.alert_pushes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.alert_readers (
    staff_id bigint NOT NULL,
    read_through bigint DEFAULT 0 NOT NULL,
    muted text[] DEFAULT '{}'::text[] NOT NULL
);
CREATE TABLE public.alerts (
    id bigint NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    shop_number bigint DEFAULT 0 NOT NULL,
    template_id bigint DEFAULT 0 NOT NULL,
    member_id bigint DEFAULT 0 NOT NULL,
    name text NOT NULL,
    count bigint DEFAULT 0 NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    path text DEFAULT ''::text NOT NULL,
    repeated bigint DEFAULT 0 NOT NULL,
    swallowed bigint DEFAULT 0 NOT NULL,
    raised_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone
);
ALTER TABLE public.alerts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.alerts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.announcements (
    id bigint NOT NULL,
    template_id bigint NOT NULL,
    kind text NOT NULL,
    opens_at timestamp with time zone NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    stop_reason text,
    cut_token uuid,
    cut_lease_until timestamp with time zone,
    created_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    worthless_after timestamp with time zone NOT NULL,
    cut_at timestamp with time zone,
    finished_at timestamp with time zone,
    superseded_at timestamp with time zone,
    per_person smallint DEFAULT 3 NOT NULL,
    CONSTRAINT announcements_kind_check CHECK ((kind = ANY (ARRAY['correction'::text, 'cancelled'::text]))),
    CONSTRAINT announcements_per_person_check CHECK ((per_person > 0)),
    CONSTRAINT announcements_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'cutting'::text, 'sending'::text, 'finished'::text])))
)
WITH (fillfactor='70');
ALTER TABLE public.announcements ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.announcements_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.api_keys (
    id bigint NOT NULL,
    name text NOT NULL,
    prefix text NOT NULL,
    hash bytea NOT NULL,
    scopes text[] NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone
);
ALTER TABLE public.api_keys ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.api_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.audit (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    object_kind text NOT NULL,
    object_id text NOT NULL,
    shop_number bigint,
    reason text DEFAULT ''::text NOT NULL,
    before jsonb,
    after jsonb,
    address text,
    request_id text
);
ALTER TABLE public.audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.batch_feedback (
    batch_id bigint NOT NULL,
    kind text NOT NULL,
    owner_id bigint NOT NULL,
    channel smallint NOT NULL,
    delivered bytea,
    bounced bytea,
    complained bytea,
    soft bytea,
    delivered_count integer DEFAULT 0 NOT NULL,
    bounced_count integer DEFAULT 0 NOT NULL,
    complained_count integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='50', toast_tuple_target='8160');
CREATE TABLE public.batch_providers (
    batch_id bigint NOT NULL,
    provider_id bigint NOT NULL,
    users bytea,
    sent_count integer NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.batches (
    id bigint NOT NULL,
    kind text NOT NULL,
    owner_id bigint NOT NULL,
    template_id bigint DEFAULT 0 NOT NULL,
    channel smallint NOT NULL,
    from_user bigint NOT NULL,
    to_user bigint NOT NULL,
    state text DEFAULT 'ready'::text NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    due_at timestamp with time zone NOT NULL,
    worthless_after timestamp with time zone NOT NULL,
    next_run_at timestamp with time zone DEFAULT now() NOT NULL,
    enqueued_at timestamp with time zone,
    runs integer DEFAULT 0 NOT NULL,
    lease_token uuid,
    lease_until timestamp with time zone,
    stop_reason text,
    due bytea NOT NULL,
    sent bytea,
    due_count integer NOT NULL,
    sent_count integer DEFAULT 0 NOT NULL,
    skipped_count integer DEFAULT 0 NOT NULL,
    expired_count integer DEFAULT 0 NOT NULL,
    dead_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    rest_outcome text,
    rest_reason text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    held boolean DEFAULT false NOT NULL,
    late integer[],
    screened uuid,
    planned_at timestamp with time zone,
    variant smallint,
    messages_upto bigint DEFAULT public.newest_message() NOT NULL,
    CONSTRAINT batches_channel_check CHECK (((channel >= 0) AND (channel <= 4))),
    CONSTRAINT batches_check CHECK ((to_user >= from_user)),
    CONSTRAINT batches_rest_outcome_check CHECK ((rest_outcome = ANY (ARRAY['skipped'::text, 'expired'::text]))),
    CONSTRAINT batches_state_check CHECK ((state = ANY (ARRAY['ready'::text, 'running'::text, 'done'::text])))
)
WITH (fillfactor='70', toast_tuple_target='8160');
ALTER TABLE public.batches ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.batches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.booking_growth (
    template_id bigint NOT NULL,
    minute timestamp with time zone NOT NULL,
    delta bigint NOT NULL
);
CREATE TABLE public.bookings (
    template_id bigint NOT NULL,
    slot smallint NOT NULL,
    channel smallint NOT NULL,
    booked bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.campaign_limits (
    shop_number bigint NOT NULL,
    per_day integer DEFAULT 0 NOT NULL,
    per_week integer DEFAULT 0 NOT NULL,
    approval_above bigint DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT campaign_limits_approval_above_check CHECK ((approval_above >= 0)),
    CONSTRAINT campaign_limits_per_day_check CHECK ((per_day >= 0)),
    CONSTRAINT campaign_limits_per_week_check CHECK ((per_week >= 0))
);
CREATE TABLE public.campaign_messages (
    campaign_id bigint NOT NULL,
    seq integer NOT NULL,
    from_user bigint NOT NULL,
    to_user bigint NOT NULL,
    users integer NOT NULL,
    payload bytea,
    strangers bytea,
    published_at timestamp with time zone,
    stored_at timestamp with time zone,
    CONSTRAINT campaign_messages_check CHECK ((to_user >= from_user))
);
CREATE TABLE public.campaign_openings (
    campaign_id bigint NOT NULL,
    user_id bigint NOT NULL,
    variant smallint NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    CONSTRAINT campaign_openings_user_id_check CHECK ((user_id > 0))
);
CREATE TABLE public.campaign_publications (
    fingerprint bytea NOT NULL,
    campaign_id bigint NOT NULL,
    published_at timestamp with time zone NOT NULL
);
CREATE TABLE public.campaign_requests (
    id bigint NOT NULL,
    campaign_id bigint NOT NULL,
    shop_number bigint NOT NULL,
    name text NOT NULL,
    channel smallint NOT NULL,
    content jsonb NOT NULL,
    audience jsonb NOT NULL,
    audience_users bytea,
    grant_template_id bigint NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    rate_per_second integer NOT NULL,
    segment_version bigint,
    segment_name text,
    segment_rule jsonb,
    reach bigint NOT NULL,
    reach_exact boolean NOT NULL,
    reach_at timestamp with time zone NOT NULL,
    state text DEFAULT 'asked'::text NOT NULL,
    asked_by text NOT NULL,
    asked_name text NOT NULL,
    asked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    decided_by text DEFAULT ''::text NOT NULL,
    decided_at timestamp with time zone,
    decided_reason text DEFAULT ''::text NOT NULL,
    allowed bigint,
    CONSTRAINT campaign_requests_state_check CHECK ((state = ANY (ARRAY['asked'::text, 'approved'::text, 'refused'::text, 'lapsed'::text])))
);
ALTER TABLE public.campaign_requests ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.campaign_requests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.campaign_results (
    campaign_id bigint NOT NULL,
    variant smallint NOT NULL,
    assigned bigint NOT NULL,
    sent bigint NOT NULL,
    opened bigint NOT NULL,
    reserved bigint NOT NULL,
    claimed bigint NOT NULL,
    used bigint NOT NULL,
    CONSTRAINT campaign_results_variant_check CHECK (((variant >= '-1'::integer) AND (variant <= 1)))
);
CREATE TABLE public.campaigns (
    id bigint NOT NULL,
    shop_number bigint,
    name text NOT NULL,
    channel smallint NOT NULL,
    content jsonb NOT NULL,
    audience jsonb NOT NULL,
    audience_users bytea,
    grant_template_id bigint,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    rate_per_second integer DEFAULT 0 NOT NULL,
    state text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    request_key text,
    creator text NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    published_at timestamp with time zone,
    started_at timestamp with time zone,
    cut_at timestamp with time zone,
    ended_at timestamp with time zone,
    settled_at timestamp with time zone,
    cut_token uuid,
    cut_lease_until timestamp with time zone,
    cut_after bigint DEFAULT 0 NOT NULL,
    people bigint DEFAULT 0 NOT NULL,
    sent bigint DEFAULT 0 NOT NULL,
    skipped bigint DEFAULT 0 NOT NULL,
    expired bigint DEFAULT 0 NOT NULL,
    dead bigint DEFAULT 0 NOT NULL,
    archived boolean DEFAULT false NOT NULL,
    sample_at timestamp with time zone,
    sample_done bigint DEFAULT 0 NOT NULL,
    sample_before_at timestamp with time zone,
    sample_before bigint DEFAULT 0 NOT NULL,
    approval_asked_at timestamp with time zone,
    approved_by text DEFAULT ''::text NOT NULL,
    counted_to timestamp with time zone,
    count_due_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    account_off bigint,
    segment_version bigint,
    segment_name text,
    segment_rule jsonb,
    held_at timestamp with time zone,
    published_by text DEFAULT ''::text NOT NULL,
    CONSTRAINT campaigns_channel_check CHECK (((channel >= 0) AND (channel <= 4))),
    CONSTRAINT campaigns_check CHECK ((ends_at > starts_at)),
    CONSTRAINT campaigns_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 120))),
    CONSTRAINT campaigns_rate_per_second_check CHECK ((rate_per_second >= 0)),
    CONSTRAINT campaigns_state_check CHECK ((state = ANY (ARRAY['draft'::text, 'scheduled'::text, 'running'::text, 'paused'::text, 'finished'::text, 'cancelled'::text, 'failed'::text])))
)
WITH (fillfactor='70');
ALTER TABLE public.campaigns ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.campaigns_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.channel_rates (
    channel smallint NOT NULL,
    at timestamp with time zone NOT NULL,
    per_second double precision NOT NULL,
    messages bigint NOT NULL,
    CONSTRAINT channel_rates_channel_check CHECK (((channel >= 0) AND (channel <= 4))),
    CONSTRAINT channel_rates_per_second_check CHECK ((per_second > (0)::double precision))
);
CREATE TABLE public.channel_settings (
    channel smallint NOT NULL,
    paused boolean DEFAULT false NOT NULL,
    paused_reason text DEFAULT ''::text NOT NULL,
    rate_per_second integer DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    paused_at timestamp with time zone,
    paused_by text DEFAULT ''::text NOT NULL,
    CONSTRAINT channel_settings_channel_check CHECK (((channel >= 0) AND (channel <= 4))),
    CONSTRAINT channel_settings_rate_per_second_check CHECK ((rate_per_second >= 0))
);
CREATE TABLE public.channel_tests (
    id bigint NOT NULL,
    channel smallint NOT NULL,
    recipient text NOT NULL,
    by_user boolean NOT NULL,
    template_id bigint DEFAULT 0 NOT NULL,
    locale text DEFAULT ''::text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    lease_until timestamp with time zone,
    token uuid,
    result text DEFAULT ''::text NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    took_ms bigint DEFAULT 0 NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    draft jsonb,
    provider_id bigint DEFAULT 0 NOT NULL,
    CONSTRAINT channel_tests_channel_check CHECK (((channel >= 0) AND (channel <= 4))),
    CONSTRAINT channel_tests_result_check CHECK ((result = ANY (ARRAY[''::text, 'delivered'::text, 'transient'::text, 'throttled'::text, 'permanent'::text, 'unknown'::text]))),
    CONSTRAINT channel_tests_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'running'::text, 'done'::text])))
);
ALTER TABLE public.channel_tests ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.channel_tests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE UNLOGGED TABLE public.checked_rows (
    job_id bigint NOT NULL,
    user_id bigint NOT NULL,
    line bigint NOT NULL,
    digest bigint NOT NULL
);
CREATE TABLE public.claim_counts (
    template_id bigint NOT NULL,
    user_id bigint NOT NULL,
    issued integer NOT NULL,
    CONSTRAINT claim_counts_issued_check CHECK ((issued > 0))
)
WITH (fillfactor='85', autovacuum_vacuum_insert_scale_factor='0.05');
CREATE TABLE public.claim_results (
    claim_id bigint NOT NULL,
    template_id bigint NOT NULL,
    user_id bigint NOT NULL,
    origin text NOT NULL,
    origin_key text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    coupon_id bigint,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT claim_results_claim_id_check CHECK ((claim_id > 0))
);
CREATE TABLE public.claim_seconds (
    template_id bigint NOT NULL,
    second timestamp with time zone NOT NULL,
    issued bigint NOT NULL,
    CONSTRAINT claim_seconds_issued_check CHECK ((issued > 0))
)
WITH (fillfactor='50');
CREATE TABLE public.code_batches (
    id bigint NOT NULL,
    template_id bigint NOT NULL,
    first_serial bigint NOT NULL,
    count integer NOT NULL,
    key_id smallint NOT NULL,
    state text DEFAULT 'generating'::text NOT NULL,
    generated integer DEFAULT 0 NOT NULL,
    used integer DEFAULT 0 NOT NULL,
    job_id bigint DEFAULT 0 NOT NULL,
    request_key text DEFAULT ''::text NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ready_at timestamp with time zone,
    revoked_at timestamp with time zone,
    revoked_by text DEFAULT ''::text NOT NULL,
    revoke_reason text DEFAULT ''::text NOT NULL,
    CONSTRAINT code_batches_check CHECK (((generated >= 0) AND (generated <= count))),
    CONSTRAINT code_batches_check1 CHECK (((used >= 0) AND (used <= count))),
    CONSTRAINT code_batches_count_check CHECK (((count >= 1) AND (count <= 1000000))),
    CONSTRAINT code_batches_first_serial_check CHECK ((first_serial > 0)),
    CONSTRAINT code_batches_key_id_check CHECK (((key_id >= 1) AND (key_id <= 31))),
    CONSTRAINT code_batches_state_check CHECK ((state = ANY (ARRAY['generating'::text, 'ready'::text, 'revoked'::text])))
)
WITH (fillfactor='50');
ALTER TABLE public.code_batches ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.code_batches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.code_parts (
    batch_id bigint NOT NULL,
    part integer NOT NULL,
    codes integer NOT NULL,
    sha256 bytea NOT NULL,
    CONSTRAINT code_parts_codes_check CHECK ((codes > 0)),
    CONSTRAINT code_parts_sha256_check CHECK ((octet_length(sha256) = 32))
);
CREATE TABLE public.code_serials (
    singleton boolean DEFAULT true NOT NULL,
    next bigint DEFAULT 1 NOT NULL,
    CONSTRAINT code_serials_next_check CHECK (((next >= 1) AND (next <= '1099511627776'::bigint))),
    CONSTRAINT code_serials_singleton_check CHECK (singleton)
);
CREATE TABLE public.console_settings (
    id boolean DEFAULT true NOT NULL,
    second_factor text NOT NULL,
    CONSTRAINT console_settings_id_check CHECK (id),
    CONSTRAINT console_settings_second_factor_check CHECK ((second_factor = ANY (ARRAY['required'::text, 'optional'::text])))
);
CREATE TABLE public.coupon_operations (
    id bigint NOT NULL,
    coupon_id bigint NOT NULL,
    order_id text DEFAULT ''::text NOT NULL,
    step text NOT NULL,
    outcome text NOT NULL,
    from_state text NOT NULL,
    to_state text NOT NULL,
    order_amount bigint DEFAULT 0 NOT NULL,
    eligible bigint DEFAULT 0 NOT NULL,
    discount bigint DEFAULT 0 NOT NULL,
    actor text DEFAULT ''::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    job_id bigint,
    CONSTRAINT coupon_operations_step_check CHECK ((step = ANY (ARRAY['lock'::text, 'confirm'::text, 'release'::text, 'refund'::text, 'timeout'::text, 'expire'::text, 'revoke'::text])))
);
ALTER TABLE public.coupon_operations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.coupon_operations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.coupon_tallies (
    template_id bigint NOT NULL,
    locked bigint DEFAULT 0 NOT NULL,
    used bigint DEFAULT 0 NOT NULL,
    expired bigint DEFAULT 0 NOT NULL,
    revoked bigint DEFAULT 0 NOT NULL,
    discounted bigint DEFAULT 0 NOT NULL,
    released bigint DEFAULT 0 NOT NULL,
    refunded bigint DEFAULT 0 NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.coupons (
    id bigint NOT NULL,
    template_id bigint NOT NULL,
    user_id bigint NOT NULL,
    claim_id bigint NOT NULL,
    origin text NOT NULL COLLATE pg_catalog."C",
    origin_key text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    state text DEFAULT 'unused'::text NOT NULL,
    issued_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    order_id text DEFAULT ''::text NOT NULL,
    locked_at timestamp with time zone,
    locked_until timestamp with time zone,
    discount bigint DEFAULT 0 NOT NULL,
    used_at timestamp with time zone,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    returned boolean DEFAULT false NOT NULL,
    CONSTRAINT coupons_claim_id_check CHECK ((claim_id > 0)),
    CONSTRAINT coupons_discount_check CHECK ((discount >= 0)),
    CONSTRAINT coupons_origin_check CHECK ((origin = ANY (ARRAY['claim'::text, 'code'::text, 'grant'::text, 'campaign'::text]))),
    CONSTRAINT coupons_state_check CHECK ((state = ANY (ARRAY['unused'::text, 'locked'::text, 'used'::text, 'expired'::text, 'refunded'::text, 'revoked'::text]))),
    CONSTRAINT coupons_user_id_check CHECK ((user_id > 0))
)
WITH (fillfactor='85', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_insert_scale_factor='0.05');
ALTER TABLE public.coupons ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.coupons_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.dead_letter_groups (
    channel smallint NOT NULL,
    fingerprint text NOT NULL,
    dead bigint DEFAULT 0 NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    sample text NOT NULL
);
CREATE TABLE public.dead_letter_jobs (
    id bigint NOT NULL,
    action text NOT NULL,
    filter jsonb NOT NULL,
    rate integer DEFAULT 0 NOT NULL,
    state text DEFAULT 'running'::text NOT NULL,
    after_batch bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    done bigint DEFAULT 0 NOT NULL,
    late bigint DEFAULT 0 NOT NULL,
    sent bigint DEFAULT 0 NOT NULL,
    lease_until timestamp with time zone,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    request_key text,
    part_batch bigint,
    part_user bigint,
    paced_at timestamp with time zone,
    CONSTRAINT dead_letter_jobs_action_check CHECK ((action = ANY (ARRAY['replay'::text, 'discard'::text]))),
    CONSTRAINT dead_letter_jobs_rate_check CHECK ((rate >= 0)),
    CONSTRAINT dead_letter_jobs_state_check CHECK ((state = ANY (ARRAY['running'::text, 'finished'::text, 'cancelled'::text])))
);
ALTER TABLE public.dead_letter_jobs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.dead_letter_jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.dead_messages (
    id bigint NOT NULL,
    message_id text NOT NULL,
    topic text NOT NULL,
    handler text NOT NULL,
    reason text NOT NULL,
    payload bytea NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    requeued_at timestamp with time zone,
    discarded_at timestamp with time zone
);
ALTER TABLE public.dead_messages ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.dead_messages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.deleted_drafts (
    kind text NOT NULL,
    id bigint NOT NULL,
    shop_number bigint NOT NULL,
    name text NOT NULL,
    content jsonb NOT NULL,
    deleted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    deleted_by text NOT NULL,
    CONSTRAINT deleted_drafts_kind_check CHECK ((kind = ANY (ARRAY['template'::text, 'campaign'::text])))
);
CREATE TABLE public.drop_models (
    id bigint NOT NULL,
    shop_number bigint NOT NULL,
    name text NOT NULL,
    content jsonb NOT NULL,
    saved_by text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    deleted_at timestamp with time zone,
    CONSTRAINT drop_models_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 60)))
);
ALTER TABLE public.drop_models ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.drop_models_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.drop_opening_counts (
    template_id bigint NOT NULL,
    channel smallint NOT NULL,
    opened bigint NOT NULL,
    CONSTRAINT drop_opening_counts_opened_check CHECK ((opened >= 0))
);
CREATE TABLE public.drop_openings (
    template_id bigint NOT NULL,
    user_id bigint NOT NULL,
    slot smallint NOT NULL,
    channel smallint NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    CONSTRAINT drop_openings_channel_check CHECK (((channel >= 0) AND (channel <= 4))),
    CONSTRAINT drop_openings_slot_check CHECK (((slot >= 0) AND (slot <= 12))),
    CONSTRAINT drop_openings_user_id_check CHECK ((user_id > 0))
);
CREATE TABLE public.erased_users (
    user_id bigint NOT NULL,
    erased_at timestamp with time zone DEFAULT now() NOT NULL,
    erased_by text NOT NULL
);
CREATE TABLE public.event_relay (
    only_row boolean DEFAULT true NOT NULL,
    settled bigint DEFAULT 0 NOT NULL,
    mark bigint DEFAULT 1 NOT NULL,
    turn smallint DEFAULT 0 NOT NULL,
    kept_from bigint DEFAULT 1 NOT NULL,
    turn_from bigint DEFAULT 1 NOT NULL,
    turned_at timestamp with time zone DEFAULT now() NOT NULL,
    history text DEFAULT ''::text NOT NULL,
    CONSTRAINT event_relay_only_row_check CHECK (only_row)
);
CREATE TABLE public.exceptions (
    batch_id bigint NOT NULL,
    user_id bigint NOT NULL,
    channel smallint NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    fingerprint text DEFAULT ''::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_retry_at timestamp with time zone,
    first_at timestamp with time zone DEFAULT now() NOT NULL,
    last_at timestamp with time zone DEFAULT now() NOT NULL,
    provider_id bigint DEFAULT 0 NOT NULL,
    CONSTRAINT exceptions_outcome_check CHECK ((outcome = ANY (ARRAY['failed'::text, 'recovered'::text, 'dead'::text, 'discarded'::text, 'expired'::text, 'skipped'::text])))
);
CREATE TABLE public.feedback_reports (
    batch_id bigint NOT NULL,
    user_id bigint NOT NULL,
    status text NOT NULL,
    provider text NOT NULL,
    cause text DEFAULT ''::text NOT NULL,
    price_micros bigint DEFAULT 0 NOT NULL,
    currency text DEFAULT ''::text NOT NULL,
    happened_at timestamp with time zone,
    reported_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT feedback_reports_status_check CHECK ((status = ANY (ARRAY['delivered'::text, 'bounced'::text, 'soft_bounced'::text, 'complained'::text])))
);
CREATE TABLE public.feedback_totals (
    kind text NOT NULL,
    owner_id bigint NOT NULL,
    channel smallint NOT NULL,
    delivered bigint NOT NULL,
    bounced bigint NOT NULL,
    complained bigint NOT NULL
);
CREATE TABLE public.figure_recounts (
    template_id bigint NOT NULL,
    figure text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT figure_recounts_figure_check CHECK ((figure = ANY (ARRAY['bookings'::text, 'tallies'::text])))
)
WITH (fillfactor='50');
CREATE TABLE public.former_reservations (
    user_id bigint NOT NULL,
    template_id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.gate_shards (
    template_id bigint NOT NULL,
    shard integer NOT NULL,
    allot bigint NOT NULL,
    settled bigint DEFAULT 0 NOT NULL,
    refused bigint DEFAULT 0 NOT NULL,
    epoch bigint NOT NULL,
    lease_until timestamp with time zone,
    CONSTRAINT gate_shards_allot_check CHECK ((allot >= 0)),
    CONSTRAINT gate_shards_epoch_check CHECK ((epoch > 0))
)
WITH (fillfactor='50');
CREATE TABLE public.gates (
    template_id bigint NOT NULL,
    shards integer NOT NULL,
    epoch bigint NOT NULL,
    state text NOT NULL,
    base bigint DEFAULT 0 NOT NULL,
    reason text NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    built_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ready_at timestamp with time zone,
    CONSTRAINT gates_epoch_check CHECK ((epoch > 0)),
    CONSTRAINT gates_shards_check CHECK (((shards >= 1) AND (shards <= 64))),
    CONSTRAINT gates_state_check CHECK ((state = ANY (ARRAY['building'::text, 'standing'::text, 'retired'::text])))
);
CREATE TABLE public.goose_db_version (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_db_version ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_db_version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.grant_rows (
    sheet_id bigint NOT NULL,
    line bigint NOT NULL,
    input text DEFAULT ''::text NOT NULL,
    user_id bigint,
    result text DEFAULT ''::text NOT NULL,
    coupon_id bigint
);
CREATE TABLE public.handled_events (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
)
PARTITION BY RANGE (event_id);
CREATE TABLE public.handled_events_20261128 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261129 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261130 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261201 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261202 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261203 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261204 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261205 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261206 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261207 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261208 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261209 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261210 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261211 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_20261212 (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.handled_events_rest (
    handler text NOT NULL,
    event_id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.hook_attempts (
    delivery_id bigint NOT NULL,
    attempt integer NOT NULL,
    at timestamp with time zone NOT NULL,
    took_ms integer NOT NULL,
    status integer NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    response text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.hook_cursor (
    only_row boolean DEFAULT true NOT NULL,
    planned_to bigint DEFAULT 0 NOT NULL,
    seen_to bigint DEFAULT 0 NOT NULL,
    seen_xmax xid8 DEFAULT '0'::xid8 NOT NULL,
    CONSTRAINT hook_cursor_only_row_check CHECK (only_row)
);
CREATE TABLE public.hook_deliveries (
    id bigint NOT NULL,
    endpoint_id bigint NOT NULL,
    event_id bigint NOT NULL,
    cause text DEFAULT 'event'::text NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    lease_token uuid,
    lease_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    done_at timestamp with time zone,
    CONSTRAINT hook_deliveries_cause_check CHECK ((cause = ANY (ARRAY['event'::text, 'replay'::text, 'test'::text]))),
    CONSTRAINT hook_deliveries_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'delivered'::text, 'failed'::text])))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.05');
ALTER TABLE public.hook_deliveries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.hook_deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.hook_endpoints (
    id bigint NOT NULL,
    shop_number bigint NOT NULL,
    url text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    types text[] DEFAULT '{}'::text[] NOT NULL,
    secret bytea NOT NULL,
    old_secret bytea,
    old_until timestamp with time zone,
    enabled boolean DEFAULT true NOT NULL,
    disabled_reason text DEFAULT ''::text NOT NULL,
    disabled_at timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    failing_since timestamp with time zone,
    held_until timestamp with time zone,
    last_success_at timestamp with time zone,
    last_failure_at timestamp with time zone,
    last_error text DEFAULT ''::text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    request_key text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    created_by text NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT hook_endpoints_description_check CHECK ((char_length(description) <= 200)),
    CONSTRAINT hook_endpoints_disabled_reason_check CHECK ((disabled_reason = ANY (ARRAY[''::text, 'staff'::text, 'failing'::text, 'gone'::text]))),
    CONSTRAINT hook_endpoints_url_check CHECK (((char_length(url) >= 1) AND (char_length(url) <= 2000)))
);
ALTER TABLE public.hook_endpoints ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.hook_endpoints_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.hook_events (
    id bigint NOT NULL,
    shop_number bigint NOT NULL,
    type text NOT NULL,
    subject text NOT NULL,
    sequence bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    items integer DEFAULT 1 NOT NULL,
    payload text NOT NULL,
    stored_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
ALTER TABLE public.hook_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.hook_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.hook_hours (
    endpoint_id bigint NOT NULL,
    hour timestamp with time zone NOT NULL,
    delivered bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    took_ms bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE public.hook_listeners (
    shop_number bigint NOT NULL,
    listener text NOT NULL,
    types text[] DEFAULT '{}'::text[] NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    until timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.hook_sequence
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE VIEW public.hook_wants AS
 SELECT hook_endpoints.shop_number,
    hook_endpoints.types,
    hook_endpoints.created_at AS since
   FROM public.hook_endpoints
  WHERE (hook_endpoints.enabled OR (hook_endpoints.disabled_reason = 'failing'::text))
UNION ALL
 SELECT hook_listeners.shop_number,
    hook_listeners.types,
    hook_listeners.since
   FROM public.hook_listeners
  WHERE (hook_listeners.until > now());
CREATE TABLE public.idempotency_keys (
    actor text NOT NULL,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    status integer,
    header jsonb,
    body bytea,
    locked_until timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    attempt bigint DEFAULT 0 NOT NULL,
    known bytea,
    found bigint[]
);
CREATE TABLE public.inbox_reads (
    user_id bigint NOT NULL,
    read_through timestamp with time zone NOT NULL
);
CREATE TABLE public.job_errors (
    job_id bigint NOT NULL,
    id bigint NOT NULL,
    line bigint NOT NULL,
    "row" text NOT NULL,
    error text NOT NULL,
    because jsonb DEFAULT '[]'::jsonb NOT NULL
);
ALTER TABLE public.job_errors ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.job_errors_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.jobs (
    id bigint NOT NULL,
    kind text NOT NULL,
    title text NOT NULL,
    shop_number bigint DEFAULT 0 NOT NULL,
    needs text NOT NULL,
    params jsonb DEFAULT '{}'::jsonb NOT NULL,
    cursor jsonb,
    result jsonb,
    state text DEFAULT 'waiting'::text NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    done bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    created_by text NOT NULL,
    actor jsonb NOT NULL,
    upload_id bigint,
    request_key text DEFAULT ''::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_run_at timestamp with time zone DEFAULT now() NOT NULL,
    lease_token uuid,
    lease_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    CONSTRAINT jobs_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'running'::text, 'done'::text, 'failed'::text, 'cancelled'::text])))
)
WITH (fillfactor='50');
ALTER TABLE public.jobs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.live_channels (
    template_id bigint NOT NULL,
    channel_id text DEFAULT ''::text NOT NULL,
    told text DEFAULT ''::text NOT NULL,
    told_at timestamp with time zone,
    ended boolean DEFAULT false NOT NULL,
    next_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    lease_token uuid,
    lease_until timestamp with time zone
)
WITH (fillfactor='70');
CREATE TABLE public.mail_warmup (
    day date NOT NULL,
    mails bigint NOT NULL,
    refused_at timestamp with time zone
);
CREATE TABLE public.message_looks (
    template_id bigint NOT NULL,
    by_member text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.message_versions (
    id bigint NOT NULL,
    shop_number bigint NOT NULL,
    template_id bigint DEFAULT 0 NOT NULL,
    kind text NOT NULL,
    channel text DEFAULT ''::text NOT NULL,
    language text DEFAULT ''::text NOT NULL,
    content jsonb,
    restored_from bigint,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT message_versions_kind_check CHECK ((kind = ANY (ARRAY['reminder'::text, 'correction'::text, 'cancelled'::text, 'notice'::text, 'names'::text, 'settings'::text])))
);
ALTER TABLE public.message_versions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.message_versions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.notice_cursor (
    only_row boolean DEFAULT true NOT NULL,
    planned_to bigint DEFAULT 0 NOT NULL,
    seen_to bigint DEFAULT 0 NOT NULL,
    seen_xmax xid8,
    CONSTRAINT notice_cursor_only_row_check CHECK (only_row)
);
CREATE TABLE public.notice_days (
    day date NOT NULL,
    template_id bigint NOT NULL,
    planned bigint DEFAULT 0 NOT NULL,
    sent bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    dropped bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.notice_runs (
    id bigint NOT NULL,
    template_id bigint NOT NULL,
    days smallint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    settled_at timestamp with time zone,
    told bigint DEFAULT 0 NOT NULL
);
ALTER TABLE public.notice_runs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.notice_runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.notices (
    user_id bigint NOT NULL,
    template_id bigint NOT NULL,
    day date NOT NULL,
    days smallint NOT NULL,
    due_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    status smallint DEFAULT 0 NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    run_id bigint,
    CONSTRAINT notices_status_check CHECK ((status = ANY (ARRAY[0, 1, 2])))
)
WITH (fillfactor='85');
CREATE TABLE public.opt_out_changes (
    changed xid8 DEFAULT pg_current_xact_id() NOT NULL,
    user_id bigint NOT NULL,
    seen timestamp with time zone
);
CREATE TABLE public.outbox (
    id bigint NOT NULL,
    event_id uuid DEFAULT public.new_event_id() NOT NULL,
    topic text NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    trace text DEFAULT ''::text NOT NULL,
    merged boolean DEFAULT false NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000');
ALTER TABLE public.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.password_links (
    staff_id bigint NOT NULL,
    hash bytea NOT NULL,
    purpose text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT password_links_purpose_check CHECK ((purpose = ANY (ARRAY['invitation'::text, 'password_reset'::text])))
);
CREATE TABLE public.phone_verifications (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    phone text NOT NULL,
    number text NOT NULL,
    locale text DEFAULT ''::text NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    code_hash bytea,
    attempts integer DEFAULT 0 NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    due_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    confirmed_at timestamp with time zone,
    token uuid,
    lease_until timestamp with time zone,
    CONSTRAINT phone_verifications_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'sending'::text, 'sent'::text, 'failed'::text, 'held'::text])))
)
WITH (fillfactor='70');
ALTER TABLE public.phone_verifications ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.phone_verifications_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.processes (
    id uuid NOT NULL,
    program text NOT NULL,
    channels smallint NOT NULL,
    seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.provider_calls (
    channel smallint NOT NULL,
    worker text NOT NULL,
    at timestamp with time zone NOT NULL,
    calls bigint NOT NULL,
    messages bigint NOT NULL,
    failed bigint NOT NULL,
    total_ms bigint NOT NULL,
    slowest_ms bigint NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    provider_id bigint DEFAULT 0 NOT NULL,
    CONSTRAINT provider_calls_channel_check CHECK (((channel >= 0) AND (channel <= 4)))
);
CREATE SEQUENCE public.provider_changes
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.providers (
    id bigint NOT NULL,
    shop_number bigint,
    channel smallint NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    weight integer DEFAULT 1 NOT NULL,
    countries text[] DEFAULT '{}'::text[] NOT NULL,
    enabled boolean NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    secrets bytea,
    secret_names text[] DEFAULT '{}'::text[] NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    changed bigint NOT NULL,
    request_key text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    created_by text NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    deleted_at timestamp with time zone,
    CONSTRAINT providers_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 60))),
    CONSTRAINT providers_weight_check CHECK ((weight > 0))
);
ALTER TABLE public.providers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.providers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.recovery_codes (
    staff_id bigint NOT NULL,
    hash bytea NOT NULL,
    used_at timestamp with time zone
);
CREATE TABLE public.relayed_events (
    turn smallint NOT NULL,
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    topic text NOT NULL,
    payload jsonb NOT NULL,
    trace text DEFAULT ''::text NOT NULL
)
PARTITION BY LIST (turn);
CREATE TABLE public.relayed_events_0 (
    turn smallint NOT NULL,
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    topic text NOT NULL,
    payload jsonb NOT NULL,
    trace text DEFAULT ''::text NOT NULL
)
WITH (autovacuum_vacuum_insert_threshold='-1');
CREATE TABLE public.relayed_events_1 (
    turn smallint NOT NULL,
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    topic text NOT NULL,
    payload jsonb NOT NULL,
    trace text DEFAULT ''::text NOT NULL
)
WITH (autovacuum_vacuum_insert_threshold='-1');
ALTER TABLE public.relayed_events ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.relayed_events_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.removed_coupons (
    template_id bigint NOT NULL,
    coupons bigint NOT NULL,
    returned bigint NOT NULL,
    counted bigint NOT NULL,
    removed_at timestamp with time zone DEFAULT now() NOT NULL,
    used bigint NOT NULL,
    expired bigint NOT NULL,
    revoked bigint NOT NULL,
    discounted bigint NOT NULL
);
CREATE TABLE public.report_links (
    id bigint NOT NULL,
    template_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    created_by text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    CONSTRAINT report_links_check CHECK ((expires_at > created_at))
);
ALTER TABLE public.report_links ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.report_links_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.reservations (
    template_id bigint NOT NULL,
    user_id bigint NOT NULL,
    slots bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    consents smallint,
    CONSTRAINT reservations_slots_check CHECK (((slots > 0) AND (slots < '1152921504606846976'::bigint))),
    CONSTRAINT reservations_user_id_check CHECK ((user_id > 0))
)
WITH (fillfactor='85', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_insert_scale_factor='0.05');
CREATE TABLE public.saved_views (
    id bigint NOT NULL,
    staff_id bigint NOT NULL,
    list text NOT NULL,
    name text NOT NULL,
    query text NOT NULL,
    shared boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT saved_views_list_check CHECK ((char_length(list) <= 40)),
    CONSTRAINT saved_views_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 60))),
    CONSTRAINT saved_views_query_check CHECK ((char_length(query) <= 1000))
);
ALTER TABLE public.saved_views ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.saved_views_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.second_factors (
    id bigint NOT NULL,
    staff_id bigint NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    handle bytea NOT NULL,
    secret bytea NOT NULL,
    counter bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT second_factors_kind_check CHECK ((kind = ANY (ARRAY['totp'::text, 'passkey'::text])))
);
ALTER TABLE public.second_factors ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.second_factors_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.segment_members (
    segment_id bigint NOT NULL,
    chunk bigint NOT NULL,
    members bytea NOT NULL,
    count integer NOT NULL
);
CREATE TABLE public.segments (
    id bigint NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    rule jsonb NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    members bigint,
    counted_at timestamp with time zone,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    request_key text,
    CONSTRAINT segments_kind_check CHECK ((kind = ANY (ARRAY['rules'::text, 'list'::text]))),
    CONSTRAINT segments_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 120)))
);
ALTER TABLE public.segments ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.segments_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.sessions (
    token text NOT NULL,
    data bytea NOT NULL,
    expiry timestamp with time zone NOT NULL
);
CREATE TABLE public.shops (
    number bigint NOT NULL,
    name text NOT NULL,
    timezone text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    claim_url text DEFAULT ''::text NOT NULL,
    CONSTRAINT shops_number_check CHECK ((number > 0))
);
CREATE TABLE public.sign_ins (
    id uuid NOT NULL,
    staff_id bigint NOT NULL,
    ip text NOT NULL,
    user_agent text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    revoked_at timestamp with time zone,
    method text DEFAULT 'password'::text NOT NULL
);
CREATE TABLE public.slot_forecasts (
    slot_id bigint NOT NULL,
    channel smallint NOT NULL,
    opens_at timestamp with time zone NOT NULL,
    made_at timestamp with time zone NOT NULL,
    booked bigint NOT NULL,
    messages bigint NOT NULL,
    missed bigint NOT NULL,
    per_second double precision NOT NULL,
    finish_at timestamp with time zone NOT NULL,
    CONSTRAINT slot_forecasts_channel_check CHECK (((channel >= 0) AND (channel <= 4)))
);
CREATE TABLE public.slot_results (
    slot_id bigint NOT NULL,
    channel smallint NOT NULL,
    reserved bigint NOT NULL,
    sent bigint DEFAULT 0 NOT NULL,
    skipped bigint DEFAULT 0 NOT NULL,
    expired bigint DEFAULT 0 NOT NULL,
    dead bigint DEFAULT 0 NOT NULL,
    archived boolean DEFAULT false NOT NULL,
    late jsonb,
    done_at timestamp with time zone,
    expected double precision,
    CONSTRAINT slot_results_channel_check CHECK (((channel >= 0) AND (channel <= 4)))
);
CREATE TABLE public.slots (
    id bigint NOT NULL,
    template_id bigint NOT NULL,
    slot smallint NOT NULL,
    opens_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    state text NOT NULL,
    stop_reason text,
    fired_at timestamp with time zone,
    cut_at timestamp with time zone,
    finished_at timestamp with time zone,
    watched_at timestamp with time zone,
    cut_token uuid,
    cut_lease_until timestamp with time zone,
    planned_at timestamp with time zone,
    round smallint DEFAULT 0 NOT NULL,
    CONSTRAINT slots_round_check CHECK ((round >= 0)),
    CONSTRAINT slots_slot_check CHECK (((slot >= 1) AND (slot <= 12))),
    CONSTRAINT slots_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'firing'::text, 'sending'::text, 'finished'::text, 'passed'::text, 'moved'::text, 'cancelled'::text])))
)
WITH (fillfactor='70');
ALTER TABLE public.slots ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.slots_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.sms_early (
    provider text NOT NULL,
    serial text NOT NULL,
    status text NOT NULL,
    cause text NOT NULL,
    at timestamp with time zone,
    kept_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.sms_replies (
    provider text NOT NULL,
    id bytea NOT NULL,
    word text NOT NULL,
    users integer NOT NULL,
    taken_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT sms_replies_word_check CHECK ((word = ANY (ARRAY['stop'::text, 'start'::text, 'help'::text])))
);
CREATE TABLE public.sms_serials (
    provider text NOT NULL,
    serial text NOT NULL,
    reference text NOT NULL,
    kept_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.sms_spent (
    day date NOT NULL,
    parts bigint NOT NULL,
    refused_at timestamp with time zone,
    micros bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.sms_spent_drops (
    template_id bigint NOT NULL,
    parts bigint NOT NULL,
    refused_at timestamp with time zone
);
CREATE TABLE public.sms_stops (
    user_id bigint NOT NULL,
    stopped_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.soft_bounces (
    address text NOT NULL,
    count integer NOT NULL,
    last_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.staff (
    id bigint NOT NULL,
    email text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    role text NOT NULL,
    shops bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    password_hash text DEFAULT ''::text NOT NULL,
    locale text DEFAULT ''::text NOT NULL,
    theme text DEFAULT ''::text NOT NULL,
    disabled_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    sso_issuer text DEFAULT ''::text NOT NULL,
    sso_subject text DEFAULT ''::text NOT NULL,
    CONSTRAINT staff_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'marketer'::text, 'operator'::text, 'admin'::text])))
);
CREATE TABLE public.staff_browsers (
    id bigint NOT NULL,
    staff_id bigint NOT NULL,
    sign_in uuid NOT NULL,
    endpoint text NOT NULL,
    p256dh text NOT NULL,
    auth text NOT NULL,
    agent text NOT NULL,
    language text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT staff_browsers_endpoint_check CHECK ((char_length(endpoint) <= 2000))
);
ALTER TABLE public.staff_browsers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.staff_browsers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE public.staff ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.staff_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.stock_counts (
    template_id bigint NOT NULL,
    coupons bigint NOT NULL,
    counted_to bigint NOT NULL,
    seen_to bigint NOT NULL,
    seen_xact xid8 NOT NULL,
    checked_to bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.suppressions (
    address text NOT NULL,
    reason text NOT NULL,
    provider text DEFAULT ''::text NOT NULL,
    cause text DEFAULT ''::text NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    released_at timestamp with time zone,
    CONSTRAINT suppressions_address_check CHECK ((address <> ''::text)),
    CONSTRAINT suppressions_reason_check CHECK ((reason = ANY (ARRAY['bounced'::text, 'soft_bounced'::text, 'complained'::text, 'staff'::text])))
);
CREATE TABLE public.templates (
    id bigint NOT NULL,
    shop_number bigint NOT NULL,
    name text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    kind text NOT NULL,
    amount_off bigint DEFAULT 0 NOT NULL,
    threshold bigint DEFAULT 0 NOT NULL,
    percent_off integer DEFAULT 0 NOT NULL,
    max_off bigint DEFAULT 0 NOT NULL,
    currency text NOT NULL,
    target text NOT NULL,
    product text DEFAULT ''::text NOT NULL,
    stock bigint NOT NULL,
    issued bigint DEFAULT 0 NOT NULL,
    per_user_limit integer NOT NULL,
    opens_at timestamp with time zone NOT NULL,
    closes_at timestamp with time zone NOT NULL,
    valid_until timestamp with time zone,
    valid_hours integer DEFAULT 0 NOT NULL,
    obtain text NOT NULL,
    claim_mode text NOT NULL,
    claim_url text DEFAULT ''::text NOT NULL,
    state text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    request_key text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    published_at timestamp with time zone,
    ended_at timestamp with time zone,
    notify_days integer DEFAULT 0 NOT NULL,
    notify_channels smallint DEFAULT 1 NOT NULL,
    returned bigint DEFAULT 0 NOT NULL,
    remind_once boolean DEFAULT false NOT NULL,
    CONSTRAINT templates_amount_off_check CHECK ((amount_off >= 0)),
    CONSTRAINT templates_check CHECK (((issued >= 0) AND (issued <= stock))),
    CONSTRAINT templates_check1 CHECK ((closes_at > opens_at)),
    CONSTRAINT templates_check2 CHECK (((valid_until IS NOT NULL) OR (valid_hours > 0))),
    CONSTRAINT templates_claim_mode_check CHECK ((claim_mode = ANY (ARRAY['durable'::text, 'gate'::text]))),
    CONSTRAINT templates_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT templates_description_check CHECK ((char_length(description) <= 4000)),
    CONSTRAINT templates_kind_check CHECK ((kind = ANY (ARRAY['amount_off'::text, 'threshold_off'::text, 'percent_off'::text]))),
    CONSTRAINT templates_max_off_check CHECK ((max_off >= 0)),
    CONSTRAINT templates_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
    CONSTRAINT templates_notify_channels_check CHECK (((notify_channels >= 1) AND (notify_channels <= 31))),
    CONSTRAINT templates_notify_days_check CHECK ((notify_days >= 0)),
    CONSTRAINT templates_obtain_check CHECK ((obtain = ANY (ARRAY['claim'::text, 'code'::text]))),
    CONSTRAINT templates_opens_at_check CHECK ((opens_at = date_trunc('second'::text, opens_at))),
    CONSTRAINT templates_per_user_limit_check CHECK ((per_user_limit > 0)),
    CONSTRAINT templates_percent_off_check CHECK (((percent_off >= 0) AND (percent_off <= 100))),
    CONSTRAINT templates_returned_check CHECK ((returned >= 0)),
    CONSTRAINT templates_state_check CHECK ((state = ANY (ARRAY['draft'::text, 'published'::text, 'paused'::text, 'closed'::text, 'cancelled'::text]))),
    CONSTRAINT templates_stock_check CHECK ((stock >= 0)),
    CONSTRAINT templates_target_check CHECK ((target = ANY (ARRAY['shop'::text, 'product'::text]))),
    CONSTRAINT templates_threshold_check CHECK ((threshold >= 0)),
    CONSTRAINT templates_valid_hours_check CHECK ((valid_hours >= 0))
)
WITH (fillfactor='50');
ALTER TABLE public.templates ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.templates_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.upload_parts (
    upload_id bigint NOT NULL,
    part integer NOT NULL,
    content bytea NOT NULL
);
ALTER TABLE ONLY public.upload_parts ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE TABLE public.uploads (
    id bigint NOT NULL,
    name text NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    sha256 bytea,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    previews jsonb
);
ALTER TABLE public.uploads ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.uploads_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.users (
    id bigint NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    email text DEFAULT ''::text NOT NULL,
    phone text DEFAULT ''::text NOT NULL,
    locale text DEFAULT ''::text NOT NULL,
    timezone text DEFAULT ''::text NOT NULL,
    push jsonb DEFAULT '[]'::jsonb NOT NULL,
    opt_outs smallint DEFAULT 0 NOT NULL,
    quiet_from smallint DEFAULT 0 NOT NULL,
    quiet_to smallint DEFAULT 0 NOT NULL,
    attributes jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    devices jsonb DEFAULT '[]'::jsonb NOT NULL,
    phone_verified_at timestamp with time zone,
    CONSTRAINT users_id_check CHECK ((id > 0))
);
CREATE TABLE public.wallet_passes (
    coupon_id bigint NOT NULL,
    user_id bigint NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    google boolean DEFAULT false NOT NULL,
    coupon_version bigint NOT NULL,
    expiry_noted boolean DEFAULT false NOT NULL,
    revision bigint DEFAULT 1 NOT NULL,
    modified_at timestamp with time zone DEFAULT date_trunc('second'::text, clock_timestamp()) NOT NULL,
    google_told bigint DEFAULT 0 NOT NULL,
    next_at timestamp with time zone,
    changed_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    lease_token uuid,
    lease_until timestamp with time zone
)
WITH (fillfactor='80');
CREATE TABLE public.wallet_registrations (
    device text NOT NULL,
    coupon_id bigint NOT NULL,
    user_id bigint NOT NULL,
    push_token text NOT NULL,
    told bigint DEFAULT 0 NOT NULL,
    CONSTRAINT wallet_registrations_device_check CHECK (((char_length(device) >= 1) AND (char_length(device) <= 200))),
    CONSTRAINT wallet_registrations_push_token_check CHECK (((char_length(push_token) >= 1) AND (char_length(push_token) <= 200)))
);
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261128 FOR VALUES FROM ('01a21f73-9c00-0000-0000-000000000000') TO ('01a22499-f800-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261129 FOR VALUES FROM ('01a22499-f800-0000-0000-000000000000') TO ('01a229c0-5400-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261130 FOR VALUES FROM ('01a229c0-5400-0000-0000-000000000000') TO ('01a22ee6-b000-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261201 FOR VALUES FROM ('01a22ee6-b000-0000-0000-000000000000') TO ('01a2340d-0c00-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261202 FOR VALUES FROM ('01a2340d-0c00-0000-0000-000000000000') TO ('01a23933-6800-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261203 FOR VALUES FROM ('01a23933-6800-0000-0000-000000000000') TO ('01a23e59-c400-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261204 FOR VALUES FROM ('01a23e59-c400-0000-0000-000000000000') TO ('01a24380-2000-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261205 FOR VALUES FROM ('01a24380-2000-0000-0000-000000000000') TO ('01a248a6-7c00-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261206 FOR VALUES FROM ('01a248a6-7c00-0000-0000-000000000000') TO ('01a24dcc-d800-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261207 FOR VALUES FROM ('01a24dcc-d800-0000-0000-000000000000') TO ('01a252f3-3400-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261208 FOR VALUES FROM ('01a252f3-3400-0000-0000-000000000000') TO ('01a25819-9000-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261209 FOR VALUES FROM ('01a25819-9000-0000-0000-000000000000') TO ('01a25d3f-ec00-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261210 FOR VALUES FROM ('01a25d3f-ec00-0000-0000-000000000000') TO ('01a26266-4800-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261211 FOR VALUES FROM ('01a26266-4800-0000-0000-000000000000') TO ('01a2678c-a400-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_20261212 FOR VALUES FROM ('01a2678c-a400-0000-0000-000000000000') TO ('01a26cb3-0000-0000-0000-000000000000');
ALTER TABLE ONLY public.handled_events ATTACH PARTITION public.handled_events_rest DEFAULT;
ALTER TABLE ONLY public.relayed_events ATTACH PARTITION public.relayed_events_0 FOR VALUES IN ('0');
ALTER TABLE ONLY public.relayed_events ATTACH PARTITION public.relayed_events_1 FOR VALUES IN ('1');
INSERT INTO public.accepted_messages VALUES (2, '{1001}', '2026-11-28 16:38:31.038131+00', 1);
INSERT INTO public.alert_deliveries OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 'sent', 0, '2026-11-28 16:38:31.058295+00', NULL, '2026-12-01 12:30:00+00', '', '2026-11-28 16:38:31.058295+00', NULL);
INSERT INTO public.alert_destinations OVERRIDING SYSTEM VALUE VALUES (1, 10, 'feishu', 'Operators', '', '', 'en', '{late}', 'staff:1 Ada', '2026-11-28 16:38:31.058119+00', NULL, '\x00');
INSERT INTO public.alert_pushes OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 'sent', 0, '2026-11-28 16:38:31.059178+00', NULL, '2026-12-01 12:30:00+00', '', '2026-11-28 16:38:31.059178+00', NULL);
INSERT INTO public.alert_readers VALUES (1, 1, '{job}');
INSERT INTO public.alerts OVERRIDING SYSTEM VALUE VALUES (1, 'late', 'late:1', 10, 1, 0, 'Moon cake night', 2, '', '', 0, 0, '2026-11-28 16:38:31.057885+00', NULL);
INSERT INTO public.announcements OVERRIDING SYSTEM VALUE VALUES (1, 1, 'correction', '2026-12-01 12:00:00+00', 'finished', NULL, NULL, NULL, 'staff:1 Ada', '2026-11-30 09:00:00+00', '2026-12-01 12:00:00+00', NULL, '2026-11-30 09:00:02+00', NULL, 3);
INSERT INTO public.api_keys OVERRIDING SYSTEM VALUE VALUES (1, 'Till', 'db_abc', '\x01', '{payment}', 'staff:1 Ada', '2026-11-28 16:38:31.026138+00', NULL, NULL, NULL);
INSERT INTO public.audit OVERRIDING SYSTEM VALUE VALUES (1, '2026-11-28 16:38:31.026138+00', 'staff:1 Ada', 'template.publish', 'template', '1', 10, '', '{"state": "draft"}', '{"state": "published"}', '192.0.2.1', 'r-1');
INSERT INTO public.batch_feedback VALUES (2, 'reminder', 1, 1, NULL, '\x0100000000000000000000003a300000010000000000010010000000e903ea03', NULL, NULL, 0, 2, 0);
INSERT INTO public.batch_providers VALUES (1, 1, '\x0100000000000000000000003a300000010000000000010010000000e903ea03', 2);
INSERT INTO public.batches OVERRIDING SYSTEM VALUE VALUES (1, 'reminder', 1, 1, 0, 1001, 1002, 'done', 0, '2026-12-01 11:55:00+00', '2026-12-01 12:00:00+00', '2026-11-28 16:38:31.026138+00', NULL, 0, NULL, NULL, NULL, '\x0100000000000000000000003a300000010000000000010010000000e903ea03', '\x0100000000000000000000003a300000010000000000010010000000e903ea03', 2, 2, 0, 0, 0, 0, NULL, NULL, '2026-11-28 16:38:31.026138+00', NULL, '2026-12-01 11:55:02+00', false, '{2}', NULL, NULL, NULL, 1);
INSERT INTO public.batches OVERRIDING SYSTEM VALUE VALUES (2, 'reminder', 1, 1, 1, 1001, 1002, 'done', 0, '2026-12-01 11:55:00+00', '2026-12-01 12:00:00+00', '2026-11-28 16:38:31.026138+00', NULL, 0, NULL, NULL, NULL, '\x0100000000000000000000003a300000010000000000010010000000e903ea03', NULL, 2, 0, 0, 0, 2, 0, NULL, NULL, '2026-11-28 16:38:31.026138+00', NULL, '2026-12-01 11:55:02+00', false, NULL, NULL, NULL, NULL, 1);
INSERT INTO public.booking_growth VALUES (1, '2026-11-30 10:00:00+00', 2);
INSERT INTO public.bookings VALUES (1, 1, 0, 2);
INSERT INTO public.campaign_limits VALUES (10, 2, 5, 10000, '2026-11-28 16:38:31.026138+00');
INSERT INTO public.campaign_messages VALUES (1, 0, 1001, 1002, 2, NULL, NULL, '2026-12-03 09:00:00+00', '2026-12-03 09:00:01+00');
INSERT INTO public.campaign_openings VALUES (1, 1002, 0, '2026-12-03 09:05:00+00');
INSERT INTO public.campaign_publications VALUES ('\x01', 1, '2026-12-02 09:00:00+00');
INSERT INTO public.campaign_requests OVERRIDING SYSTEM VALUE VALUES (1, 1, 10, 'Thank you', 0, '{"variants": [{"texts": {"": {"body": "See you soon", "title": "Thank you"}}, "percent": 100}]}', '{"id": "1", "kind": "segment_id"}', NULL, 0, '2026-12-03 09:00:00+00', '2026-12-04 09:00:00+00', 0, NULL, NULL, NULL, 2, true, '2026-12-02 09:00:00+00', 'approved', 'staff:1', 'Ada', '2026-11-28 16:38:31.046047+00', '', 'staff:2 Bo', '2026-12-02 10:00:00+00', '', NULL);
INSERT INTO public.campaign_results VALUES (1, 0, 2, 2, 1, 0, 1, 0);
INSERT INTO public.campaigns OVERRIDING SYSTEM VALUE VALUES (1, 10, 'Thank you', 0, '{"variants": [{"texts": {"": {"body": "See you soon", "title": "Thank you"}}, "percent": 100}]}', '{"id": "1", "kind": "segment_id"}', NULL, NULL, '2026-12-03 09:00:00+00', '2026-12-04 09:00:00+00', 0, 'finished', '', 1, 'campaign-1', 'staff:1', 'staff:1 Ada', '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', '2026-12-02 09:00:00+00', '2026-12-03 09:00:00+00', '2026-12-03 09:00:01+00', '2026-12-04 09:00:00+00', '2026-12-04 09:00:01+00', NULL, NULL, 0, 2, 2, 0, 0, 0, false, NULL, 0, NULL, 0, NULL, '', NULL, '-infinity', NULL, 1, 'English', '{"all": [{"op": "is", "field": "locale", "values": ["en"]}]}', NULL, 'staff:1 Ada');
INSERT INTO public.channel_rates VALUES (0, '2026-12-01 11:55:00+00', 12000, 2);
INSERT INTO public.channel_settings VALUES (0, false, '', 0, '2026-11-28 16:38:30.770831+00', NULL, '');
INSERT INTO public.channel_settings VALUES (1, false, '', 0, '2026-11-28 16:38:30.770831+00', NULL, '');
INSERT INTO public.channel_settings VALUES (2, false, '', 0, '2026-11-28 16:38:30.770831+00', NULL, '');
INSERT INTO public.channel_settings VALUES (3, false, '', 0, '2026-11-28 16:38:30.770831+00', NULL, '');
INSERT INTO public.channel_settings VALUES (4, false, '', 0, '2026-11-28 16:38:30.770831+00', NULL, '');
INSERT INTO public.channel_tests OVERRIDING SYSTEM VALUE VALUES (1, 1, '', false, 0, '', '2026-11-30 09:00:00+00', 'done', NULL, NULL, 'delivered', '', 0, 'staff:1 Ada', '2026-11-28 16:38:31.026138+00', NULL, NULL, 0);
INSERT INTO public.checked_rows VALUES (1, 1001, 1, 7);
INSERT INTO public.claim_counts VALUES (1, 1001, 2);
INSERT INTO public.claim_counts VALUES (1, 1002, 2);
INSERT INTO public.claim_results VALUES (15, 1, 1001, 'claim', '1001:k2', 'limit_reached', NULL, '2026-11-28 16:38:31.026138+00');
INSERT INTO public.claim_seconds VALUES (1, '2026-12-01 12:00:00+00', 4);
INSERT INTO public.code_batches OVERRIDING SYSTEM VALUE VALUES (1, 2, 1, 10, 1, 'ready', 10, 0, 0, 'codes-1', 'staff:1 Ada', '2026-11-28 16:38:31.026138+00', '2026-11-30 09:00:00+00', NULL, '', '');
INSERT INTO public.code_parts VALUES (1, 0, 10, '\xabababababababababababababababababababababababababababababababab');
INSERT INTO public.code_serials VALUES (true, 11);
INSERT INTO public.console_settings VALUES (true, 'required');
INSERT INTO public.coupon_operations OVERRIDING SYSTEM VALUE VALUES (1, 1, 'A-1', 'lock', 'done', 'unused', 'locked', 5000, 5000, 500, 'key:1 Till', '', '2026-11-28 16:38:31.048945+00', NULL);
INSERT INTO public.coupon_operations OVERRIDING SYSTEM VALUE VALUES (2, 1, 'A-1', 'confirm', 'done', 'locked', 'used', 0, 0, 500, 'key:1 Till', '', '2026-11-28 16:38:31.049136+00', NULL);
INSERT INTO public.coupon_operations OVERRIDING SYSTEM VALUE VALUES (3, 4, '', 'revoke', 'done', 'unused', 'revoked', 0, 0, 0, 'staff:1 Ada', '', '2026-11-28 16:38:31.049146+00', NULL);
INSERT INTO public.coupon_tallies VALUES (1, 0, 1, 0, 1, 500, 0, 0, '2026-11-28 16:38:31.026138+00');
INSERT INTO public.coupons OVERRIDING SYSTEM VALUE VALUES (1, 1, 1001, 11, 'claim', '1001:k', 'used', '2026-12-01 12:00:00+00', '2026-12-03 12:00:00+00', 'A-1', NULL, NULL, 500, '2026-12-01 18:00:00+00', '2026-11-28 16:38:31.026138+00', 2, false);
INSERT INTO public.coupons OVERRIDING SYSTEM VALUE VALUES (2, 1, 1002, 12, 'claim', '1002:k', 'unused', '2026-12-01 12:00:00+00', '2027-12-03 12:00:00+00', '', NULL, NULL, 0, NULL, '2026-11-28 16:38:31.026138+00', 0, false);
INSERT INTO public.coupons OVERRIDING SYSTEM VALUE VALUES (3, 1, 1002, 13, 'claim', '', 'unused', '2026-12-01 12:00:00+00', '2027-12-03 12:00:00+00', '', NULL, NULL, 0, NULL, '2026-11-28 16:38:31.026138+00', 0, false);
INSERT INTO public.coupons OVERRIDING SYSTEM VALUE VALUES (4, 1, 1001, 14, 'grant', 'g:1', 'revoked', '2026-12-01 12:00:00+00', '2027-12-03 12:00:00+00', '', NULL, NULL, 0, NULL, '2026-11-28 16:38:31.026138+00', 1, true);
INSERT INTO public.dead_letter_groups VALUES (1, '550 no such user', 2, '2026-12-01 11:55:00+00', '2026-12-01 11:55:00+00', '550 no such user');
INSERT INTO public.dead_letter_jobs OVERRIDING SYSTEM VALUE VALUES (1, 'replay', '{}', 0, 'finished', 0, 2, 2, 0, 0, NULL, 'staff:1 Ada', '2026-11-28 16:38:31.026138+00', NULL, 'replay-1', NULL, NULL, NULL);
INSERT INTO public.dead_messages OVERRIDING SYSTEM VALUE VALUES (1, 'm-1', 'users.changed.v1', 'bookings', 'unreadable', '\x7b7d', '2026-11-28 16:38:31.026138+00', NULL, NULL);
INSERT INTO public.deleted_drafts VALUES ('template', 900, 10, 'Second thoughts', '{"id": 900}', '2026-11-28 16:38:31.035294+00', 'staff:1 Ada');
INSERT INTO public.drop_models OVERRIDING SYSTEM VALUE VALUES (1, 10, 'Evening drop', '{"name": "Moon cake night"}', 'staff:1 Ada', '2026-11-28 16:38:31.035031+00', NULL);
INSERT INTO public.drop_opening_counts VALUES (1, 1, 1);
INSERT INTO public.drop_openings VALUES (1, 1001, 1, 1, '2026-12-01 11:56:00+00');
INSERT INTO public.erased_users VALUES (1003, '2026-11-28 16:38:31.026138+00', 'staff:1 Ada');
INSERT INTO public.event_relay VALUES (true, 0, 1, 0, 1, 1, '2026-11-28 16:38:30.770831+00', '');
INSERT INTO public.exceptions VALUES (2, 1001, 1, 'dead', 'permanent', '550 no such user', '550 no such user', 1, NULL, '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', 1);
INSERT INTO public.exceptions VALUES (2, 1002, 1, 'dead', 'permanent', '550 no such user', '550 no such user', 1, NULL, '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', 1);
INSERT INTO public.feedback_reports VALUES (2, 1001, 'bounced', 'ses', 'no such mailbox', 0, '', '2026-12-01 11:56:00+00', '2026-11-28 16:38:31.040245+00');
INSERT INTO public.feedback_totals VALUES ('reminder', 900, 1, 10, 1, 0);
INSERT INTO public.figure_recounts VALUES (1, 'bookings', '2026-11-28 16:38:31.033692+00');
INSERT INTO public.former_reservations VALUES (1003, 1, '2026-11-28 16:38:31.026138+00');
INSERT INTO public.gate_shards VALUES (1, 0, 500, 2, 0, 1, NULL);
INSERT INTO public.gate_shards VALUES (1, 1, 500, 1, 0, 1, NULL);
INSERT INTO public.gates VALUES (1, 2, 1, 'standing', 0, 'published', '2026-11-29 08:01:00+00', '2026-11-29 08:00:00+00', '2026-11-28 16:38:31.026138+00', NULL);
INSERT INTO public.goose_db_version VALUES (1, 0, true, '2026-11-28 16:38:30.380787');
INSERT INTO public.goose_db_version VALUES (2, 136, true, '2026-11-28 16:38:30.770831');
INSERT INTO public.grant_rows VALUES (1, 1, '1001', 1001, 'issued', 4);
INSERT INTO public.handled_events_20261128 VALUES ('bookings', '01a22305-c790-7b93-a8de-18e9129a5d39', '2026-11-28 16:38:31.026138+00');
INSERT INTO public.handled_events_rest VALUES ('bookings', '5f0f1cb4-0f0e-4a35-9c0f-6ac4e8f4a1aa', '2026-11-28 16:38:31.026138+00');
INSERT INTO public.hook_attempts VALUES (1, 1, '2026-12-01 18:00:01+00', 40, 200, '', '');
INSERT INTO public.hook_cursor VALUES (true, 0, 0, '0');
INSERT INTO public.hook_deliveries OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 'event', 'delivered', 1, '2026-11-28 16:38:31.060597+00', NULL, NULL, '2026-11-28 16:38:31.060597+00', '2026-12-01 18:00:01+00');
INSERT INTO public.hook_endpoints OVERRIDING SYSTEM VALUE VALUES (1, 10, 'https://tea.example/hooks', 'Till', '{coupon.used}', '\x00', NULL, NULL, true, '', NULL, 0, NULL, NULL, NULL, NULL, '', 1, NULL, '2026-11-28 16:38:31.059653+00', 'staff:1 Ada', '2026-11-28 16:38:31.059653+00');
INSERT INTO public.hook_events OVERRIDING SYSTEM VALUE VALUES (1, 10, 'coupon.used', 'coupon/1', 1, '2026-12-01 18:00:00+00', 1, '{"type": "coupon.used"}', '2026-11-28 16:38:31.060342+00');
INSERT INTO public.hook_hours VALUES (1, '2026-12-01 18:00:00+00', 1, 0, 40);
INSERT INTO public.hook_listeners VALUES (10, 'key:1', '{}', '2026-11-28 16:38:31.059932+00', '2026-12-01 12:10:00+00');
INSERT INTO public.idempotency_keys VALUES ('user:1001', 'k', '\x01', 201, '{}', '\x7b7d', '2026-12-01 12:00:00+00', '2026-11-28 16:38:31.026138+00', 0, NULL, NULL);
INSERT INTO public.idempotency_keys VALUES ('user:1002', 'k', '\x01', NULL, NULL, NULL, 'infinity', '2026-11-28 16:38:31.026138+00', 0, '\x00', '{1,2}');
INSERT INTO public.inbox_reads VALUES (1001, '2026-12-01 12:30:00+00');
INSERT INTO public.job_errors OVERRIDING SYSTEM VALUE VALUES (1, 1, 2, 'x', 'no user id', '[]');
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (1, 'coupons.grant', 'Moon cake night', 10, 'manage_coupons', '{"file": "guests.csv", "template_id": "1"}', NULL, NULL, 'done', 2, 1, 1, '', '', 'staff:1 Ada', '{}', 1, 'job-1', 0, '2026-11-28 16:38:31.026138+00', NULL, NULL, '2026-11-28 16:38:31.026138+00', '2026-12-01 13:00:00+00', '2026-12-01 13:01:00+00');
INSERT INTO public.live_channels VALUES (1, 'c2hvcA==', '{"state": "open"}', NULL, false, '2026-11-28 16:38:31.035473+00', 0, NULL, NULL);
INSERT INTO public.mail_warmup VALUES ('2026-12-01', 200, NULL);
INSERT INTO public.message_looks VALUES (1, 'staff:1 Ada', '2026-11-28 16:38:31.026138+00');
INSERT INTO public.message_versions OVERRIDING SYSTEM VALUE VALUES (1, 10, 0, 'reminder', 'email', 'en', '{"title": "Soon: {drop}", "blocks": [{"text": "It opens in {minutes}.", "type": "text"}]}', NULL, 'staff:1 Ada', '2026-11-28 16:38:31.03571+00');
INSERT INTO public.notice_cursor VALUES (true, 0, 0, NULL);
INSERT INTO public.notice_days VALUES ('2026-12-02', 1, 1, 1, 0, 0);
INSERT INTO public.notice_runs OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, '2026-12-02 02:00:00+00', '2026-11-28 16:38:31.049619+00', '2026-12-02 02:01:00+00', 1);
INSERT INTO public.notices VALUES (1002, 1, '2026-12-02', 1, '2026-12-02 02:00:00+00', '2026-12-03 12:00:00+00', 1, '', 1);
INSERT INTO public.opt_out_changes VALUES ('730', 1001, NULL);
INSERT INTO public.outbox OVERRIDING SYSTEM VALUE VALUES (1, '01a22305-c78f-7832-9c60-ec3bf3927613', 'template.changed.v1', '{"at": "2026-11-29T08:00:00Z", "version": 2, "opens_at": "2026-12-01T12:00:00Z", "sequence": "2", "template_id": "1"}', '2026-11-28 16:38:31.026138+00', '', false);
INSERT INTO public.password_links VALUES (2, '\x01', 'invitation', '2026-12-08 09:00:00+00', '2026-11-28 16:38:31.026138+00');
INSERT INTO public.phone_verifications OVERRIDING SYSTEM VALUE VALUES (1, 1001, '+8613800138000', '+8613800138000', '', 'sent', '', NULL, 0, 0, '2026-11-28 16:38:31.042706+00', '2026-11-28 16:38:31.042706+00', '2026-11-30 09:10:00+00', '2026-11-30 09:00:00+00', NULL, NULL);
INSERT INTO public.processes VALUES ('018f0000-0000-7000-8000-000000000002', 'worker', 31, '2026-11-28 16:38:31.057695+00');
INSERT INTO public.provider_calls VALUES (1, 'worker-1', '2026-12-01 11:55:10+00', 2, 2, 2, 90, 60, '550', 1);
INSERT INTO public.providers OVERRIDING SYSTEM VALUE VALUES (1, 10, 1, 'smtp', 'Post office', 0, 1, '{}', true, '{"host": "mail.example"}', '\x00', '{password}', 1, 1, NULL, '2026-11-28 16:38:31.039481+00', 'staff:1 Ada', '2026-11-28 16:38:31.039481+00', NULL);
INSERT INTO public.recovery_codes VALUES (1, '\x01', NULL);
INSERT INTO public.relayed_events_0 VALUES (0, 1, '01a22305-c791-7bab-bbc6-a62bd0ce057b', 'job.created.v1', '{"at": "2026-12-01T13:00:00Z", "kind": "coupons.grant", "job_id": "1"}', '');
INSERT INTO public.relayed_events_1 VALUES (1, 2, '01a22305-c791-78eb-a461-24ea08f085da', 'job.created.v1', '{"at": "2026-12-01T13:00:00Z", "kind": "coupons.grant", "job_id": "1"}', '');
INSERT INTO public.removed_coupons VALUES (900, 10, 1, 9, '2026-11-28 16:38:31.026138+00', 5, 4, 1, 2500);
INSERT INTO public.report_links OVERRIDING SYSTEM VALUE VALUES (1, 1, '2026-12-03 09:00:00+00', 'staff:1 Ada', '2027-12-03 09:00:00+00', NULL);
INSERT INTO public.reservations VALUES (1, 1001, 1, '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', 1);
INSERT INTO public.reservations VALUES (1, 1002, 34359738369, '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', NULL);
INSERT INTO public.saved_views OVERRIDING SYSTEM VALUE VALUES (1, 1, 'templates', 'Open', 'state=open', true, '2026-11-28 16:38:31.05314+00', '2026-11-28 16:38:31.05314+00');
INSERT INTO public.second_factors OVERRIDING SYSTEM VALUE VALUES (1, 1, 'totp', 'Phone', '\x01', '\x00', 0, '2026-11-28 16:38:31.026138+00', NULL);
INSERT INTO public.segment_members VALUES (2, 0, '\x0100000000000000000000003a300000010000000000010010000000e903ea03', 2);
INSERT INTO public.segments OVERRIDING SYSTEM VALUE VALUES (1, 'English', 'rules', '{"all": [{"op": "is", "field": "locale", "values": ["en"]}]}', 1, 1, '2026-11-30 09:00:00+00', 'staff:1 Ada', '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', 'segment-1');
INSERT INTO public.segments OVERRIDING SYSTEM VALUE VALUES (2, 'Guests', 'list', '{"all": []}', 1, 2, '2026-11-30 09:00:00+00', 'staff:1 Ada', '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', 'segment-2');
INSERT INTO public.sessions VALUES ('t', '\x00', '2026-12-08 09:00:00+00');
INSERT INTO public.shops VALUES (10, 'Harbour Tea House', 'Asia/Shanghai', '2026-11-28 16:38:31.026138+00', 'https://tea.example/drops/{id}');
INSERT INTO public.sign_ins VALUES ('018f0000-0000-7000-8000-000000000001', 1, '192.0.2.1', 'Firefox', '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', NULL, 'password');
INSERT INTO public.slot_forecasts VALUES (1, 0, '2026-12-01 12:00:00+00', '2026-12-01 11:54:00+00', 2, 2, 0, 12000, '2026-12-01 11:55:01+00');
INSERT INTO public.slot_results VALUES (1, 0, 2, 1, 0, 0, 1, false, '{"0": 1}', '2026-12-01 11:55:02+00', 12000);
INSERT INTO public.slots OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, '2026-12-01 12:00:00+00', '2026-12-01 11:55:00+00', 'finished', NULL, '2026-12-01 11:55:00+00', '2026-12-01 11:55:01+00', '2026-12-01 11:55:02+00', NULL, NULL, NULL, NULL, 0);
INSERT INTO public.slots OVERRIDING SYSTEM VALUE VALUES (2, 1, 2, '2026-12-01 12:00:00+00', '2026-12-01 11:50:00+00', 'waiting', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.sms_early VALUES ('twilio', 'SM2', 'delivered', '', '2026-12-01 11:56:00+00', '2026-11-28 16:38:31.041342+00');
INSERT INTO public.sms_replies VALUES ('twilio', '\x01', 'stop', 1, '2026-11-28 16:38:31.043248+00');
INSERT INTO public.sms_serials VALUES ('twilio', 'SM1', 'r1', '2026-11-28 16:38:31.041185+00');
INSERT INTO public.sms_spent VALUES ('2026-12-01', 12, NULL, 540000);
INSERT INTO public.sms_spent_drops VALUES (1, 12, NULL);
INSERT INTO public.sms_stops VALUES (1001, '2026-11-28 16:38:31.043017+00');
INSERT INTO public.soft_bounces VALUES ('full@tea.example', 2, '2026-11-28 16:38:31.040718+00');
INSERT INTO public.staff OVERRIDING SYSTEM VALUE VALUES (1, 'ada@tea.example', 'Ada', 'admin', '{}', '', 'en', '', NULL, '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', 'https://id.example', 'ada-1');
INSERT INTO public.staff OVERRIDING SYSTEM VALUE VALUES (2, 'bo@tea.example', 'Bo', 'marketer', '{10}', '', 'zh-CN', '', NULL, '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', '', '');
INSERT INTO public.staff_browsers OVERRIDING SYSTEM VALUE VALUES (1, 1, '018f0000-0000-7000-8000-000000000001', 'https://push.example/1', 'p', 'a', 'Firefox', 'en', '2026-11-28 16:38:31.058852+00');
INSERT INTO public.stock_counts VALUES (1, 4, 4, 4, '1', 0);
INSERT INTO public.suppressions VALUES ('gone@tea.example', 'bounced', 'ses', 'no such mailbox', '2026-11-28 16:38:31.040619+00', NULL);
INSERT INTO public.templates OVERRIDING SYSTEM VALUE VALUES (1, 10, 'Moon cake night', 'Any box', 'amount_off', 500, 0, 0, 0, 'CNY', 'shop', '', 1000, 3, 2, '2026-12-01 12:00:00+00', '2026-12-02 12:00:00+00', NULL, 48, 'claim', 'gate', '', 'published', 1, 'drop-1', '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', '2026-11-29 08:00:00+00', NULL, 2, 1, 1, false);
INSERT INTO public.templates OVERRIDING SYSTEM VALUE VALUES (2, 10, 'Codes of winter', '', 'percent_off', 0, 0, 0, 0, 'CNY', 'product', '', 500, 0, 1, '2026-12-05 12:00:00+00', '2026-12-06 12:00:00+00', NULL, 24, 'code', 'durable', '', 'draft', 1, 'drop-2', '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', NULL, NULL, 0, 1, 0, false);
INSERT INTO public.upload_parts VALUES (1, 0, '\x312c32');
INSERT INTO public.uploads OVERRIDING SYSTEM VALUE VALUES (1, 'guests.csv', 3, '\x01', 'staff:1 Ada', '2026-11-28 16:38:31.026138+00', NULL);
INSERT INTO public.users VALUES (1001, 'Li Wei', 'li@tea.example', '+8613800138000', 'zh-CN', 'Asia/Shanghai', '[]', 4, 22, 7, '{"city": "Xiamen"}', '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', '[{"token": "aa11", "locale": "zh-CN", "seen_at": "2026-11-30T09:00:00Z", "platform": "ios", "app_version": "1.0"}]', '2026-11-30 09:00:00+00');
INSERT INTO public.users VALUES (1002, 'Ann Baker', 'ann@tea.example', '', 'en', 'Europe/London', '[]', 0, 0, 0, '{}', '2026-11-28 16:38:31.026138+00', '2026-11-28 16:38:31.026138+00', '[]', NULL);
INSERT INTO public.wallet_passes VALUES (2, 1002, '2027-12-03 12:00:00+00', false, 0, false, 1, '2026-11-28 16:38:31+00', 0, NULL, NULL, 0, NULL, NULL);
INSERT INTO public.wallet_registrations VALUES ('phone-1', 2, 1002, 'token-1', 0);
SELECT pg_catalog.setval('public.alert_deliveries_id_seq', 1, true);
SELECT pg_catalog.setval('public.alert_destinations_id_seq', 1, true);
SELECT pg_catalog.setval('public.alert_pushes_id_seq', 1, true);
SELECT pg_catalog.setval('public.alerts_id_seq', 1, true);
SELECT pg_catalog.setval('public.announcements_id_seq', 1, true);
SELECT pg_catalog.setval('public.api_keys_id_seq', 1, true);
SELECT pg_catalog.setval('public.audit_id_seq', 1, true);
SELECT pg_catalog.setval('public.batches_id_seq', 2, true);
SELECT pg_catalog.setval('public.campaign_requests_id_seq', 1, true);
SELECT pg_catalog.setval('public.campaigns_id_seq', 1, true);
SELECT pg_catalog.setval('public.channel_tests_id_seq', 1, true);
SELECT pg_catalog.setval('public.code_batches_id_seq', 1, true);
SELECT pg_catalog.setval('public.coupon_operations_id_seq', 3, true);
SELECT pg_catalog.setval('public.coupons_id_seq', 4, true);
SELECT pg_catalog.setval('public.dead_letter_jobs_id_seq', 1, true);
SELECT pg_catalog.setval('public.dead_messages_id_seq', 1, true);
SELECT pg_catalog.setval('public.drop_models_id_seq', 1, true);
SELECT pg_catalog.setval('public.goose_db_version_id_seq', 2, true);
SELECT pg_catalog.setval('public.hook_deliveries_id_seq', 1, true);
SELECT pg_catalog.setval('public.hook_endpoints_id_seq', 1, true);
SELECT pg_catalog.setval('public.hook_events_id_seq', 1, true);
SELECT pg_catalog.setval('public.hook_sequence', 1, true);
SELECT pg_catalog.setval('public.job_errors_id_seq', 1, true);
SELECT pg_catalog.setval('public.jobs_id_seq', 1, true);
SELECT pg_catalog.setval('public.message_versions_id_seq', 1, true);
SELECT pg_catalog.setval('public.notice_runs_id_seq', 1, true);
SELECT pg_catalog.setval('public.outbox_id_seq', 1, true);
SELECT pg_catalog.setval('public.phone_verifications_id_seq', 1, true);
SELECT pg_catalog.setval('public.provider_changes', 1, true);
SELECT pg_catalog.setval('public.providers_id_seq', 1, true);
SELECT pg_catalog.setval('public.relayed_events_seq_seq', 2, true);
SELECT pg_catalog.setval('public.report_links_id_seq', 1, true);
SELECT pg_catalog.setval('public.saved_views_id_seq', 1, true);
SELECT pg_catalog.setval('public.second_factors_id_seq', 1, true);
SELECT pg_catalog.setval('public.segments_id_seq', 2, true);
SELECT pg_catalog.setval('public.slots_id_seq', 2, true);
SELECT pg_catalog.setval('public.staff_browsers_id_seq', 1, true);
SELECT pg_catalog.setval('public.staff_id_seq', 2, true);
SELECT pg_catalog.setval('public.templates_id_seq', 2, true);
SELECT pg_catalog.setval('public.uploads_id_seq', 1, true);
ALTER TABLE ONLY public.alert_deliveries
    ADD CONSTRAINT alert_deliveries_alert_id_destination_id_key UNIQUE (alert_id, destination_id);
ALTER TABLE ONLY public.alert_deliveries
    ADD CONSTRAINT alert_deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.alert_destinations
    ADD CONSTRAINT alert_destinations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.alert_pushes
    ADD CONSTRAINT alert_pushes_alert_id_browser_id_key UNIQUE (alert_id, browser_id);
ALTER TABLE ONLY public.alert_pushes
    ADD CONSTRAINT alert_pushes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.alert_readers
    ADD CONSTRAINT alert_readers_pkey PRIMARY KEY (staff_id);
ALTER TABLE ONLY public.alerts
    ADD CONSTRAINT alerts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.announcements
    ADD CONSTRAINT announcements_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.batch_feedback
    ADD CONSTRAINT batch_feedback_pkey PRIMARY KEY (batch_id);
ALTER TABLE ONLY public.batch_providers
    ADD CONSTRAINT batch_providers_pkey PRIMARY KEY (batch_id, provider_id);
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_kind_owner_id_channel_from_user_key UNIQUE (kind, owner_id, channel, from_user);
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.booking_growth
    ADD CONSTRAINT booking_growth_pkey PRIMARY KEY (template_id, minute);
ALTER TABLE ONLY public.bookings
    ADD CONSTRAINT bookings_pkey PRIMARY KEY (template_id, slot, channel);
ALTER TABLE ONLY public.campaign_limits
    ADD CONSTRAINT campaign_limits_pkey PRIMARY KEY (shop_number);
ALTER TABLE ONLY public.campaign_messages
    ADD CONSTRAINT campaign_messages_pkey PRIMARY KEY (campaign_id, seq);
ALTER TABLE ONLY public.campaign_openings
    ADD CONSTRAINT campaign_openings_pkey PRIMARY KEY (campaign_id, user_id);
ALTER TABLE ONLY public.campaign_publications
    ADD CONSTRAINT campaign_publications_pkey PRIMARY KEY (fingerprint);
ALTER TABLE ONLY public.campaign_requests
    ADD CONSTRAINT campaign_requests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.campaign_results
    ADD CONSTRAINT campaign_results_pkey PRIMARY KEY (campaign_id, variant);
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT campaigns_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT campaigns_request_key_key UNIQUE (request_key);
ALTER TABLE ONLY public.channel_rates
    ADD CONSTRAINT channel_rates_pkey PRIMARY KEY (channel, at);
ALTER TABLE ONLY public.channel_settings
    ADD CONSTRAINT channel_settings_pkey PRIMARY KEY (channel);
ALTER TABLE ONLY public.channel_tests
    ADD CONSTRAINT channel_tests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.checked_rows
    ADD CONSTRAINT checked_rows_pkey PRIMARY KEY (job_id, user_id, line);
ALTER TABLE ONLY public.claim_counts
    ADD CONSTRAINT claim_counts_pkey PRIMARY KEY (template_id, user_id);
ALTER TABLE ONLY public.claim_results
    ADD CONSTRAINT claim_results_pkey PRIMARY KEY (claim_id);
ALTER TABLE ONLY public.claim_seconds
    ADD CONSTRAINT claim_seconds_pkey PRIMARY KEY (template_id, second);
ALTER TABLE ONLY public.code_batches
    ADD CONSTRAINT code_batches_apart EXCLUDE USING gist (int8range(first_serial, (first_serial + count)) WITH &&);
ALTER TABLE ONLY public.code_batches
    ADD CONSTRAINT code_batches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.code_parts
    ADD CONSTRAINT code_parts_pkey PRIMARY KEY (batch_id, part);
ALTER TABLE ONLY public.code_serials
    ADD CONSTRAINT code_serials_pkey PRIMARY KEY (singleton);
ALTER TABLE ONLY public.console_settings
    ADD CONSTRAINT console_settings_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.coupon_operations
    ADD CONSTRAINT coupon_operations_coupon_id_order_id_step_outcome_key UNIQUE (coupon_id, order_id, step, outcome);
ALTER TABLE ONLY public.coupon_operations
    ADD CONSTRAINT coupon_operations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.coupon_tallies
    ADD CONSTRAINT coupon_tallies_pkey PRIMARY KEY (template_id);
ALTER TABLE ONLY public.coupons
    ADD CONSTRAINT coupons_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.dead_letter_groups
    ADD CONSTRAINT dead_letter_groups_pkey PRIMARY KEY (channel, fingerprint);
ALTER TABLE ONLY public.dead_letter_jobs
    ADD CONSTRAINT dead_letter_jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.dead_letter_jobs
    ADD CONSTRAINT dead_letter_jobs_request_key_key UNIQUE (request_key);
ALTER TABLE ONLY public.dead_messages
    ADD CONSTRAINT dead_messages_message_id_handler_key UNIQUE (message_id, handler);
ALTER TABLE ONLY public.dead_messages
    ADD CONSTRAINT dead_messages_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.deleted_drafts
    ADD CONSTRAINT deleted_drafts_pkey PRIMARY KEY (kind, id);
ALTER TABLE ONLY public.drop_models
    ADD CONSTRAINT drop_models_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.drop_opening_counts
    ADD CONSTRAINT drop_opening_counts_pkey PRIMARY KEY (template_id, channel);
ALTER TABLE ONLY public.drop_openings
    ADD CONSTRAINT drop_openings_pkey PRIMARY KEY (template_id, user_id);
ALTER TABLE ONLY public.erased_users
    ADD CONSTRAINT erased_users_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.event_relay
    ADD CONSTRAINT event_relay_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY public.exceptions
    ADD CONSTRAINT exceptions_pkey PRIMARY KEY (batch_id, user_id);
ALTER TABLE ONLY public.feedback_reports
    ADD CONSTRAINT feedback_reports_pkey PRIMARY KEY (batch_id, user_id);
ALTER TABLE ONLY public.feedback_totals
    ADD CONSTRAINT feedback_totals_pkey PRIMARY KEY (kind, owner_id, channel);
ALTER TABLE ONLY public.figure_recounts
    ADD CONSTRAINT figure_recounts_pkey PRIMARY KEY (template_id, figure);
ALTER TABLE ONLY public.former_reservations
    ADD CONSTRAINT former_reservations_pkey PRIMARY KEY (user_id, template_id);
ALTER TABLE ONLY public.gate_shards
    ADD CONSTRAINT gate_shards_pkey PRIMARY KEY (template_id, shard);
ALTER TABLE ONLY public.gates
    ADD CONSTRAINT gates_pkey PRIMARY KEY (template_id);
ALTER TABLE ONLY public.goose_db_version
    ADD CONSTRAINT goose_db_version_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.grant_rows
    ADD CONSTRAINT grant_rows_pkey PRIMARY KEY (sheet_id, line);
ALTER TABLE ONLY public.handled_events
    ADD CONSTRAINT handled_events_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261128
    ADD CONSTRAINT handled_events_20261128_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261129
    ADD CONSTRAINT handled_events_20261129_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261130
    ADD CONSTRAINT handled_events_20261130_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261201
    ADD CONSTRAINT handled_events_20261201_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261202
    ADD CONSTRAINT handled_events_20261202_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261203
    ADD CONSTRAINT handled_events_20261203_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261204
    ADD CONSTRAINT handled_events_20261204_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261205
    ADD CONSTRAINT handled_events_20261205_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261206
    ADD CONSTRAINT handled_events_20261206_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261207
    ADD CONSTRAINT handled_events_20261207_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261208
    ADD CONSTRAINT handled_events_20261208_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261209
    ADD CONSTRAINT handled_events_20261209_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261210
    ADD CONSTRAINT handled_events_20261210_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261211
    ADD CONSTRAINT handled_events_20261211_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_20261212
    ADD CONSTRAINT handled_events_20261212_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.handled_events_rest
    ADD CONSTRAINT handled_events_rest_pkey PRIMARY KEY (handler, event_id);
ALTER TABLE ONLY public.hook_attempts
    ADD CONSTRAINT hook_attempts_pkey PRIMARY KEY (delivery_id, attempt);
ALTER TABLE ONLY public.hook_cursor
    ADD CONSTRAINT hook_cursor_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY public.hook_deliveries
    ADD CONSTRAINT hook_deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.hook_endpoints
    ADD CONSTRAINT hook_endpoints_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.hook_endpoints
    ADD CONSTRAINT hook_endpoints_request_key_key UNIQUE (request_key);
ALTER TABLE ONLY public.hook_events
    ADD CONSTRAINT hook_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.hook_hours
    ADD CONSTRAINT hook_hours_pkey PRIMARY KEY (endpoint_id, hour);
ALTER TABLE ONLY public.hook_listeners
    ADD CONSTRAINT hook_listeners_pkey PRIMARY KEY (shop_number, listener);
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (actor, key);
ALTER TABLE ONLY public.inbox_reads
    ADD CONSTRAINT inbox_reads_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.job_errors
    ADD CONSTRAINT job_errors_pkey PRIMARY KEY (job_id, id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.live_channels
    ADD CONSTRAINT live_channels_pkey PRIMARY KEY (template_id);
ALTER TABLE ONLY public.mail_warmup
    ADD CONSTRAINT mail_warmup_pkey PRIMARY KEY (day);
ALTER TABLE ONLY public.message_looks
    ADD CONSTRAINT message_looks_pkey PRIMARY KEY (template_id);
ALTER TABLE ONLY public.message_versions
    ADD CONSTRAINT message_versions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.notice_cursor
    ADD CONSTRAINT notice_cursor_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY public.notice_days
    ADD CONSTRAINT notice_days_pkey PRIMARY KEY (day, template_id);
ALTER TABLE ONLY public.notice_runs
    ADD CONSTRAINT notice_runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.notices
    ADD CONSTRAINT notices_pkey PRIMARY KEY (user_id, template_id, day);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.password_links
    ADD CONSTRAINT password_links_hash UNIQUE (hash);
ALTER TABLE ONLY public.password_links
    ADD CONSTRAINT password_links_pkey PRIMARY KEY (staff_id);
ALTER TABLE ONLY public.phone_verifications
    ADD CONSTRAINT phone_verifications_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.processes
    ADD CONSTRAINT processes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.provider_calls
    ADD CONSTRAINT provider_calls_pkey PRIMARY KEY (channel, worker, at);
ALTER TABLE ONLY public.providers
    ADD CONSTRAINT providers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.providers
    ADD CONSTRAINT providers_request_key_key UNIQUE (request_key);
ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_pkey PRIMARY KEY (staff_id, hash);
ALTER TABLE ONLY public.removed_coupons
    ADD CONSTRAINT removed_coupons_pkey PRIMARY KEY (template_id);
ALTER TABLE ONLY public.report_links
    ADD CONSTRAINT report_links_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.reservations
    ADD CONSTRAINT reservations_pkey PRIMARY KEY (template_id, user_id);
ALTER TABLE ONLY public.saved_views
    ADD CONSTRAINT saved_views_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.second_factors
    ADD CONSTRAINT second_factors_handle UNIQUE (handle);
ALTER TABLE ONLY public.second_factors
    ADD CONSTRAINT second_factors_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.segment_members
    ADD CONSTRAINT segment_members_pkey PRIMARY KEY (segment_id, chunk);
ALTER TABLE ONLY public.segments
    ADD CONSTRAINT segments_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.segments
    ADD CONSTRAINT segments_request_key_key UNIQUE (request_key);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (token);
ALTER TABLE ONLY public.shops
    ADD CONSTRAINT shops_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.sign_ins
    ADD CONSTRAINT sign_ins_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.slot_forecasts
    ADD CONSTRAINT slot_forecasts_pkey PRIMARY KEY (slot_id, channel);
ALTER TABLE ONLY public.slot_results
    ADD CONSTRAINT slot_results_pkey PRIMARY KEY (slot_id, channel);
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT slots_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT slots_template_id_slot_due_at_key UNIQUE (template_id, slot, due_at);
ALTER TABLE ONLY public.sms_early
    ADD CONSTRAINT sms_early_pkey PRIMARY KEY (provider, serial, status);
ALTER TABLE ONLY public.sms_replies
    ADD CONSTRAINT sms_replies_pkey PRIMARY KEY (provider, id);
ALTER TABLE ONLY public.sms_serials
    ADD CONSTRAINT sms_serials_pkey PRIMARY KEY (provider, serial);
ALTER TABLE ONLY public.sms_spent_drops
    ADD CONSTRAINT sms_spent_drops_pkey PRIMARY KEY (template_id);
ALTER TABLE ONLY public.sms_spent
    ADD CONSTRAINT sms_spent_pkey PRIMARY KEY (day);
ALTER TABLE ONLY public.sms_stops
    ADD CONSTRAINT sms_stops_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.soft_bounces
    ADD CONSTRAINT soft_bounces_pkey PRIMARY KEY (address);
ALTER TABLE ONLY public.staff_browsers
    ADD CONSTRAINT staff_browsers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.stock_counts
    ADD CONSTRAINT stock_counts_pkey PRIMARY KEY (template_id);
ALTER TABLE ONLY public.suppressions
    ADD CONSTRAINT suppressions_pkey PRIMARY KEY (address);
ALTER TABLE ONLY public.templates
    ADD CONSTRAINT templates_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.templates
    ADD CONSTRAINT templates_request_key_key UNIQUE (request_key);
ALTER TABLE ONLY public.upload_parts
    ADD CONSTRAINT upload_parts_pkey PRIMARY KEY (upload_id, part);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.wallet_passes
    ADD CONSTRAINT wallet_passes_pkey PRIMARY KEY (coupon_id);
ALTER TABLE ONLY public.wallet_registrations
    ADD CONSTRAINT wallet_registrations_pkey PRIMARY KEY (device, coupon_id);
CREATE INDEX accepted_messages_batch ON public.accepted_messages USING btree (batch_id);
CREATE INDEX alert_deliveries_due ON public.alert_deliveries USING btree (next_at) WHERE (state = 'waiting'::text);
CREATE INDEX alert_pushes_browser ON public.alert_pushes USING btree (browser_id, id DESC);
CREATE INDEX alert_pushes_due ON public.alert_pushes USING btree (next_at) WHERE (state = 'waiting'::text);
CREATE INDEX alerts_key ON public.alerts USING btree (key, id DESC);
CREATE UNIQUE INDEX alerts_open ON public.alerts USING btree (key) WHERE (ended_at IS NULL);
CREATE UNIQUE INDEX announcements_once ON public.announcements USING btree (template_id, kind, opens_at) WHERE (superseded_at IS NULL);
CREATE INDEX announcements_template ON public.announcements USING btree (template_id, id);
CREATE INDEX announcements_unfinished ON public.announcements USING btree (id) WHERE (state <> 'finished'::text);
CREATE INDEX audit_action ON public.audit USING btree (action, id DESC);
CREATE INDEX audit_actor ON public.audit USING btree (actor, id DESC);
CREATE INDEX audit_at ON public.audit USING btree (at);
CREATE INDEX audit_label ON public.audit USING btree (split_part(actor, ' '::text, 1), id DESC);
CREATE INDEX audit_object ON public.audit USING btree (object_kind, object_id, id DESC);
CREATE INDEX audit_reason ON public.audit USING btree (id DESC) WHERE (reason <> ''::text);
CREATE INDEX audit_shop ON public.audit USING btree (shop_number, id DESC);
CREATE INDEX batch_feedback_owner ON public.batch_feedback USING btree (kind, owner_id, channel);
CREATE INDEX batches_app_finished ON public.batches USING btree (finished_at) WHERE (channel = 0);
CREATE INDEX batches_channel_due ON public.batches USING btree (channel, due_at, id);
CREATE INDEX batches_dead ON public.batches USING btree (due_at, id) WHERE (dead_count > 0);
CREATE INDEX batches_due ON public.batches USING btree (due_at, id);
CREATE INDEX batches_expired ON public.batches USING btree (due_at, id) WHERE (expired_count > 0);
CREATE INDEX batches_failed ON public.batches USING btree (due_at, id) WHERE (failed_count > 0);
CREATE INDEX batches_kind_due ON public.batches USING btree (kind, due_at, id);
CREATE INDEX batches_leased ON public.batches USING btree (lease_until) WHERE (state = 'running'::text);
CREATE INDEX batches_range ON public.batches USING gist (int8range(from_user, NULLIF(to_user, '9223372036854775807'::bigint), '[]'::text));
CREATE INDEX batches_runnable ON public.batches USING btree (channel, priority, worthless_after, id) WHERE ((state = 'ready'::text) AND (NOT held));
CREATE INDEX batches_skipped ON public.batches USING btree (due_at, id) WHERE (skipped_count > 0);
CREATE INDEX batches_template ON public.batches USING btree (template_id, id);
CREATE INDEX batches_template_due ON public.batches USING btree (template_id, due_at, id);
CREATE INDEX batches_unfinished ON public.batches USING btree (due_at, id) WHERE (state <> 'done'::text);
CREATE INDEX campaign_messages_waiting ON public.campaign_messages USING btree (campaign_id, seq) WHERE (stored_at IS NULL);
CREATE INDEX campaign_requests_campaign ON public.campaign_requests USING btree (campaign_id, id DESC);
CREATE UNIQUE INDEX campaign_requests_open ON public.campaign_requests USING btree (campaign_id) WHERE (state = 'asked'::text);
CREATE INDEX campaigns_due ON public.campaigns USING btree (starts_at) WHERE (state = 'scheduled'::text);
CREATE INDEX campaigns_held ON public.campaigns USING btree (ends_at) WHERE (held_at IS NOT NULL);
CREATE INDEX campaigns_open ON public.campaigns USING btree (id) WHERE ((state = ANY (ARRAY['running'::text, 'paused'::text, 'cancelled'::text, 'failed'::text])) AND (settled_at IS NULL));
CREATE INDEX campaigns_parts ON public.campaigns USING gin (public.text_parts(name, 1));
CREATE INDEX campaigns_recent ON public.campaigns USING btree (started_at) WHERE (started_at IS NOT NULL);
CREATE INDEX campaigns_shop ON public.campaigns USING btree (shop_number, id);
CREATE INDEX campaigns_shop_starts ON public.campaigns USING btree (shop_number, starts_at, id);
CREATE INDEX campaigns_starts ON public.campaigns USING btree (starts_at, id);
CREATE INDEX campaigns_to_count ON public.campaigns USING btree (count_due_at) WHERE ((started_at IS NOT NULL) AND (NOT archived) AND (count_due_at < 'infinity'::timestamp with time zone));
CREATE INDEX channel_tests_channel ON public.channel_tests USING btree (channel, id DESC);
CREATE INDEX channel_tests_open ON public.channel_tests USING btree (id) WHERE (state <> 'done'::text);
CREATE INDEX claim_results_key ON public.claim_results USING btree (origin, origin_key) WHERE (origin_key <> ''::text);
CREATE INDEX claim_results_template ON public.claim_results USING btree (template_id, claim_id);
CREATE UNIQUE INDEX code_batches_first ON public.code_batches USING btree (first_serial);
CREATE UNIQUE INDEX code_batches_request ON public.code_batches USING btree (template_id, request_key) WHERE (request_key <> ''::text);
CREATE INDEX code_batches_template ON public.code_batches USING btree (template_id, id DESC);
CREATE INDEX coupon_operations_order ON public.coupon_operations USING btree (order_id, coupon_id) WHERE (order_id <> ''::text);
CREATE INDEX coupons_due ON public.coupons USING btree (expires_at, id) WHERE (state = 'unused'::text);
CREATE INDEX coupons_locked ON public.coupons USING btree (locked_until) WHERE (state = 'locked'::text);
CREATE UNIQUE INDEX coupons_origin ON public.coupons USING btree (origin, origin_key) WHERE (origin_key <> ''::text);
CREATE INDEX coupons_returned ON public.coupons USING btree (template_id) WHERE returned;
CREATE INDEX coupons_template ON public.coupons USING btree (template_id, id);
CREATE INDEX coupons_template_state ON public.coupons USING btree (template_id, state, id) WHERE (state = ANY (ARRAY['locked'::text, 'used'::text, 'expired'::text, 'revoked'::text]));
CREATE INDEX coupons_user ON public.coupons USING btree (user_id, id DESC);
CREATE INDEX dead_letter_jobs_running ON public.dead_letter_jobs USING btree (id) WHERE (state = 'running'::text);
CREATE INDEX deleted_drafts_at ON public.deleted_drafts USING btree (deleted_at);
CREATE INDEX drop_models_deleted ON public.drop_models USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE UNIQUE INDEX drop_models_name ON public.drop_models USING btree (shop_number, lower(name)) WHERE (deleted_at IS NULL);
CREATE INDEX erased_users_order ON public.erased_users USING btree (erased_at) INCLUDE (user_id);
CREATE INDEX exceptions_dead ON public.exceptions USING btree (channel, fingerprint, batch_id, user_id) WHERE (outcome = 'dead'::text);
CREATE INDEX exceptions_dead_batch ON public.exceptions USING btree (batch_id, user_id) WHERE (outcome = 'dead'::text);
CREATE INDEX exceptions_user ON public.exceptions USING btree (user_id, batch_id);
CREATE INDEX feedback_reports_user ON public.feedback_reports USING btree (user_id);
CREATE INDEX former_reservations_template ON public.former_reservations USING btree (template_id);
CREATE INDEX gates_unretired ON public.gates USING btree (template_id) WHERE (state <> 'retired'::text);
CREATE INDEX grant_rows_user ON public.grant_rows USING btree (sheet_id, user_id, line) WHERE (user_id IS NOT NULL);
CREATE INDEX handled_events_rest_at ON public.handled_events_rest USING btree (at);
CREATE INDEX hook_deliveries_due ON public.hook_deliveries USING btree (endpoint_id, next_at, id) WHERE (state = 'waiting'::text);
CREATE INDEX hook_deliveries_event ON public.hook_deliveries USING btree (event_id);
CREATE INDEX hook_deliveries_log ON public.hook_deliveries USING btree (endpoint_id, id);
CREATE INDEX hook_deliveries_state ON public.hook_deliveries USING btree (endpoint_id, state, id) WHERE (state <> 'delivered'::text);
CREATE INDEX hook_endpoints_shop ON public.hook_endpoints USING btree (shop_number, id);
CREATE INDEX hook_events_shop ON public.hook_events USING btree (shop_number, id);
CREATE INDEX idempotency_keys_created ON public.idempotency_keys USING btree (created_at);
CREATE INDEX jobs_finished ON public.jobs USING btree (finished_at) WHERE (finished_at IS NOT NULL);
CREATE INDEX jobs_grants ON public.jobs USING btree (((params ->> 'template_id'::text)), id) WHERE (kind = 'coupons.grant'::text);
CREATE INDEX jobs_grants_all ON public.jobs USING btree (id) WHERE (kind = 'coupons.grant'::text);
CREATE INDEX jobs_lists ON public.jobs USING btree (((params ->> 'segment_id'::text)), id) WHERE (kind = 'segment.list'::text);
CREATE UNIQUE INDEX jobs_request ON public.jobs USING btree (kind, split_part(created_by, ' '::text, 1), request_key) WHERE (request_key <> ''::text);
CREATE INDEX jobs_shop ON public.jobs USING btree (shop_number, id);
CREATE INDEX jobs_unfinished ON public.jobs USING btree (id) WHERE (state = ANY (ARRAY['waiting'::text, 'running'::text]));
CREATE INDEX jobs_upload ON public.jobs USING btree (upload_id) WHERE (upload_id IS NOT NULL);
CREATE INDEX live_channels_due ON public.live_channels USING btree (next_at);
CREATE INDEX message_versions_current ON public.message_versions USING btree (shop_number, template_id, kind, channel, language, id DESC);
CREATE INDEX notice_runs_open ON public.notice_runs USING btree (id) WHERE (settled_at IS NULL);
CREATE INDEX notices_day ON public.notices USING btree (day, template_id, user_id);
CREATE INDEX notices_due ON public.notices USING btree (due_at) WHERE ((status = 0) AND (run_id IS NULL));
CREATE INDEX notices_run ON public.notices USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE INDEX opt_out_changes_changed ON public.opt_out_changes USING btree (changed);
CREATE INDEX opt_out_changes_seen ON public.opt_out_changes USING btree (seen);
CREATE INDEX phone_verifications_created ON public.phone_verifications USING btree (created_at);
CREATE INDEX phone_verifications_number ON public.phone_verifications USING btree (number, created_at);
CREATE INDEX phone_verifications_open ON public.phone_verifications USING btree (due_at) WHERE (state = ANY (ARRAY['waiting'::text, 'sending'::text]));
CREATE INDEX phone_verifications_user ON public.phone_verifications USING btree (user_id, id);
CREATE INDEX provider_calls_at ON public.provider_calls USING btree (at);
CREATE INDEX relayed_events_seq ON ONLY public.relayed_events USING btree (seq);
CREATE INDEX relayed_events_0_seq_idx ON public.relayed_events_0 USING btree (seq);
CREATE INDEX relayed_events_1_seq_idx ON public.relayed_events_1 USING btree (seq);
CREATE INDEX report_links_template ON public.report_links USING btree (template_id, id);
CREATE INDEX reservations_user ON public.reservations USING btree (user_id);
CREATE UNIQUE INDEX saved_views_name ON public.saved_views USING btree (staff_id, list, lower(name));
CREATE INDEX saved_views_shared ON public.saved_views USING btree (list) WHERE shared;
CREATE INDEX second_factors_staff ON public.second_factors USING btree (staff_id);
CREATE INDEX segments_updated ON public.segments USING btree (updated_at DESC, id DESC);
CREATE INDEX sessions_expiry ON public.sessions USING btree (expiry);
CREATE INDEX sign_ins_staff ON public.sign_ins USING btree (staff_id, created_at DESC);
CREATE INDEX slot_forecasts_opening ON public.slot_forecasts USING btree (opens_at DESC);
CREATE INDEX slots_due ON public.slots USING btree (due_at) WHERE (state = 'waiting'::text);
CREATE INDEX slots_finished ON public.slots USING btree (finished_at) WHERE (state = 'finished'::text);
CREATE INDEX slots_unfinished ON public.slots USING btree (id) WHERE (state = ANY (ARRAY['firing'::text, 'sending'::text]));
CREATE INDEX sms_early_kept ON public.sms_early USING btree (kept_at);
CREATE INDEX sms_replies_taken ON public.sms_replies USING btree (taken_at);
CREATE INDEX sms_serials_kept ON public.sms_serials USING btree (kept_at);
CREATE UNIQUE INDEX staff_browsers_endpoint ON public.staff_browsers USING btree (endpoint);
CREATE INDEX staff_browsers_staff ON public.staff_browsers USING btree (staff_id);
CREATE UNIQUE INDEX staff_email ON public.staff USING btree (lower(email));
CREATE UNIQUE INDEX staff_identity ON public.staff USING btree (sso_issuer, sso_subject) WHERE (sso_subject <> ''::text);
CREATE INDEX templates_ending ON public.templates USING btree (closes_at) WHERE (state = ANY (ARRAY['published'::text, 'paused'::text]));
CREATE INDEX templates_expiring ON public.templates USING btree (valid_until) WHERE ((state = ANY (ARRAY['published'::text, 'paused'::text])) AND (valid_until IS NOT NULL));
CREATE INDEX templates_opening ON public.templates USING btree (opens_at, id);
CREATE INDEX templates_parts ON public.templates USING gin (public.text_parts(name, 1));
CREATE INDEX templates_shop ON public.templates USING btree (shop_number, id);
CREATE INDEX templates_shop_opening ON public.templates USING btree (shop_number, opens_at, id);
CREATE INDEX templates_state ON public.templates USING btree (state, opens_at, id);
CREATE INDEX uploads_created ON public.uploads USING btree (created_at);
CREATE INDEX users_devices ON public.users USING gin (devices jsonb_path_ops) WHERE (devices <> '[]'::jsonb);
CREATE INDEX users_email ON public.users USING btree (lower(email) text_pattern_ops) WHERE (email <> ''::text);
CREATE INDEX users_name ON public.users USING btree (lower(name) text_pattern_ops) WHERE (name <> ''::text);
CREATE INDEX users_opt_outs ON public.users USING btree (id) INCLUDE (opt_outs) WHERE (opt_outs <> 0);
CREATE INDEX users_phone ON public.users USING btree (phone text_pattern_ops) WHERE (phone <> ''::text);
CREATE INDEX users_quiet ON public.users USING btree (id) WHERE (quiet_from <> quiet_to);
CREATE INDEX wallet_passes_due ON public.wallet_passes USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX wallet_passes_expired ON public.wallet_passes USING btree (expires_at) WHERE expiry_noted;
CREATE INDEX wallet_passes_expiring ON public.wallet_passes USING btree (expires_at) WHERE (NOT expiry_noted);
CREATE INDEX wallet_passes_user ON public.wallet_passes USING btree (user_id);
CREATE INDEX wallet_registrations_coupon ON public.wallet_registrations USING btree (coupon_id);
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261128_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261129_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261130_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261201_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261202_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261203_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261204_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261205_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261206_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261207_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261208_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261209_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261210_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261211_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_20261212_pkey;
ALTER INDEX public.handled_events_pkey ATTACH PARTITION public.handled_events_rest_pkey;
ALTER INDEX public.relayed_events_seq ATTACH PARTITION public.relayed_events_0_seq_idx;
ALTER INDEX public.relayed_events_seq ATTACH PARTITION public.relayed_events_1_seq_idx;
CREATE TRIGGER users_opt_outs_changed AFTER UPDATE OF id, opt_outs ON public.users FOR EACH ROW WHEN (((old.opt_outs <> new.opt_outs) OR (old.id <> new.id))) EXECUTE FUNCTION public.note_opt_outs();
CREATE TRIGGER users_opt_outs_removed AFTER DELETE ON public.users FOR EACH ROW WHEN ((old.opt_outs <> 0)) EXECUTE FUNCTION public.note_opt_outs();
CREATE TRIGGER users_opt_outs_stored AFTER INSERT ON public.users FOR EACH ROW WHEN ((new.opt_outs <> 0)) EXECUTE FUNCTION public.note_opt_outs();
CREATE TRIGGER users_phone_changed BEFORE UPDATE OF phone ON public.users FOR EACH ROW WHEN (((old.phone <> new.phone) AND (old.phone_verified_at IS NOT NULL) AND (NOT (new.phone_verified_at IS DISTINCT FROM old.phone_verified_at)))) EXECUTE FUNCTION public.forget_phone_verification();
CREATE TRIGGER users_sms_opt_out AFTER UPDATE OF opt_outs ON public.users FOR EACH ROW WHEN ((((old.opt_outs)::integer & 4) <> ((new.opt_outs)::integer & 4))) EXECUTE FUNCTION public.forget_sms_stop();
ALTER TABLE ONLY public.alert_deliveries
    ADD CONSTRAINT alert_deliveries_alert_id_fkey FOREIGN KEY (alert_id) REFERENCES public.alerts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.alert_deliveries
    ADD CONSTRAINT alert_deliveries_destination_id_fkey FOREIGN KEY (destination_id) REFERENCES public.alert_destinations(id);
ALTER TABLE ONLY public.alert_pushes
    ADD CONSTRAINT alert_pushes_alert_id_fkey FOREIGN KEY (alert_id) REFERENCES public.alerts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.alert_pushes
    ADD CONSTRAINT alert_pushes_browser_id_fkey FOREIGN KEY (browser_id) REFERENCES public.staff_browsers(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.alert_readers
    ADD CONSTRAINT alert_readers_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES public.staff(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.announcements
    ADD CONSTRAINT announcements_template_id_fkey FOREIGN KEY (template_id) REFERENCES public.templates(id);
ALTER TABLE ONLY public.batch_feedback
    ADD CONSTRAINT batch_feedback_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batches(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.batch_providers
    ADD CONSTRAINT batch_providers_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batches(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.campaign_messages
    ADD CONSTRAINT campaign_messages_campaign_id_fkey FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.campaign_openings
    ADD CONSTRAINT campaign_openings_campaign_id_fkey FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.campaign_requests
    ADD CONSTRAINT campaign_requests_campaign_id_fkey FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.campaign_results
    ADD CONSTRAINT campaign_results_campaign_id_fkey FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT campaigns_grant_template_id_fkey FOREIGN KEY (grant_template_id) REFERENCES public.templates(id);
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT campaigns_shop_number_fkey FOREIGN KEY (shop_number) REFERENCES public.shops(number);
ALTER TABLE ONLY public.checked_rows
    ADD CONSTRAINT checked_rows_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.code_batches
    ADD CONSTRAINT code_batches_template_id_fkey FOREIGN KEY (template_id) REFERENCES public.templates(id);
ALTER TABLE ONLY public.code_parts
    ADD CONSTRAINT code_parts_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.code_batches(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.drop_models
    ADD CONSTRAINT drop_models_shop_number_fkey FOREIGN KEY (shop_number) REFERENCES public.shops(number);
ALTER TABLE ONLY public.drop_opening_counts
    ADD CONSTRAINT drop_opening_counts_template_id_fkey FOREIGN KEY (template_id) REFERENCES public.templates(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.drop_openings
    ADD CONSTRAINT drop_openings_template_id_fkey FOREIGN KEY (template_id) REFERENCES public.templates(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.exceptions
    ADD CONSTRAINT exceptions_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batches(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.feedback_reports
    ADD CONSTRAINT feedback_reports_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES public.batch_feedback(batch_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.gates
    ADD CONSTRAINT gates_template_id_fkey FOREIGN KEY (template_id) REFERENCES public.templates(id);
ALTER TABLE ONLY public.hook_attempts
    ADD CONSTRAINT hook_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES public.hook_deliveries(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.hook_deliveries
    ADD CONSTRAINT hook_deliveries_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES public.hook_endpoints(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.hook_deliveries
    ADD CONSTRAINT hook_deliveries_event_id_fkey FOREIGN KEY (event_id) REFERENCES public.hook_events(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.hook_endpoints
    ADD CONSTRAINT hook_endpoints_shop_number_fkey FOREIGN KEY (shop_number) REFERENCES public.shops(number);
ALTER TABLE ONLY public.hook_hours
    ADD CONSTRAINT hook_hours_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES public.hook_endpoints(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.hook_listeners
    ADD CONSTRAINT hook_listeners_shop_number_fkey FOREIGN KEY (shop_number) REFERENCES public.shops(number);
ALTER TABLE ONLY public.job_errors
    ADD CONSTRAINT job_errors_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_upload_id_fkey FOREIGN KEY (upload_id) REFERENCES public.uploads(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.password_links
    ADD CONSTRAINT password_links_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES public.staff(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.providers
    ADD CONSTRAINT providers_shop_number_fkey FOREIGN KEY (shop_number) REFERENCES public.shops(number);
ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES public.staff(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.report_links
    ADD CONSTRAINT report_links_template_id_fkey FOREIGN KEY (template_id) REFERENCES public.templates(id);
ALTER TABLE ONLY public.saved_views
    ADD CONSTRAINT saved_views_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES public.staff(id);
ALTER TABLE ONLY public.second_factors
    ADD CONSTRAINT second_factors_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES public.staff(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.segment_members
    ADD CONSTRAINT segment_members_segment_id_fkey FOREIGN KEY (segment_id) REFERENCES public.segments(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sign_ins
    ADD CONSTRAINT sign_ins_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES public.staff(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.slot_forecasts
    ADD CONSTRAINT slot_forecasts_slot_id_fkey FOREIGN KEY (slot_id) REFERENCES public.slots(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.slot_results
    ADD CONSTRAINT slot_results_slot_id_fkey FOREIGN KEY (slot_id) REFERENCES public.slots(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT slots_template_id_fkey FOREIGN KEY (template_id) REFERENCES public.templates(id);
ALTER TABLE ONLY public.sms_spent_drops
    ADD CONSTRAINT sms_spent_drops_template_id_fkey FOREIGN KEY (template_id) REFERENCES public.templates(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sms_stops
    ADD CONSTRAINT sms_stops_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.staff_browsers
    ADD CONSTRAINT staff_browsers_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES public.staff(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.templates
    ADD CONSTRAINT templates_shop_number_fkey FOREIGN KEY (shop_number) REFERENCES public.shops(number);
ALTER TABLE ONLY public.upload_parts
    ADD CONSTRAINT upload_parts_upload_id_fkey FOREIGN KEY (upload_id) REFERENCES public.uploads(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.wallet_registrations
    ADD CONSTRAINT wallet_registrations_coupon_id_fkey FOREIGN KEY (coupon_id) REFERENCES public.wallet_passes(coupon_id) ON DELETE CASCADE;
REVOKE ALL ON FUNCTION public.note_opt_outs() FROM PUBLIC;
