-- A few rows for every table, as the stores write them. The freezing test loads them into
-- an empty database, so that the first row of each identity has the id 1, and the second
-- row the id 65 where ids name their cell. Instants are those of one drop: it opened on
-- 1 December 2026 at noon.
-- {set} stands for the bitmap of the users 1001 and 1002.

-- shops and drops
insert into shops (number, name, timezone, claim_url) values (10, 'Harbour Tea House', 'Asia/Shanghai', 'https://tea.example/drops/{id}');
insert into templates (shop_number, name, description, kind, amount_off, currency, target, stock, issued, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state,
    request_key, published_at, notify_days, notify_channels, returned, note)
values (10, 'Moon cake night', 'Any box', 'amount_off', 500, 'CNY', 'shop', 1000, 3, 2, '2026-12-01 12:00Z', '2026-12-02 12:00Z', 48, 'claim', 'gate', 'published', 'drop-1', '2026-11-29 08:00Z', 2, 1, 1, E'Approved by Ada\nCall the baker on the day'),
    (10, 'Codes of winter', '', 'percent_off', 0, 'CNY', 'product', 500, 0, 1, '2026-12-05 12:00Z', '2026-12-06 12:00Z', 24, 'code', 'durable', 'draft', 'drop-2', null, 0, 1, 0, '');
insert into reservations (template_id, user_id, slots, consents) values (1, 1001, 1, 1), (1, 1002, 34359738369, null);
insert into former_reservations (user_id, template_id) values (1003, 1);
insert into draws (template_id, template_version, state, key, source, cards, opens_at, closes_at, seal, sealed_at, round, evidence, result, drawn_at, won)
    values (1, 1, 'done', 'dropbell+00000000+AQ==', 'drand', '{card}', '2026-12-01 10:00Z', '2026-12-01 12:00Z', 'seal', '2026-12-01 12:00:01Z', 40000000, 'ab', 'result', '2026-12-01 12:01:05Z', 1);
insert into draw_entries (template_id, user_id, ticket, salt, entered_at, state, rank, coupon_id) values
    (1, 1001, '00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002', '2026-12-01 11:00Z', 'won', 1, 1),
    (1, 1002, '00000000-0000-0000-0000-000000000003', '00000000-0000-0000-0000-000000000004', '2026-12-01 11:01Z', 'entered', null, null);
insert into draw_counts (template_id, shard, entered, departed) values (1, 3, 3, 1);
insert into draw_growth (template_id, minute, shard, delta) values (1, '2026-12-01 11:00Z', 3, 2);
insert into draw_chunks (template_id, chunk, rows) values (1, 0, '\x00');
insert into slots (template_id, slot, opens_at, due_at, state, fired_at, cut_at, finished_at) values
    (1, 1, '2026-12-01 12:00Z', '2026-12-01 11:55Z', 'finished', '2026-12-01 11:55Z', '2026-12-01 11:55:01Z', '2026-12-01 11:55:02Z');
insert into slots (template_id, slot, opens_at, due_at, state) values (1, 2, '2026-12-01 12:00Z', '2026-12-01 11:50Z', 'waiting');
insert into slot_results (slot_id, channel, reserved, sent, dead, late, done_at, expected) values (1, 0, 2, 1, 1, '{"0": 1}', '2026-12-01 11:55:02Z', 12000);
insert into slot_forecasts (slot_id, channel, opens_at, made_at, booked, messages, missed, per_second, finish_at)
    values (1, 0, '2026-12-01 12:00Z', '2026-12-01 11:54Z', 2, 2, 0, 12000, '2026-12-01 11:55:01Z');
insert into bookings (template_id, slot, channel, booked) values (1, 1, 0, 2);
insert into booking_growth (template_id, minute, delta) values (1, '2026-11-30 10:00Z', 2);
insert into figure_recounts (template_id, figure) values (1, 'bookings');
insert into announcements (template_id, kind, opens_at, state, created_by, created_at, worthless_after, finished_at)
    values (1, 'correction', '2026-12-01 12:00Z', 'finished', 'staff:1 Ada', '2026-11-30 09:00Z', '2026-12-01 12:00Z', '2026-11-30 09:00:02Z');
insert into drop_openings (template_id, user_id, slot, channel, opened_at) values (1, 1001, 1, 1, '2026-12-01 11:56Z');
insert into drop_opening_counts (template_id, channel, opened) values (1, 1, 1);
insert into report_links (template_id, created_at, created_by, expires_at) values (1, '2026-12-03 09:00Z', 'staff:1 Ada', '2027-12-03 09:00Z');
insert into drop_models (shop_number, name, content, saved_by) values (10, 'Evening drop', '{"name": "Moon cake night"}', 'staff:1 Ada');
insert into series (shop_number, name, rule, starts_on, clock, skips, content) values (10, 'Evenings', 'FREQ=DAILY', '2026-12-01', 72000, '{2026-12-24}', '{"name": "Moon cake night"}');
insert into series_drops (series_id, day, state, template_id, given, version, copied_at, reminded) values (1, '2026-12-01', 'kept', 1, '{"name": "Moon cake night"}', 1, '2026-11-29 08:00Z', 1), (1, '2026-12-02', 'planned', null, null, 0, null, 0);
insert into series_reservations (series_id, user_id, slots) values (1, 1001, 1);
insert into recipes (shop_number, form, settings, is_on, due_at) values (10, 'missed', '{"on": true, "after_minutes": 30}', true, '2026-12-01 13:00Z'), (10, 'calendar', '{}', false, '2026-12-01 13:00Z');
insert into recipe_rounds (recipe_id, key, state, template_id, at, until, settings, users) values (1, 'drop:1', 'done', 1, '2026-12-01 12:30Z', '2026-12-02 12:00Z', '{}', 0), (65, 'day:2026-12-01', 'done', null, '2026-12-01 12:30Z', '2026-12-02 12:00Z', '{}', 0);
insert into deleted_drafts (kind, id, shop_number, name, content, deleted_by) values ('template', 900, 10, 'Second thoughts', '{"id": 900}', 'staff:1 Ada');
insert into live_channels (template_id, channel_id, told) values (1, 'c2hvcA==', '{"state": "open"}');

-- messages
insert into message_versions (shop_number, template_id, kind, channel, language, content, created_by)
    values (10, 0, 'reminder', 'email', 'en', '{"title": "Soon: {drop}", "blocks": [{"type": "text", "text": "It opens in {minutes}."}]}', 'staff:1 Ada');
insert into pictures (shop_number, hash, type, width, height, bytes, name, alt, created_by) values (10, repeat('ab', 32), 'png', 600, 300, 3, 'cakes.png', 'Moon cakes', 'staff:1 Ada');
insert into picture_files (shop_number, hash, content) values (10, repeat('ab', 32), '\x010203');
insert into message_looks (template_id, by_member) values (1, 'staff:1 Ada');

-- delivery
insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, sent, due_count, sent_count, dead_count, finished_at, late)
    values ('reminder', 1, 1, 0, 1001, 1002, 'done', '2026-12-01 11:55Z', '2026-12-01 12:00Z', {set}, {set}, 2, 2, 0, '2026-12-01 11:55:02Z', '{2}'),
        ('reminder', 1, 1, 1, 1001, 1002, 'done', '2026-12-01 11:55Z', '2026-12-01 12:00Z', {set}, null, 2, 0, 2, '2026-12-01 11:55:02Z', null);
insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint, attempts, provider_id)
    values (65, 1001, 1, 'dead', 'permanent', '550 no such user', '550 no such user', 1, 1), (65, 1002, 1, 'dead', 'permanent', '550 no such user', '550 no such user', 1, 1);
insert into accepted_messages (batch_id, users, provider_id) values (65, '{1001}', 1);
insert into channel_rates (channel, at, per_second, messages) values (0, '2026-12-01 11:55Z', 12000, 2);
insert into provider_calls (channel, worker, at, calls, messages, failed, total_ms, slowest_ms, error, provider_id) values (1, 'worker-1', '2026-12-01 11:55:10Z', 2, 2, 2, 90, 60, '550', 1);
insert into channel_tests (channel, recipient, by_user, due_at, state, result, created_by, draft) values (1, '', false, '2026-11-30 09:00Z', 'done', 'delivered', 'staff:1 Ada', null);
insert into dead_letter_groups (channel, fingerprint, dead, first_at, last_at, sample) values (1, '550 no such user', 2, '2026-12-01 11:55Z', '2026-12-01 11:55Z', '550 no such user');
insert into dead_letter_jobs (action, filter, state, total, done, created_by, request_key) values ('replay', '{}', 'finished', 2, 2, 'staff:1 Ada', 'replay-1');
insert into inbox_reads (user_id, read_through) values (1001, '2026-12-01 12:30Z');
insert into providers (shop_number, channel, kind, name, enabled, settings, secrets, secret_names, changed, created_by)
    values (10, 1, 'smtp', 'Post office', true, '{"host": "mail.example"}', '\x00', '{password}', nextval('provider_changes'), 'staff:1 Ada');
insert into batch_providers (batch_id, provider_id, users, sent_count) values (1, 1, {set}, 2);
insert into batch_feedback (batch_id, kind, owner_id, channel, delivered, bounced, delivered_count, bounced_count) values (65, 'reminder', 1, 1, null, {set}, 0, 2);
insert into feedback_reports (batch_id, user_id, status, provider, cause, happened_at) values (65, 1001, 'bounced', 'ses', 'no such mailbox', '2026-12-01 11:56Z');
insert into feedback_totals (kind, owner_id, channel, delivered, bounced, complained) values ('reminder', 900, 1, 10, 1, 0);
insert into suppressions (address, reason, provider, cause) values ('gone@tea.example', 'bounced', 'ses', 'no such mailbox');
insert into soft_bounces (address, count) values ('full@tea.example', 2);
insert into mail_warmup (day, mails) values ('2026-12-01', 200);
insert into sms_spent (day, parts, micros) values ('2026-12-01', 12, 540000);
insert into sms_spent_drops (template_id, parts) values (1, 12);
insert into sms_drop_costs (template_id, hour, currency, parts, micros) values (1, '2026-12-01 11:00Z', 'CNY', 12, 540000);
insert into sms_serials (provider, serial, reference) values ('twilio', 'SM1', 'r1');
insert into sms_early (provider, serial, status, cause, at) values ('twilio', 'SM2', 'delivered', '', '2026-12-01 11:56Z');

-- audience
insert into users (id, name, email, phone, locale, timezone, opt_outs, quiet_from, quiet_to, attributes, devices, phone_verified_at)
    values (1001, 'Li Wei', 'li@tea.example', '+8613800138000', 'zh-CN', 'Asia/Shanghai', 4, 22, 7, '{"city": "Xiamen"}',
            '[{"platform": "ios", "token": "aa11", "app_version": "1.0", "locale": "zh-CN", "seen_at": "2026-11-30T09:00:00Z"}]', '2026-11-30 09:00Z'),
        (1002, 'Ann Baker', 'ann@tea.example', '', 'en', 'Europe/London', 0, 0, 0, '{}', '[]', null);
insert into phone_verifications (user_id, phone, number, state, expires_at, confirmed_at) values (1001, '+8613800138000', '+8613800138000', 'sent', '2026-11-30 09:10Z', '2026-11-30 09:00Z');
insert into sms_stops (user_id) values (1001);
insert into sms_replies (provider, id, word, users) values ('twilio', '\x01', 'stop', 1);
insert into erased_users (user_id, erased_by) values (1003, 'staff:1 Ada');
insert into segments (name, kind, rule, members, counted_at, created_by, request_key)
    values ('English', 'rules', '{"all": [{"field": "locale", "op": "is", "values": ["en"]}]}', 1, '2026-11-30 09:00Z', 'staff:1 Ada', 'segment-1'),
        ('Guests', 'list', '{"all": []}', 2, '2026-11-30 09:00Z', 'staff:1 Ada', 'segment-2');
insert into segment_members (segment_id, chunk, members, count) values (2, 0, {set}, 2);

-- campaigns
insert into campaigns (shop_number, name, channel, content, audience, starts_at, ends_at, state, request_key, creator, created_by, published_at, started_at, cut_at, ended_at, settled_at,
    people, sent, segment_version, segment_name, segment_rule, published_by)
    values (10, 'Thank you', 0, '{"variants": [{"percent": 100, "texts": {"": {"title": "Thank you", "body": "See you soon"}}}]}', '{"kind": "segment_id", "id": "1"}', '2026-12-03 09:00Z', '2026-12-04 09:00Z', 'finished', 'campaign-1', 'staff:1', 'staff:1 Ada', '2026-12-02 09:00Z',
        '2026-12-03 09:00Z', '2026-12-03 09:00:01Z', '2026-12-04 09:00Z', '2026-12-04 09:00:01Z', 2, 2, 1, 'English', '{"all": [{"field": "locale", "op": "is", "values": ["en"]}]}', 'staff:1 Ada');
insert into sms_campaign_costs (campaign_id, hour, currency, parts, micros) values (1, '2026-12-01 11:00Z', 'CNY', 3, 135000);
insert into campaign_publications (fingerprint, campaign_id, published_at) values ('\x01', 1, '2026-12-02 09:00Z');
insert into campaign_messages (campaign_id, seq, from_user, to_user, users, published_at, stored_at) values (1, 0, 1001, 1002, 2, '2026-12-03 09:00Z', '2026-12-03 09:00:01Z');
insert into campaign_limits (shop_number, per_day, per_week, approval_above) values (10, 2, 5, 10000);
insert into campaign_openings (campaign_id, user_id, variant, opened_at) values (1, 1002, 0, '2026-12-03 09:05Z');
insert into campaign_results (campaign_id, variant, assigned, sent, opened, reserved, claimed, used) values (1, 0, 2, 2, 1, 0, 1, 0);
insert into campaign_decisions (campaign_id, look, at, winner, arms) values (1, 2, '2026-12-03 13:00Z', 1, '[{"variant": 0, "assigned": 1, "sent": 1, "did": 0}, {"variant": 1, "assigned": 1, "sent": 1, "did": 1}]');
insert into campaign_series (campaign_id, at, sent, delivered, opened, claimed, earned) values (1, '2026-12-03 09:00Z', 2, 2, 1, 1, 18000);
insert into campaign_requests (campaign_id, shop_number, name, channel, content, audience, grant_template_id, starts_at, ends_at, rate_per_second, reach, reach_exact, reach_at,
    state, asked_by, asked_name, decided_by, decided_at)
    values (1, 10, 'Thank you', 0, '{"variants": [{"percent": 100, "texts": {"": {"title": "Thank you", "body": "See you soon"}}}]}', '{"kind": "segment_id", "id": "1"}', 0, '2026-12-03 09:00Z', '2026-12-04 09:00Z', 0, 2, true, '2026-12-02 09:00Z', 'approved', 'staff:1', 'Ada', 'staff:2 Bo', '2026-12-02 10:00Z');

-- coupons
insert into coupons (template_id, user_id, claim_id, origin, origin_key, state, issued_at, expires_at, order_id, discount, used_at, version, returned)
    values (1, 1001, 11, 'claim', '1001:k', 'used', '2026-12-01 12:00Z', '2026-12-03 12:00Z', 'A-1', 500, '2026-12-01 18:00Z', 2, false),
        (1, 1002, 12, 'claim', '1002:k', 'unused', '2026-12-01 12:00Z', '2027-12-03 12:00Z', '', 0, null, 0, false),
        (1, 1002, 13, 'claim', '', 'unused', '2026-12-01 12:00Z', '2027-12-03 12:00Z', '', 0, null, 0, false),
        (1, 1001, 14, 'grant', 'g:1', 'revoked', '2026-12-01 12:00Z', '2027-12-03 12:00Z', '', 0, null, 1, true);
insert into claim_counts (template_id, user_id, issued) values (1, 1001, 2), (1, 1002, 2);
insert into waitlists (template_id, joined, waiting) values (1, 1, 1);
insert into waiters (template_id, user_id, joined_at) values (1, 1003, '2026-12-01 12:00:05Z');
insert into coupon_returns (coupon_id, template_id, due_at) values (65, 65, '2027-12-02 12:00Z');
insert into claim_seconds (template_id, second, issued) values (1, '2026-12-01 12:00Z', 4);
insert into gates (template_id, shards, epoch, state, base, reason, lease_until, built_at) values (1, 2, 1, 'standing', 0, 'published', '2026-11-29 08:01Z', '2026-11-29 08:00Z');
insert into gate_shards (template_id, shard, allot, settled, refused, epoch) values (1, 0, 500, 2, 0, 1), (1, 1, 500, 1, 0, 1);
insert into claim_results (claim_id, template_id, user_id, origin, origin_key, reason, coupon_id) values (15, 1, 1001, 'claim', '1001:k2', 'limit_reached', null);
update code_serials set next = 11;
insert into code_batches (template_id, first_serial, count, key_id, state, generated, used, request_key, created_by, ready_at) values (65, 1, 10, 1, 'ready', 10, 0, 'codes-1', 'staff:1 Ada', '2026-11-30 09:00Z');
insert into code_parts (batch_id, part, codes, sha256) values (1, 0, 10, decode(repeat('ab', 32), 'hex'));
insert into coupon_operations (coupon_id, order_id, step, outcome, from_state, to_state, order_amount, eligible, discount, actor)
    values (1, 'A-1', 'lock', 'done', 'unused', 'locked', 5000, 5000, 500, 'key:1 Till'), (1, 'A-1', 'confirm', 'done', 'locked', 'used', 0, 0, 500, 'key:1 Till'), (193, '', 'revoke', 'done', 'unused', 'revoked', 0, 0, 0, 'staff:1 Ada');
insert into coupon_tallies (template_id, used, revoked, discounted) values (1, 1, 1, 500);
insert into sale_hours (template_id, hour, refund, orders, ordered, discount) values (1, '2026-12-01 18:00Z', false, 1, 5000, 500);
insert into removed_steps (until) values ('2026-11-01 00:00Z');
insert into orders (shop_number, order_id, user_id, currency, amount, ordered_at) values (10, 'B-1', 1002, 'CNY', 4000, '2026-12-01 18:30Z');
insert into coupon_orders (order_id, user_id, shop_number, currency, state, revision, discount, lines, products, quantities, amounts, returned, paid_back)
    values ('A-7', 1002, 10, 'CNY', 'confirmed', 1, 500, '{1}', '{tea}', '{2}', '{5000}', '{1}', 2250);
insert into coupon_use_lines (order_id, revision, coupon_id, line, amount) values ('A-7', 1, 1, '1', 500);
insert into coupon_order_refunds (order_id, refund_id, pay_back, clawback, lines, quantities, coupons) values ('A-7', 'R-1', 2250, 0, '{1}', '{1}', '{}');
insert into coupon_order_nets (template_id, order_id, refund_id, hour, orders, ordered, discount, shared) values (1, 'A-7', 'R-1', '2026-12-01 12:00Z', 0, 2500, 250, false);
insert into budgets (scope, subject, currency, amount) values ('shop', 10, 'CNY', 100000000);
insert into stock_counts (template_id, coupons, counted_to, seen_to, seen_xact) values (1, 4, 193, 193, '1');
insert into removed_coupons (template_id, coupons, returned, counted, used, expired, revoked, discounted) values (900, 10, 1, 9, 5, 4, 1, 2500);
insert into notice_runs (template_id, days, due_at, settled_at, told) values (1, 1, '2026-12-02 02:00Z', '2026-12-02 02:01Z', 1);
insert into notices (user_id, template_id, day, days, due_at, expires_at, status, run_id) values (1002, 1, '2026-12-02', 1, '2026-12-02 02:00Z', '2026-12-03 12:00Z', 1, 1);
insert into notice_days (day, template_id, planned, sent) values ('2026-12-02', 1, 1, 1);
insert into claim_signs (template_id, user_id, claim_id, at, network, agent, program, way, passed_at, opened_ms) values (1, 1002, 12, '2026-12-01 12:00Z', 7, 8, false, 1, '2026-12-01 11:55Z', 20000);
insert into claim_refusals (template_id, code, claims) values (1, 'pass_required', 3);
insert into door_refusals (template_id, door, code, claims) values (1, 1, 'sold_out', 3);
insert into review_runs (template_id, shop_number, claims, found, left_out) values (1, 10, 1, 1, 0);
insert into reviews (template_id, shop_number, rules, facts, coupons) values (1, 10, '{at_once}', '{"claims": 1}', 1), (1, 10, '{shared_phone}', '{"claims": 1}', 1);
insert into review_coupons (review_id, coupon_id, user_id, appeal, appealed_at) values (65, 65, 1002, 'It was me.', '2026-12-01 13:00Z');
insert into wallet_passes (coupon_id, user_id, expires_at, coupon_version) values (65, 1002, '2027-12-03 12:00Z', 0);
insert into wallet_registrations (device, coupon_id, user_id, push_token) values ('phone-1', 65, 1002, 'token-1');

insert into doors (template_id, place, name, who, segment_id, lead_minutes, share, user_limit, texts, cut_to, members, cut_at, frozen_at)
    select 1, 1, 'Members', 'segment', min(id), 60, 10, 0, '{"en": "Members come first."}', 9223372036854775807, 1, '2026-12-01 10:59Z', '2026-12-01 10:59Z' from segments;
insert into door_members (template_id, place, chunk, members, count) values (1, 1, 0, '\x00', 1);
insert into door_tests (template_id, user_id, note, wants) values (1, 1001, 'Wang, gold', 1);
insert into door_codes (serial, template_id, batch_id, user_id) values (3, 65, 65, 1001);

-- access
insert into staff (email, name, role, shops, password_hash, locale, sso_issuer, sso_subject)
    values ('ada@tea.example', 'Ada', 'admin', '{}', '', 'en', 'https://id.example', 'ada-1'), ('bo@tea.example', 'Bo', 'marketer', '{10}', '', 'zh-CN', '', '');
insert into sessions (token, data, expiry) values ('t', '\x00', '2026-12-08 09:00Z');
insert into sign_ins (id, staff_id, ip, user_agent) values ('018f0000-0000-7000-8000-000000000001', 1, '192.0.2.1', 'Firefox');
insert into second_factors (staff_id, kind, name, handle, secret) values (1, 'totp', 'Phone', '\x01', '\x00');
insert into recovery_codes (staff_id, hash) values (1, '\x01');
insert into password_links (staff_id, hash, purpose, expires_at) values (2, '\x01', 'invitation', '2026-12-08 09:00Z');
insert into password_mails (staff_id, locale, next_at) values (2, 'en', null);
insert into user_changes (user_id, opted_out, contacts) values (1001, 2, 1);
insert into api_keys (name, prefix, hash, scopes, created_by) values ('Till', 'db_abc', '\x01', '{payment}', 'staff:1 Ada');
insert into audit (actor, action, object_kind, object_id, shop_number, before, after, address, request_id)
    values ('staff:1 Ada', 'template.publish', 'template', '1', 10, '{"state": "draft"}', '{"state": "published"}', '192.0.2.1', 'r-1');
insert into saved_views (staff_id, list, name, query, shared) values (1, 'templates', 'Open', 'state=open', true);

-- work
insert into uploads (name, bytes, sha256, created_by, previews) values ('guests.csv', 3, '\x01', 'staff:1 Ada', null);
insert into upload_parts (upload_id, part, content) values (1, 0, '1,2');
insert into jobs (kind, title, shop_number, needs, params, state, total, done, failed, created_by, actor, upload_id, request_key, started_at, finished_at)
    values ('coupons.grant', 'Moon cake night', 10, 'manage_coupons', '{"template_id": "1", "file": "guests.csv"}', 'done', 2, 1, 1, 'staff:1 Ada', '{}', 1, 'job-1', '2026-12-01 13:00Z', '2026-12-01 13:01Z');
insert into job_errors (job_id, line, row, error, because) values (1, 2, 'x', 'no user id', '[]');
insert into grant_rows (sheet_id, line, input, user_id, result, coupon_id) values (1, 1, '1001', 1001, 'issued', 193);
insert into checked_rows (job_id, user_id, line, digest) values (1, 1001, 1, 7);
insert into outbox (topic, payload) values ('template.changed.v1', '{"template_id": "1", "version": 2, "opens_at": "2026-12-01T12:00:00Z", "sequence": "2", "at": "2026-11-29T08:00:00Z"}');
insert into handled_events (handler, event_id) values ('bookings', new_event_id()), ('bookings', '5f0f1cb4-0f0e-4a35-9c0f-6ac4e8f4a1aa');
insert into relayed_events (turn, event_id, topic, payload) values (0, new_event_id(), 'job.created.v1', '{"job_id": "1", "kind": "coupons.grant", "at": "2026-12-01T13:00:00Z"}'),
    (1, new_event_id(), 'job.created.v1', '{"job_id": "1", "kind": "coupons.grant", "at": "2026-12-01T13:00:00Z"}');
insert into dead_messages (message_id, topic, handler, reason, payload) values ('m-1', 'users.changed.v1', 'bookings', 'unreadable', '{}');
insert into idempotency_keys (actor, key, request_hash, status, header, body, locked_until) values ('user:1001', 'k', '\x01', 201, '{}', '{}', '2026-12-01 12:00Z');
insert into idempotency_keys (actor, key, request_hash, locked_until, known, found) values ('user:1002', 'k', '\x01', 'infinity', '\x00', '{1,2}');
insert into processes (id, program, channels) values ('018f0000-0000-7000-8000-000000000002', 'worker', 31);

-- notifications of staff
insert into alerts (kind, key, shop_number, template_id, name, count) values ('late', 'late:1', 10, 1, 'Moon cake night', 2);
insert into alert_destinations (shop_number, form, name, url, language, kinds, created_by, sealed) values (10, 'feishu', 'Operators', '', 'en', '{late}', 'staff:1 Ada', '\x00');
insert into alert_deliveries (alert_id, destination_id, state, deadline_at) values (1, 1, 'sent', '2026-12-01 12:30Z');
insert into alert_readers (staff_id, read_through, muted) values (1, 1, '{job}');
insert into staff_browsers (staff_id, sign_in, endpoint, p256dh, auth, agent, language) values (1, '018f0000-0000-7000-8000-000000000001', 'https://push.example/1', 'p', 'a', 'Firefox', 'en');
insert into alert_pushes (alert_id, browser_id, state, deadline_at) values (1, 1, 'sent', '2026-12-01 12:30Z');

-- events for servers of shops
insert into hook_endpoints (shop_number, url, description, types, secret, created_by) values (10, 'https://tea.example/hooks', 'Till', '{coupon.used}', '\x00', 'staff:1 Ada');
insert into hook_listeners (shop_number, listener, until) values (10, 'key:1', '2026-12-01 12:10Z');
insert into hook_events (shop_number, type, subject, sequence, at, payload) values (10, 'coupon.used', 'coupon/1', nextval('hook_sequence'), '2026-12-01 18:00Z', '{"type": "coupon.used"}');
insert into hook_deliveries (endpoint_id, event_id, state, attempts, done_at) values (1, 1, 'delivered', 1, '2026-12-01 18:00:01Z');
insert into hook_attempts (delivery_id, attempt, at, took_ms, status) values (1, 1, '2026-12-01 18:00:01Z', 40, 200);
insert into hook_hours (endpoint_id, hour, delivered, took_ms) values (1, '2026-12-01 18:00Z', 1, 40);

insert into inbox_history default values;

-- housekeeping: removals has rows of the published drop, which its trigger wrote
insert into housekeeping_steps (step, position, ran_at, ended_at, took_ms) values ('batches', 0, '2026-12-02 12:00Z', '2026-12-02 12:00Z', 3);
insert into drop_archives (template_id, booked, reminded, opened, claimed, used, others, partial, growth) values (65, 2, 1, 1, 1, 0, 0, false, '[[1796040000, 2]]');
insert into flight_checks (template_id, version, checked_at, red, findings) values (65, 1, '2026-11-20 10:00Z', 1, '[{"point":"links","level":"red","found":"a link answers with HTTP 404: https://shop.example/","do":"publish the page"}]');
insert into rehearsals (id, template_id, shop_number, state, share_permille, asked_by, opens_at, ended_at, report) values (129, 65, 10, 'done', 100, 'staff:1 Ada', '2026-11-20 10:03Z', '2026-11-20 10:04Z', '{"users": 5, "bottleneck": "none"}');
insert into exports (template_id, due_at, final, exported_at, rows, bytes) values (65, '2026-12-03 19:00Z', true, '2026-12-02 19:00Z', 5, 900);

-- moves of shops: shop 900 has left
insert into moves (shop_number, cell, state, moved_at) values (900, 1, 'emptied', '2026-12-02 12:00Z');
insert into moving_rows (shop_number, seq, name, content) values (900, 1, 'notices', '{"user_id": 1001}');

-- copies in other cells
insert into copying_cells (cell) values (1);
insert into shops_elsewhere (shop_number, cell) values (901, 1);
insert into copies_due (cell, name, key) values (1, 'users', '{1001}');
insert into removed_cells (cell, last_id, last_code, removed_at) values (2, 130, 34359738368, '2026-12-02 12:00Z');
