package move

import "dropbell/adapters/postgres/internal/pg"

// table is a table with rows of shops. of is the condition for the rows t of one shop: {shop} is its
// number, {drops}, {campaigns} and {uploads} are the ids of its drops, of its campaigns and of the
// files of its jobs. A condition may read tables that stand before its own.
type table struct{ name, of string }

const (
	ofShop     = `t.shop_number = {shop}`
	ofDrop     = `t.template_id = any({drops})`
	ofCampaign = `t.campaign_id = any({campaigns})`
	ofBatch    = `exists (select from batches b where b.id = t.batch_id and (b.kind <> 'campaign' and b.template_id = any({drops}) or b.kind = 'campaign' and b.owner_id = any({campaigns})))`
	ofCoupon   = `exists (select from coupons c where c.id = t.coupon_id and c.template_id = any({drops}))`
	ofSeries   = `exists (select from series r where r.id = t.series_id and r.shop_number = {shop})`
	ofOrder    = `exists (select from coupon_orders o where o.order_id = t.order_id and o.shop_number = {shop})`
	ofSlot     = `exists (select from slots s where s.id = t.slot_id and s.template_id = any({drops}) and s.state <> 'waiting')`
	// ofSegment is whether a deleted draft is for a segment, which the other installation does not have.
	ofSegment  = `t.kind = 'campaign' and coalesce(t.content -> 'audience' ->> 'kind' = 'segment_id', false)`
	ofEndpoint = `exists (select from hook_endpoints e where e.id = t.endpoint_id and e.shop_number = {shop})`
)

// bulk are the large tables. None of their rows has an effect in a database without the drop's row
// in templates: no notice is planned for its coupons, and no event is made of them. So these rows
// are copied while the shop is in use.
var bulk = []table{
	{"batches", `(t.kind <> 'campaign' and t.template_id = any({drops}) or t.kind = 'campaign' and t.owner_id = any({campaigns}))`},
	{"exceptions", ofBatch}, {"batch_providers", ofBatch}, {"batch_feedback", ofBatch}, {"feedback_reports", ofBatch},
	{"reservations", ofDrop}, {"former_reservations", ofDrop}, {"booking_growth", ofDrop},
	{"claim_counts", ofDrop}, {"claim_seconds", ofDrop}, {"claim_results", ofDrop}, {"claim_signs", ofDrop}, {"draw_entries", ofDrop}, {"draw_growth", ofDrop}, {"waiters", ofDrop},
	{"coupons", ofDrop}, {"coupon_operations", ofCoupon},
	{"uploads", `t.id = any({uploads})`}, {"upload_parts", `t.upload_id = any({uploads})`},
	{"picture_files", ofShop},
}

// others are copied while writes of the shop are refused.
var others = []table{
	{"shops", `t.number = {shop}`}, {"templates", ofShop}, {"doors", ofDrop}, {"door_members", ofDrop}, {"door_tests", ofDrop}, {"door_codes", ofDrop},
	{"slots", ofDrop + ` and t.state <> 'waiting'`}, {"slot_results", ofSlot}, {"slot_forecasts", ofSlot},
	{"bookings", ofDrop}, {"figure_recounts", ofDrop}, {"announcements", ofDrop}, {"drop_openings", ofDrop}, {"drop_opening_counts", ofDrop},
	{"draws", ofDrop + ` and t.state in ('done', 'cancelled')`}, {"draw_counts", ofDrop}, {"draw_chunks", ofDrop}, {"waitlists", ofDrop + ` and t.settled`},
	{"report_links", ofDrop}, {"rehearsals", ofShop}, {"drop_models", ofShop}, {"series", ofShop}, {"series_drops", ofSeries}, {"series_reservations", ofSeries}, {"deleted_drafts", ofShop + ` and not (` + ofSegment + `)`}, {"live_channels", ofDrop}, {"drop_archives", ofDrop}, {"exports", ofDrop + ` and t.due_at is null`},
	{"message_versions", ofShop}, {"message_looks", ofDrop}, {"pictures", ofShop}, {"sms_spent_drops", ofDrop}, {"sms_drop_costs", ofDrop},
	{"campaigns", ofShop}, {"recipes", ofShop}, {"recipe_rounds", `exists (select from recipes r where r.id = t.recipe_id and r.shop_number = {shop})`}, {"campaign_publications", ofCampaign}, {"campaign_messages", ofCampaign}, {"campaign_limits", ofShop}, {"campaign_openings", ofCampaign},
	{"campaign_results", ofCampaign}, {"campaign_requests", ofCampaign}, {"campaign_decisions", ofCampaign}, {"campaign_series", ofCampaign}, {"sms_campaign_costs", ofCampaign},
	{"gates", ofDrop}, {"gate_shards", ofDrop}, {"code_batches", ofDrop},
	{"code_parts", `exists (select from code_batches b where b.id = t.batch_id and b.template_id = any({drops}))`},
	{"claim_refusals", ofDrop}, {"door_refusals", ofDrop}, {"review_runs", ofDrop}, {"reviews", ofDrop},
	{"review_coupons", `exists (select from reviews v where v.id = t.review_id and v.template_id = any({drops}))`},
	{"coupon_tallies", ofDrop}, {"tally_changes", ofDrop}, {"removed_coupons", ofDrop}, {"sale_hours", ofDrop},
	{"notice_runs", ofDrop}, {"notice_days", ofDrop}, {"notices", ofDrop + ` and t.status <> 0`},
	{"wallet_passes", ofCoupon}, {"wallet_registrations", ofCoupon},
	{"orders", ofShop}, {"coupon_orders", ofShop}, {"coupon_use_lines", ofOrder}, {"coupon_order_refunds", ofOrder}, {"coupon_order_nets", ofDrop}, {"budgets", `(t.scope = 'shop' and t.subject = {shop} or t.scope = 'drop' and t.subject = any({drops}) or t.scope = 'campaign' and t.subject = any({campaigns}))`},
	{"jobs", ofShop}, {"job_errors", `exists (select from jobs j where j.id = t.job_id and j.shop_number = {shop})`},
	{"grant_rows", `exists (select from jobs j where j.id = t.sheet_id and j.shop_number = {shop})`},
	{"hook_endpoints", ofShop}, {"hook_listeners", ofShop}, {"hook_events", ofShop}, {"hook_deliveries", ofEndpoint},
	{"hook_attempts", `exists (select from hook_deliveries d join hook_endpoints e on e.id = d.endpoint_id where d.id = t.delivery_id and e.shop_number = {shop})`},
	{"hook_hours", ofEndpoint},
	{"feedback_totals", `(t.kind = 'campaign' and t.owner_id = any({campaigns})
		or t.kind = 'reminder' and exists (select from slots s where s.id = t.owner_id and s.template_id = any({drops}))
		or t.kind in ` + pg.Announced + ` and exists (select from announcements a where a.id = t.owner_id and a.template_id = any({drops}))
		or t.kind = 'notice' and exists (select from notice_runs r where r.id = t.owner_id and r.template_id = any({drops})))`},
	{"removals", `(t.step <> 'campaigns' and t.object_id = any({drops}) or t.step = 'campaigns' and t.object_id = any({campaigns}))`},
}

// acting are rows that begin work by themselves. They are never in both databases; see moving_rows.
var acting = []table{
	{"slots", ofDrop + ` and t.state = 'waiting'`},
	{"slot_forecasts", `exists (select from slots s where s.id = t.slot_id and s.template_id = any({drops}) and s.state = 'waiting')`},
	{"notices", ofDrop + ` and t.status = 0`},
	{"draws", ofDrop + ` and t.state not in ('done', 'cancelled')`},
	{"waitlists", ofDrop + ` and not t.settled`}, {"coupon_returns", ofDrop}, {"exports", ofDrop + ` and t.due_at is not null`},
}

// unneeded are rows that the other database makes anew, or has no use for.
var unneeded = []table{{"stock_counts", ofDrop}, {"flight_checks", ofDrop}, {"providers", ofShop + ` and t.deleted_at is not null`}, {"deleted_drafts", ofShop + ` and ` + ofSegment}}

// staying are the tables that name rows of shops and whose rows stay: the audit log, alerts and what
// workers have in hand. Tables that name no such row, by a reference or by a column that a condition above
// compares, stay as well: those of the installation and its staff. users, inbox_reads, sms_stops and
// suppressions are copied for users with something in the shop.
var staying = []string{"accepted_messages", "alert_destinations", "alerts", "audit", "channel_tests", "inbox_changes", "moves", "moving_rows", "providers", "shops_elsewhere"}
