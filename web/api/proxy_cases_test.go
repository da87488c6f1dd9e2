package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/claim"
	"dropbell/domain/staff"
	"dropbell/musttest"
	"dropbell/web/api"
	"dropbell/web/api/pipeline"
)

// described is an operation of the document.
type described struct {
	method, path string
	at           string // the path with parameters about nothing there is
	statuses     []int
	query        string // the required parameters; "" = none
	kind         string // of its body; "" = none
	body         any
	tag          string
}

func (d described) String() string { return d.method + " " + d.path }

// operations lists the operations of the document in its order.
func operations(t testing.TB) (list []described) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			Tags       []string
			Parameters []struct {
				Name, In string
				Required bool
				Schema   struct {
					Examples []any
					Pattern  string
				}
			}
			RequestBody struct {
				Content map[string]struct{ Example any }
			}
			Responses map[string]any
		}
	}
	musttest.OK(t, json.Unmarshal(document(), &doc))
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			op := doc.Paths[path][method]
			d := described{method: strings.ToUpper(method), path: path, at: path, tag: op.Tags[0]}
			for _, p := range op.Parameters {
				if p.In == "path" {
					value := "999999"
					if len(p.Schema.Examples) > 0 && !strings.Contains(p.Schema.Pattern, "[1-9]") { // ids are numbers
						value = fmt.Sprint(p.Schema.Examples[0])
					}
					d.at = strings.ReplaceAll(d.at, "{"+p.Name+"}", value)
				}
				if p.In == "query" && p.Required {
					d.query = "?" + url.Values{p.Name: {fmt.Sprint(p.Schema.Examples...)}}.Encode()
				}
			}
			for kind, content := range op.RequestBody.Content {
				if d.kind == "" || content.Example != nil {
					d.kind, d.body = kind, content.Example
				}
				if kind == "image/png" {
					d.kind, d.body = kind, smallPNG(t)
					break
				}
			}
			for text := range op.Responses {
				status, err := strconv.Atoi(text)
				if err != nil {
					t.Fatalf("%s answers %q", d, text)
				}
				d.statuses = append(d.statuses, status)
			}
			list = append(list, d)
		}
	}
	return list
}

// smallPNG is a picture of one pixel.
func smallPNG(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	musttest.OK(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))))
	return b.String()
}

// callers returns the headers of a caller that may call the operation, and of a caller that may
// not.
func (r *fixture) callers(d described) (may, mayNot http.Header) {
	payment := as(r.keys[staff.ScopePayment])
	switch d.tag {
	case "For staff and automation":
		may, mayNot = r.admin(), payment
	case "For payment":
		may, mayNot = payment, as(token(7))
	default:
		may, mayNot = as(token(7)), as(r.keys[staff.ScopeAdmin], "X-User-ID", "7")
	}
	for _, h := range []http.Header{may, mayNot} {
		if d.method == "PATCH" || strings.HasSuffix(d.path, "/rotate") || strings.HasSuffix(d.path, "/doors") {
			h.Set("If-Match", `"1"`)
		}
		if d.kind != "" {
			h.Set("Content-Type", d.kind)
		}
	}
	return may, mayNot
}

// try calls the operation with the example of the document, about nothing there is. Without a query
// it has the required parameters.
func (r *fixture) try(d described, by http.Header, query string) answer {
	r.Helper()
	query = cmp.Or(query, d.query)
	r.about = d.String()
	return r.call(by, d.method, d.at+query, d.body)
}

// plainly provokes the refusals that every operation has.
func (p *proxy) plainly(t *testing.T) {
	r := newFixture(t, nil)
	limited, busy := r.second(), r.second()
	limited.build(slog.New(slog.DiscardHandler), func(d *api.Deps) { d.UserLimit, d.KeyLimit = 1, 1 })
	busy.build(slog.New(slog.DiscardHandler), func(d *api.Deps) { d.Idempotency = alwaysBusy{} })
	for _, d := range operations(t) {
		may, mayNot := r.callers(d)
		r.late.Add(int64(2 * time.Second)) // so that one may fail again
		if slices.Contains(d.statuses, 404) && strings.Contains(d.path, "{") && d.String() != "DELETE /admin/users/{id}" {
			r.refused(r.try(d, may, ""), 404)
		}
		nobody := may.Clone()
		nobody.Set("Authorization", "Bearer dbk_"+strings.Repeat("x", 32))
		r.refused(r.try(d, nobody, ""), 401)
		if slices.Contains(d.statuses, 403) {
			r.refused(r.try(d, mayNot, ""), 403)
		}
		if d.path == "/inbox/stream" {
			for limited.call(may, "GET", "/inbox", nil).Code != 429 {
			}
			limited.refused(limited.try(d, may, ""), 429)
			r.refused(r.try(d, as(r.keys[staff.ScopeActAsUser], "X-User-ID", "me"), ""), 422)
			continue
		}
		r.refused(r.try(d, may, "?nonsense=1"), 422)
		for limited.try(d, may, "").Code != 429 {
		}
		odd := may.Clone()
		odd.Set("Content-Type", "text/plain")
		odd.Set("Content-Encoding", "compress")
		if slices.Contains(d.statuses, 415) {
			r.refused(r.try(d, odd, ""), 415)
		}
		if d.method == "POST" && d.path != "/claims" && d.path != "/redemptions" && d.path != "/access-codes" && d.kind != "image/png" { // an upload is repeated by its content
			may.Set("Idempotency-Key", "k")
			busy.refused(busy.try(d, may, ""), 409)
		}
	}
}

// refused fails unless the answer is the refusal.
func (r *fixture) refused(a answer, status int) {
	r.Helper()
	if a.Code != status || a.code() == "" {
		r.Errorf("%s: got %d, want %d: %s", r.about, a.Code, status, a.Body)
	}
}

// alwaysBusy is a store in which the first request with every key is still in progress.
type alwaysBusy struct{ pipeline.Idempotency }

func (alwaysBusy) Begin(context.Context, workdb.IdempotencyRequest, time.Duration) (workdb.Recorded, error) {
	return workdb.Recorded{Busy: true}, nil
}

// accepting is a gate that has accepted every claim and not written it yet.
type accepting struct{}

func (accepting) Claim(_ context.Context, r claim.Request) (claim.Claim, error) {
	return claim.Claim{ID: cmp.Or(r.ID, 5), TemplateID: r.TemplateID, UserID: r.UserID, State: claim.Accepted, At: now()}, nil
}

// rest provokes the answers that the other tests do not provoke.
func (p *proxy) rest(t *testing.T) {
	r := newFixture(t, nil)
	r.exec(`insert into users (id) values (1)`)
	post := func(path string, body any, status int) answer {
		t.Helper()
		a := r.call(r.admin(), "POST", path, body)
		if r.about = path; a.Code != status {
			t.Errorf("%s: got %d, want %d: %s", path, a.Code, status, a.Body)
		}
		return a
	}
	campaign := "/admin/campaigns/" + post("/admin/campaigns", campaignWish(), 201).at("id").(string)
	post(campaign+"/refuse", map[string]any{"request_id": "1", "reason": "no"}, 409)
	post(campaign+"/publish", nil, 200)
	r.exec(`update campaigns set state = 'running', started_at = now()`)
	post(campaign+"/pause", nil, 200)
	post(campaign+"/resume", nil, 200)
	post(campaign+"/resume", nil, 409)
	post(campaign+"/cancel", nil, 200)
	post(campaign+"/cancel", nil, 409)
	r.refused(post("/admin/campaigns/estimate", map[string]any{"audience": map[string]any{"segment_id": "999999"}}, 404), 404)

	segment := post("/admin/segments", map[string]any{"name": "All", "rule": map[string]any{"all": []any{}}}, 201).at("id").(string)
	post("/admin/campaigns", campaignWish("audience", map[string]any{"segment_id": segment}), 201)
	r.refused(r.call(r.admin(), "DELETE", "/admin/segments/"+segment, nil), 409)

	r.want(r.call(nil, "GET", "/templates/"+r.drop(time.Hour)+"/opening.ics", nil), 200, "")
	passes := newFixture(t, withPasses(t))
	pass := "/coupons/" + passes.coupon(1, passes.drop(time.Hour)) + "/pass"
	passes.want(passes.call(as(token(1)), "GET", pass, nil), 200, "")
	file := passes.want(passes.call(as(token(1)), "GET", pass+".pkpass", nil), 200, "")
	if a := passes.call(as(token(1), "If-None-Match", file.Header().Get("ETag")), "GET", pass+".pkpass", nil); a.Code != 304 {
		t.Errorf("%d", a.Code)
	}
	r.want(r.call(as(token(1)), "PUT", "/devices", map[string]any{"platform": "ios", "token": strings.Repeat("ab", 32)}), 200, "")
	phone := r.want(r.call(as(token(1)), "GET", "/devices", nil), 200, "").at("devices.0.id").(string)
	r.want(r.call(as(token(1)), "DELETE", "/devices/"+phone, nil), 204, "")
	mini := r.drop(time.Hour)
	consents := "/reservations/" + mini + "/consents"
	_, err := r.sql.Exec(t.Context(), `insert into reservations (template_id, user_id, slots) values ($1, 1, 3::bigint << 36)`, mini)
	r.must(err)
	r.want(r.call(as(token(1)), "PUT", consents+"/5", nil), 200, "")
	r.want(r.call(as(token(1)), "DELETE", consents+"/5", nil), 200, "")
	r.want(r.call(as(token(1)), "PUT", consents+"/10", nil), 200, "")
	r.want(r.call(as(token(1)), "GET", consents, nil), 200, "")
	_, err = r.sql.Exec(t.Context(), `update slots set due_at = now() - slot * interval '1 second' where template_id = $1`, mini)
	r.must(err)
	r.refused(r.call(as(token(1)), "PUT", consents+"/5", nil), 409)
	r.refused(r.call(as(token(1)), "DELETE", consents+"/10", nil), 409)
	r.verifyPhone(token(1))
	r.want(r.call(r.admin(), "POST", "/admin/suppressions", `{"address":"ann@example.com"}`), 200, "")
	r.want(r.call(r.admin(), "GET", "/admin/suppressions", nil), 200, "")
	r.want(r.call(r.admin(), "DELETE", "/admin/suppressions?address=ann@example.com", nil), 204, "")
	r.refused(r.call(r.admin(), "DELETE", "/admin/suppressions?address=ann@example.com", nil), 404)
	r.want(r.call(r.admin(), "GET", "/admin/users/1/data", nil), 200, "")
	r.refused(r.call(r.admin(), "DELETE", "/admin/users/1/erasure", nil), 404)
	r.want(r.call(r.admin(), "DELETE", "/admin/users/1", nil), 204, "")
	r.refused(r.call(as(token(1)), "PUT", "/preferences", map[string]any{"locale": "en"}), 409)
	r.refused(r.call(as(token(1)), "PUT", "/devices", map[string]any{"platform": "ios", "token": strings.Repeat("ab", 32)}), 409)
	r.refused(r.call(as(token(1)), "PUT", "/browsers", browserOf("x")), 409)
	r.want(r.call(r.admin(), "DELETE", "/admin/users/1/erasure", nil), 204, "")

	post("/admin/coupons/"+r.coupon(7, r.drop(time.Hour))+"/revoke", map[string]any{"reason": "a mistake"}, 200)

	slow := newFixture(t, func(d *api.Deps) {
		d.Coupons.Claims = &claim.Service{Gate: accepting{}, Random: rand.Uint64}
		d.Coupons.Redeemer.Gate = accepting{}
	})
	slow.want(slow.call(as(token(7)), "POST", "/claims", claimOf("1")), 202, "")
	slow.want(slow.call(as(token(7)), "POST", "/redemptions", typed(slow.codes(slow.byCode(nil), 1)[0])), 202, "")
}

// stream receives events until the user has too many streams.
func (p *proxy) stream(t *testing.T) {
	r := newFixture(t, nil)
	done := make(chan answer)
	go func() { done <- r.call(as(token(9)), "GET", "/inbox/stream", nil) }()
	for {
		sub, err := r.hub.Subscribe(9, func() {})
		r.must(err)
		defer r.hub.Cancel(9, sub)
		select {
		case a := <-done:
			if !strings.Contains(a.Body.String(), "event: ready") {
				t.Errorf("%d %s", a.Code, a.Body)
			}
			return
		default:
			runtime.Gosched()
		}
	}
}

// unseen are answers of the document that no test provokes behind the proxy, each with the reason.
var unseen = map[string]string{
	"400": "a proxy that reads bodies does not forward one that cannot be read", "408": "a client that stops sending",
	"413": "bodies over a limit", "500": "a defect", "503": "a store that is away",
	"PUT /preferences 404":                    "the user was erased at this very moment",
	"POST /redemptions 404":                   "templates are never deleted",
	"PUT /admin/shops/{number}/sender 409":    "another change at this very moment",
	"POST /admin/shops/{number}/pictures 409": "a library of a thousand pictures",
}

// complete fails unless every other answer of the document was seen.
func (p *proxy) complete(t *testing.T) {
	var missing []string
	for _, d := range operations(t) {
		for _, status := range d.statuses {
			name := fmt.Sprintf("%s %d", d, status)
			if !p.seen[exchange{d.String(), status}] && unseen[strconv.Itoa(status)]+unseen[name] == "" {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("%d answers of the document were not seen:\n%s", len(missing), strings.Join(missing, "\n"))
	}
}
