package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"dropbell/domain/redeemcode"
	"dropbell/web/api"
)

// TestBodiesWithoutJSON: the refusal of a body that is no JSON names the error: in the quick ways,
// in the general way, and with an idempotency key.
func TestBodiesWithoutJSON(t *testing.T) {
	r := newFixture(t, nil)
	id, mark := r.draft(2*time.Hour), "\ufeff"
	const empty, marked = "the body is empty; send a JSON object", "remove the byte order mark at the beginning of the body"
	for _, who := range [][]string{nil, {"Idempotency-Key", "k"}, {"Content-Type", "application/json; charset=UTF-8"}} {
		for _, c := range []struct{ method, path, body, detail string }{
			{"POST", "/reservations", "", empty},
			{"POST", "/reservations", " \r\n", empty},
			{"POST", "/reservations", mark + `{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":5}]}`, marked},
			{"POST", "/claims", "", empty},
			{"POST", "/claims", mark + `{"template_id":"1"}`, marked},
			{"POST", "/redemptions", "", empty},
			{"POST", "/redemptions", mark + `{"code":"x"}`, marked},
			{"PUT", "/preferences", "", empty},
			{"PUT", "/preferences", mark + `{}`, marked},
			{"POST", "/admin/templates", mark, marked},
			{"POST", "/admin/templates/" + id + "/publish", mark + `{}`, marked},
		} {
			caller := as(token(7), who...)
			if strings.HasPrefix(c.path, "/admin") {
				caller = r.admin(who...)
			}
			r.about = c.method + " " + c.path + " " + c.body
			if a := r.want(r.call(caller, c.method, c.path, c.body), 400, "malformed_json"); a.at("detail") != c.detail {
				t.Errorf("%s: %s", r.about, a.Body)
			}
		}
	}
	// A body that may be left out is.
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/publish", ""), 200, "")
}

// TestIdsAreRefusedInWords, wherever they stand.
func TestIdsAreRefusedInWords(t *testing.T) {
	r := newFixture(t, nil)
	const quoted, plain = `must be a positive whole number below 2^63 in quotes, such as "17"`, "must be a positive whole number below 2^63, such as 17"
	me := as(token(7))
	wish := func(id string) string {
		return `{"template_id":` + id + `,"shop_number":"10","reminders":[{"channel":"app","minutes":5}]}`
	}
	for _, c := range []struct {
		answer    answer
		at, words string
		value     any
	}{
		{r.call(me, "POST", "/reservations", wish(`"x"`)), "body.template_id", quoted, "x"},
		{r.call(me, "POST", "/reservations", wish(`"0"`)), "body.template_id", quoted, "0"},
		{r.call(me, "POST", "/reservations", wish(`"9223372036854775808"`)), "body.template_id", quoted, nil},
		{r.call(me, "POST", "/reservations", wish(`17`)), "body.template_id", "expected string; put the number in quotes", 17.0},
		{r.call(me, "POST", "/claims", `{"template_id":"-1"}`), "body.template_id", quoted, "-1"},
		{r.call(nil, "GET", "/templates/x", nil), "path.id", plain, "x"},
		{r.call(nil, "GET", "/templates/9223372036854775808", nil), "path.id", plain, nil},
		{r.call(me, "GET", "/coupons?before=0", nil), "query.before", plain, "0"},
		{r.call(as(r.keys["act-as-user"], "X-User-ID", "me"), "GET", "/inbox", nil), "header.X-User-ID", plain, nil},
		{r.call(r.admin(), "GET", "/admin/shops/-1/campaign-limits", nil), "path.number", "must be 0 or a positive whole number below 2^63, such as 17", "-1"},
	} {
		a := r.want(c.answer, 422, "invalid_request")
		if a.at("errors.0.location") != c.at || a.at("errors.0.message") != c.words || a.at("errors.0.value") != c.value {
			t.Errorf("%s is told otherwise: %s", c.at, a.Body)
		}
	}
	if spec := string(r.api.OpenAPI()); !strings.Contains(spec, `"pattern": "^[1-9][0-9]{0,18}$"`) {
		t.Error("the document has no pattern of ids")
	}
}

// TestNumbersAreEchoedAsSent, however they would be rounded.
func TestNumbersAreEchoedAsSent(t *testing.T) {
	r := newFixture(t, nil)
	for _, number := range []string{"99999999999999999999", "9007199254740993", "-1", "1e3", "61.0", "1" + strings.Repeat("0", 200)} {
		// The second value is reported as wrong; the first is not.
		for _, body := range []string{
			`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":5},{"channel":"app","minutes":` + number + `}]}`,
			`{"template_id":` + number + `,"shop_number":"10","reminders":[{"channel":"app","minutes":` + number + `}]}`,
		} {
			want := `"value":` + number
			if len(number) > 100 {
				want = `"value":"1` + strings.Repeat("0", 99) + `…"`
			}
			a := r.want(r.call(as(token(7)), "POST", "/reservations", body), 422, "invalid_request")
			if got := strings.Count(a.Body.String(), want+"}"); got != strings.Count(body, number) {
				t.Errorf("%s is echoed %d times: %s", number, got, a.Body)
			}
		}
	}
}

// TestWaitingIsSaid: how long, in words as in the header.
func TestWaitingIsSaid(t *testing.T) {
	clock := now()
	r := newFixture(t, func(d *api.Deps) { d.Now = func() time.Time { return clock } })
	for range 10 {
		r.redeem(7, "hello", 422, "code_invalid")
	}
	for _, c := range []struct {
		later         time.Duration
		header, words string
	}{{0, "6", "wait 6 seconds"}, {3500 * time.Millisecond, "3", "wait 3 seconds"}, {1600 * time.Millisecond, "1", "wait 1 second"}} {
		clock = clock.Add(c.later)
		a := r.redeem(7, "hello", 429, "rate_limited")
		if a.Header().Get("Retry-After") != c.header || a.at("detail") != "too many codes that are not valid; "+c.words {
			t.Errorf("Retry-After: %s, %s", a.Header().Get("Retry-After"), a.Body)
		}
	}
}

// firstLook returns batches in their state at the first look-up, like a process that has not
// noticed a revocation yet.
type firstLook struct {
	redeemcode.Finder
	seen map[redeemcode.Serial]redeemcode.Batch
}

func (f firstLook) BatchOf(ctx context.Context, s redeemcode.Serial) (redeemcode.Batch, error) {
	if b, ok := f.seen[s]; ok {
		return b, nil
	}
	b, err := f.Finder.BatchOf(ctx, s)
	f.seen[s] = b
	return b, err
}

// TestCodesOfARevokedBatch: an unused code is invalid at once in every process. For a used code, a
// process that has not noticed the revocation answers that the code is used, even if the mark of
// its use is lost. No code gives a coupon.
func TestCodesOfARevokedBatch(t *testing.T) {
	r := newFixture(t, nil)
	marks := &memoryMarks{used: map[redeemcode.Serial]bool{}}
	late := r.with(func(d *api.Deps) {
		d.Coupons.Redeemer.Batches, d.Coupons.Redeemer.Marks = firstLook{d.Coupons.Redeemer.Batches, map[redeemcode.Serial]redeemcode.Batch{}}, marks
	})
	id := r.byCode(nil)
	codes := r.codes(id, 2)
	late.redeem(7, codes[0], 201, "")
	r.exec(`update templates set state = 'paused' where id = $1`, id)
	late.redeem(7, codes[1], 409, "template_not_open") // it has seen this one, too
	r.exec(`update templates set state = 'published' where id = $1`, id)
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/codes/1/revoke", map[string]any{"reason": "leaked"}), 200, "")
	late.redeem(8, codes[1], 422, "code_invalid")
	late.redeem(8, codes[0], 409, "code_used")
	clear(marks.used)
	late.redeem(8, codes[0], 409, "code_used")
	r.redeem(8, codes[1], 422, "code_invalid")
	r.redeem(8, codes[0], 422, "code_invalid")
	if n := r.number(`select count(*) from coupons`); n != 1 {
		t.Errorf("%d coupons", n)
	}
}

// TestRefundedCouponsAreUnused, and listed as such: no coupon is refunded.
func TestRefundedCouponsAreUnused(t *testing.T) {
	r := newFixture(t, nil)
	id, till := r.coupon(7, r.drop(time.Hour)), as(r.keys["payment"])
	for _, step := range []string{"lock", "confirm", "refund"} {
		body := map[string]any{"order_id": "A-1"}
		if step == "lock" {
			body["order_amount"] = 6000
		}
		r.want(r.call(till, "POST", "/coupons/"+id+"/"+step, body), 200, "")
	}
	for state, want := range map[string]any{"unused": id, "refunded": nil, "used": nil} {
		a := r.want(r.call(as(token(7)), "GET", "/coupons?state="+state, nil), 200, "")
		if a.at("coupons.0.coupon_id") != want {
			t.Errorf("%s: %s", state, a.Body)
		}
	}
}
