package pipeline

import (
	"net/http"
	"slices"

	"dropbell/domain/fault"
)

// Faults of the protocol itself. The domain packages define the faults of their rules.
var (
	ErrMalformed     = fault.New(fault.Invalid, "malformed_json", "the body is not valid JSON in UTF-8; correct it and send it again")
	errNoRoute       = fault.New(fault.NotFound, "not_found", "there is nothing at this address; check the path")
	errMethod        = fault.New(fault.Invalid, "method_not_allowed", "this address does not take this method; see the Allow header")
	errTooLarge      = fault.New(fault.Invalid, "too_large", "the body is larger than 1 MiB; divide it")
	ErrMediaType     = fault.New(fault.Invalid, "unsupported_media_type", "send the body as application/json")
	ErrTimeout       = fault.New(fault.Invalid, "request_timeout", "the body did not arrive in time; send it faster, or in smaller parts")
	ErrPrecondition  = fault.New(fault.Invalid, "precondition_required", "send If-Match with the version your change is based on")
	ErrRateLimited   = fault.New(fault.Throttled, "rate_limited", "too many requests")
	errKeyConflict   = fault.New(fault.Invalid, "idempotency_conflict", "this Idempotency-Key was used for another request; use a new one for a new request")
	errKeyInProgress = fault.New(fault.Conflict, "idempotency_in_progress", "the first request with this Idempotency-Key is still being answered; wait as long as Retry-After says")
	errOverloaded    = fault.New(fault.Unavailable, "overloaded", "this cannot be answered right now; try again, with the same Idempotency-Key if one was sent")
	errTooMany       = fault.New(fault.Unavailable, "overloaded", "too many requests are being served; try again")
	errInternal      = fault.New(0, "internal", "something went wrong here; quote the request id when you report it")
)

// A Code is one row of the table that maps a fault to an answer.
type Code struct {
	Code    string
	Status  int
	Meaning string
}

// codes lists every code of answers. The OpenAPI document, the readable page and the status lines
// are made from it.
var codes = []Code{
	{"malformed_json", http.StatusBadRequest, "The body is missing, not JSON, or not UTF-8."},
	{"unauthenticated", http.StatusUnauthorized, "No valid token or key was sent, or no user was named."},
	{"forbidden", http.StatusForbidden, "The caller lacks the permission."},
	{"message_not_found", http.StatusNotFound, "There is no such shop or text."},
	{"picture_not_found", http.StatusNotFound, "There is no such shop or picture."},
	{"not_found", http.StatusNotFound, "There is nothing at this address."},
	{"template_not_found", http.StatusNotFound, "There is no such template, or it is a draft."},
	{"code_batch_not_found", http.StatusNotFound, "There is no such batch of redeem codes."},
	{"no_codes", http.StatusNotFound, "The template has no redeem codes to export."},
	{"claim_not_found", http.StatusNotFound, "The user has made no such claim."},
	{"campaign_not_found", http.StatusNotFound, "There is no such campaign."},
	{"recipient_not_found", http.StatusNotFound, "The user is not in the campaign's audience, or it has not been cut yet."},
	{"series_not_found", http.StatusNotFound, "There is no such series."},
	{"not_waiting", http.StatusNotFound, "The user has not joined the drop's waitlist."},
	{"not_reserved", http.StatusNotFound, "The user has no such reminder."},
	{"rows_removed", http.StatusNotFound, "The drop's reservations and outcomes were removed after their retention."},
	{"job_not_found", http.StatusNotFound, "There is no such job, or the caller may not see it."},
	{"draw_not_found", http.StatusNotFound, "There is no draw of this drop, or its card is not published yet."},
	{"not_entered", http.StatusNotFound, "The user has no entry in the draw."},
	{"ticket_not_found", http.StatusNotFound, "The sealed list of the draw does not have the ticket."},
	{"budget_not_found", http.StatusNotFound, "There is no such budget."},
	{"shop_not_found", http.StatusNotFound, "There is no such shop."},
	{"coupon_not_found", http.StatusNotFound, "There is no such coupon, or it is another user's."},
	{"wallet_not_configured", http.StatusNotFound, "This installation issues no passes for the wallet."},
	{"review_not_found", http.StatusNotFound, "There is no such group of claims, or the coupon is not under review or is another user's."},
	{"user_not_found", http.StatusNotFound, "Nothing is known about the user."},
	{"order_not_found", http.StatusNotFound, "The order has locked no coupons."},
	{"erasure_not_found", http.StatusNotFound, "The user was not erased."},
	{"suppression_not_found", http.StatusNotFound, "The mail address is not suppressed."},
	{"webhook_not_found", http.StatusNotFound, "There is no such webhook endpoint."},
	{"delivery_not_found", http.StatusNotFound, "There is no such delivery, or its retention is over."},
	{"segment_not_found", http.StatusNotFound, "There is no such segment or list."},
	{"method_not_allowed", http.StatusMethodNotAllowed, "The address exists and does not take this method."},
	{"request_timeout", http.StatusRequestTimeout, "The body did not arrive in time."},
	{"already_reserved", http.StatusConflict, "At least one of the reminders is reserved already; nothing was stored."},
	{"already_due", http.StatusConflict, "At least one of the reminders is due already; nothing was changed."},
	{"drop_opened", http.StatusConflict, "The drop has opened."},
	{"coupon_not_usable", http.StatusConflict, "The coupon's state, its rule, or the state of the order's lock forbids this; detail says which."},
	{"combination_refused", http.StatusConflict, "The order cannot use these coupons together; detail names the coupon."},
	{"cart_changed", http.StatusConflict, "The order has another cart, revision or discount; detail says which."},
	{"coupon_suspended", http.StatusConflict, "The coupon is under review and cannot be locked."},
	{"review_decided", http.StatusConflict, "The state of the group does not allow this decision."},
	{"review_needs_second", http.StatusConflict, "Another member must approve this."},
	{"review_too_late", http.StatusConflict, "A suspension can be undone for a whole group within 24 hours."},
	{"review_has_appeals", http.StatusConflict, "Appeals wait for an answer."},
	{"coupon_not_suspended", http.StatusConflict, "The coupon is not under review."},
	{"already_appealed", http.StatusConflict, "The coupon has an appeal."},
	{"appeal_answered", http.StatusConflict, "No appeal about the coupon waits for an answer."},
	{"order_differs", http.StatusConflict, "The order was reported with another amount, currency or customer."},
	{"report_of_draft", http.StatusConflict, "The drop is a draft, which has no figures."},
	{"code_used", http.StatusConflict, "The redeem code was used before."},
	{"not_by_code", http.StatusConflict, "Coupons of the template are not obtained by code."},
	{"codes_not_configured", http.StatusConflict, "The server has no key for redeem codes."},
	{"passes_not_configured", http.StatusConflict, "The server has no key for passes."},
	{"codes_not_ready", http.StatusConflict, "Redeem codes are still being generated; try again in a moment."},
	{"codes_revoked", http.StatusConflict, "The redeem codes were revoked."},
	{"codes_exhausted", http.StatusConflict, "There are not enough serial numbers left for so many codes."},
	{"code_key_missing", http.StatusConflict, "The key that the codes were made with is missing or has changed."},
	{"template_not_open", http.StatusConflict, "The template is closed, cancelled or paused, or its coupons are obtained in another way."},
	{"not_started", http.StatusConflict, "The drop has not opened yet."},
	{"ended", http.StatusConflict, "The drop has ended."},
	{"not_eligible", http.StatusConflict, "The drop is for other users."},
	{"code_needed", http.StatusConflict, "The drop opens to this user with an access code."},
	{"door_not_open", http.StatusConflict, "The drop has not opened for this user; detail says when it does."},
	{"doors_fixed", http.StatusConflict, "The drop is published; only the openings and texts of doors that are not frozen can change."},
	{"flight_red", http.StatusConflict, "The flight check of the drop has red points, and there is no reason to publish it anyway."},
	{"rehearsal_running", http.StatusConflict, "Another rehearsal is asked for or runs; one runs at a time."},
	{"rehearsal_state", http.StatusConflict, "Only a published drop that has not opened can be rehearsed."},
	{"rehearsal_near_opening", http.StatusConflict, "A drop opens within an hour, or has opened within ten minutes."},
	{"door_tests", http.StatusConflict, "The doors of the drop do not treat a test person as wanted, or there are fewer than three."},
	{"entry_struck", http.StatusConflict, "The entry was struck before."},
	{"figures_differ", http.StatusConflict, "The figures differ from those that another member gave."},
	{"not_won", http.StatusConflict, "The user's ticket has not won."},
	{"offer_lapsed", http.StatusConflict, "The offer of a draw or a waitlist was not accepted in time."},
	{"entries_closed", http.StatusConflict, "Entries of the draw are closed."},
	{"sold_out", http.StatusConflict, "All coupons are issued."},
	{"series_state", http.StatusConflict, "The state of the series does not allow this step: it has ended."},
	{"too_many_series", http.StatusConflict, "The shop has 100 series that have not ended."},
	{"series_ended", http.StatusConflict, "The series has ended; its drops are reserved one by one."},
	{"no_waitlist", http.StatusConflict, "The drop has no waitlist."},
	{"stock_left", http.StatusConflict, "There are coupons left: claim one instead of waiting."},
	{"too_many_waits", http.StatusConflict, "The user waits for as many drops as one user may."},
	{"no_offer", http.StatusConflict, "No coupon of the waitlist is offered to the user now."},
	{"offer_taken", http.StatusConflict, "In the last hour of the drop other users took the coupons that were left."},
	{"household_limit", http.StatusConflict, "The user's household has reached the limit of coupons per household."},
	{"limit_reached", http.StatusConflict, "The user has reached the limit of coupons per user."},
	{"invalid_transition", http.StatusConflict, "The state of the template or campaign does not allow this."},
	{"approval_required", http.StatusConflict, "The campaign reaches more users than may be sent to without approval; another member must approve it."},
	{"approval_lapsed", http.StatusConflict, "The campaign, or the rule of its segment, has changed since approval was requested; check it and request approval again."},
	{"approval_not_asked", http.StatusConflict, "No request for approval of this campaign is open."},
	{"already_published", http.StatusConflict, "A campaign with this name, creator, start and end was published within the last 30 minutes."},
	{"budget_no_coupons", http.StatusConflict, "The campaign gives no coupons that a budget could limit."},
	{"shop_moved", http.StatusConflict, "The shop has moved to another installation."},
	{"budget_short", http.StatusConflict, "A budget does not cover the stock; detail says how many coupons it pays for."},
	{"budget_committed", http.StatusConflict, "Published drops commit more than this amount already."},
	{"stock_below_issued", http.StatusConflict, "Stock cannot be lower than what is issued, nor be lowered behind the gate."},
	{"list_incomplete", http.StatusConflict, "A file of the list is still being read; publish the campaign when that is done."},
	{"user_erased", http.StatusConflict, "The user was erased, and nothing about them is stored until DELETE /admin/users/{id}/erasure."},
	{"phone_missing", http.StatusConflict, "No phone number was given and none is stored."},
	{"sms_opted_out", http.StatusConflict, "The user has opted out of text messages."},
	{"phone_code_expired", http.StatusConflict, "No code is valid any longer: it has expired, was used, or was entered wrongly five times; request a new one."},
	{"list_in_use", http.StatusConflict, "A campaign that was published, or waits for approval, is for the list; no user can be added until its audience is read."},
	{"segment_in_use", http.StatusConflict, "A campaign that has not ended uses the segment."},
	{"segment_is_list", http.StatusConflict, "The segment is a list: its members come from files."},
	{"segment_is_rules", http.StatusConflict, "The segment is no list: its members come from rules."},
	{"too_many_webhooks", http.StatusConflict, "The shop has as many webhook endpoints as it can."},
	{"webhook_repeated", http.StatusConflict, "The request was carried out before; the secret in its answer is not shown again."},
	{"webhook_disabled", http.StatusConflict, "The webhook endpoint is disabled."},
	{"picture_in_use", http.StatusConflict, "The texts that detail names have the picture."},
	{"picture_library_full", http.StatusConflict, "The shop has as many pictures as it can."},
	{"stale_version", http.StatusConflict, "It was changed in the meantime: load it again and repeat the change."},
	{"idempotency_in_progress", http.StatusConflict, "The first request with this Idempotency-Key is still being answered."},
	{"too_large", http.StatusRequestEntityTooLarge, "The body is larger than 1 MiB."},
	{"upload_too_large", http.StatusRequestEntityTooLarge, "The file is larger than its limit."},
	{"unsupported_media_type", http.StatusUnsupportedMediaType, "The body is not sent as application/json."},
	{"invalid_request", http.StatusUnprocessableEntity, "The request breaks at least one rule; errors lists each one."},
	{"pass_required", http.StatusForbidden, "The drop is protected, and the claim has no pass, or one that is wrong, too weak or expired."},
	{"pass_refused", http.StatusUnprocessableEntity, "What was sent earns no pass: the puzzle, the token or the code is wrong or expired, or the drop needs more than a puzzle."},
	{"code_invalid", http.StatusUnprocessableEntity, "The redeem code is mistyped or invented, or its batch was revoked."},
	{"phone_code_wrong", http.StatusUnprocessableEntity, "This is not the code that was sent last."},
	{"channel_unavailable", http.StatusUnprocessableEntity, "The channel does not exist or has no sender."},
	{"idempotency_conflict", http.StatusUnprocessableEntity, "The Idempotency-Key was used for another request."},
	{"precondition_required", http.StatusPreconditionRequired, "If-Match is missing."},
	{"rate_limited", http.StatusTooManyRequests, "Too many requests; Retry-After says when to come back."},
	{"too_many_codes", http.StatusTooManyRequests, "The user has requested too many codes; Retry-After says when the next one can be requested."},
	{"internal", http.StatusInternalServerError, "A defect of Dropbell; quote the request id."},
	{"estimate_unavailable", http.StatusServiceUnavailable, "This could not be estimated quickly."},
	{"pictures_busy", http.StatusServiceUnavailable, "Other pictures are being converted."},
	{"picture_store", http.StatusServiceUnavailable, "The store of pictures does not answer."},
	{"overloaded", http.StatusServiceUnavailable, "A server that is needed is down or busy; try again after Retry-After."},
}

// Codes returns every code of answers, in the order of their statuses.
func Codes() []Code { return slices.Clone(codes) }

// kinds maps a fault to an answer by its kind if its code has no row of its own, so that a new rule
// answers sensibly before it is documented.
var kinds = map[fault.Kind]int{
	fault.Invalid:         http.StatusUnprocessableEntity,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.Denied:          http.StatusForbidden,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Throttled:       http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
}

func statusOf(kind fault.Kind, name string) int {
	for _, c := range codes {
		if c.Code == name {
			return c.Status
		}
	}
	if status, ok := kinds[kind]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// codeOf returns the fault for a refusal that was made before any rule was checked.
func codeOf(status int) *fault.Fault {
	switch status {
	case http.StatusBadRequest:
		return ErrMalformed
	case http.StatusRequestTimeout:
		return ErrTimeout
	case http.StatusRequestEntityTooLarge:
		return errTooLarge
	case http.StatusUnsupportedMediaType:
		return ErrMediaType
	case http.StatusUnprocessableEntity:
		return fault.ErrInvalid
	}
	return errInternal
}
