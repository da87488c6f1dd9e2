package api_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
)

// target is an operation with a valid body; {id} is replaced by a drop and {draft} by a draft.
type target struct{ method, path, body string }

var targets = []target{
	{"POST", "/reservations", `{"template_id":"{id}","shop_number":"10","reminders":[{"channel":"app","minutes":10},{"channel":"email","minutes":5}]}`},
	{"GET", "/reservations?limit=10&before=5", ""},
	{"GET", "/reservations/{id}", ""},
	{"DELETE", "/reservations/{id}?channel=app&minutes=10", ""},
	{"DELETE", "/reservations/{id}?reminders=app:10,email:5", ""},
	{"GET", "/templates/{id}", ""},
	{"GET", "/inbox?before=2027-01-01T00:00:00Z&limit=3", ""},
	{"POST", "/inbox/read", `{"through":"2027-01-01T12:00:00Z"}`},
	{"GET", "/preferences", ""},
	{"PUT", "/preferences", `{"email":"ann@example.com","phone":"+8613800138000","push":[{"endpoint":"https://push.example.com/x","p256dh":"AA","auth":"AA"}],"opt_outs":["sms"],"quiet_hours":{"from":"22:00","to":"08:00"},"locale":"zh-CN","timezone":"Asia/Shanghai"}`},
	{"POST", "/admin/templates", `{"shop_number":"10","name":"20 off","description":"x","kind":"percent_off","percent_off":20,"max_off":3000,"threshold":0,"currency":"CNY","target":"product","product":"tea","stock":100,"per_user_limit":2,"opens_at":"2027-01-01T12:00:00Z","closes_at":"2027-01-02T12:00:00Z","valid_until":"2027-02-01T00:00:00Z","obtain":"code","claim_mode":"gate","claim_url":"https://example.com/x"}`},
	{"GET", "/admin/templates?state=draft,open&shop=10&q=off&from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z&order=asc&limit=5&after=1798804800.3", ""},
	{"GET", "/admin/templates/{draft}", ""},
	{"PATCH", "/admin/templates/{draft}", `{"name":"new","stock":101,"valid_until":null,"valid_hours":24,"opens_at":"2027-01-01T12:00:01Z","kind":"amount_off","amount_off":5}`},
	{"POST", "/admin/templates/{draft}/publish", `{"reason":"why"}`},
	{"POST", "/admin/templates/{draft}/pause", ``},
	{"POST", "/admin/templates/{draft}/resume", ``},
	{"POST", "/admin/templates/{draft}/close", `{"reason":"why"}`},
	{"POST", "/admin/templates/{draft}/cancel", `{"reason":"why"}`},
	{"GET", "/admin/templates/{draft}/balance", ""},
	{"GET", "/admin/shops", ""},
	{"GET", "/admin/capacity?web_cores=2&worker_cores=0.5&per_reservation=1.5", ""},
	{"PUT", "/admin/shops/10", `{"name":"Tea House","timezone":"Asia/Shanghai"}`},
	{"GET", "/admin/shops/10/sender", ""},
	{"PUT", "/admin/shops/10/sender", `{"name":"Tea House","reply_to":"help@tea.example","preheader":"{{worth}}","postal_address":"1 Tea Road"}`},
	{"GET", "/admin/shops/10/pictures?limit=2", ""},
	{"PATCH", "/admin/shops/10/pictures/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", `{"alt":"Tea"}`},
	{"DELETE", "/admin/shops/10/pictures/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", ""},
	{"POST", "/admin/shops/10/pictures?alt=Tea&name=tea.png", "GIF89a"},
	{"PUT", "/admin/users", `{"id":"1001","name":"Ann","email":"ann@example.com","attributes":{"a":1,"b":"x","c":null},"opt_outs":["app"],"quiet_hours":{"from":"1:00","to":"2"}}` + "\n{}\n"},
	{"PUT", "/devices", `{"platform":"android","token":"fcm-fcm-fcm-fcm-fcm-fcm-","replaces":"x","app_version":"1","locale":"zh-CN"}`},
	{"PUT", "/browsers", `{"endpoint":"https://push.example.com/x","p256dh":"AA","auth":"AA"}`},
	{"DELETE", "/browsers/9f86d081884c7d659a2feaa0c55ad015", ""},
	{"DELETE", "/devices/9f86d081884c7d659a2feaa0c55ad015", ""},
}

// FuzzAPI sends broken requests to every operation. It accepts every answer except a 500 and an
// answer that is missing in the document. A plain test run uses the seeds and a round of random
// requests; -fuzz=FuzzAPI continues.
func FuzzAPI(f *testing.F) {
	r := newFixture(f, nil)
	id, draft := r.drop(2*time.Hour), r.draft(2*time.Hour)
	for i, t := range targets {
		f.Add(i, t.path, t.body, "")
	}
	for _, s := range []string{"\x00", "\xff", "9223372036854775808", "-1", "1e999", "\\u0000", "\\ud800", "'; drop table users; --", "%00", "%ff", "../..", "\r\n"} {
		f.Add(0, targets[0].path, strings.ReplaceAll(targets[0].body, "app", s), s)
		f.Add(10, targets[10].path, strings.ReplaceAll(targets[10].body, "20 off", s), s)
		f.Add(11, "/admin/templates?q="+s+"&after="+s, "", s)
		f.Add(2, "/reservations/"+s, "", s)
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for range 3000 {
		i := rng.IntN(len(targets))
		t := targets[i]
		if t.body == "" || rng.IntN(4) == 0 {
			t.path = mutatePath(rng, t.path)
		} else {
			t.body = mutate(rng, t.body)
		}
		f.Add(i, t.path, t.body, mutate(rng, "1"))
	}
	f.Fuzz(func(t *testing.T, which int, path, body, header string) {
		method := targets[uint(which)%uint(len(targets))].method
		names := strings.NewReplacer("{id}", id, "{draft}", draft)
		path, body = names.Replace(path), names.Replace(body)
		u, err := url.ParseRequestURI("/api/v1" + path)
		if err != nil {
			return // net/http refuses it before we are asked
		}
		q := httptest.NewRequestWithContext(context.Background(), method, "/api/v1", strings.NewReader(body))
		q.URL, q.RequestURI = u, u.RequestURI()
		q.Header.Set("Authorization", "Bearer "+r.keys[staff.ScopeAdmin])
		if !strings.HasPrefix(path, "/admin") {
			q.Header.Set("Authorization", "Bearer "+token(7))
		}
		q.Header.Set("If-Match", header)
		if method == "PATCH" && len(header)%2 == 0 {
			var version int64
			if err := r.sql.QueryRow(t.Context(), `select version from templates where id = $1`, draft).Scan(&version); err != nil {
				t.Fatal(err)
			}
			q.Header.Set("If-Match", fmt.Sprint(version))
		}
		if len(body)%2 == 0 {
			q.Header.Set("Idempotency-Key", fmt.Sprintf("%x", sha256.Sum256([]byte(header+path+body))))
		}
		w := httptest.NewRecorder()
		r.ServeHTTP(w, q)
		if w.Code >= 500 {
			t.Fatalf("%s %q %q answers %d %s\nlog: %s", method, path, body, w.Code, w.Body, r.logs)
		}
		if u.RawPath == "" && strings.HasPrefix(u.Path, "/api/v1/") {
			if err := r.api.Conforms(method, strings.TrimPrefix(u.Path, "/api/v1"), w.Code, w.Body.Bytes()); err != nil {
				t.Fatalf("%s %q %q answers %d: %v: %s", method, path, body, w.Code, err, w.Body)
			}
		}
	})
}

// mutatePath changes the query, or an id; other paths lead nowhere.
func mutatePath(rng *rand.Rand, path string) string {
	if head, query, ok := strings.Cut(path, "?"); ok {
		return head + "?" + mutate(rng, query)
	}
	if at := strings.Index(path, "{"); at >= 0 {
		return path[:at] + mutate(rng, path[at:])
	}
	return path
}

// spice are the texts that mutate inserts.
var spice = []string{"\x00", "\xff", "\u202e", "🎉", `"`, `\`, `\u0000`, `\ud800`, "{", "}", "[", "]", ",", ":", "null", "true", "-1", "0", "1e999", "1.5",
	"9223372036854775807", "9223372036854775808", "99999999999999999999", "'", ";", "--", "%", "%00", "&", "?", "=", "/", "..", "\n", " ",
	"0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2027-01-01T00:00:00.000000001Z", "+08:00"}

// mutate changes s in up to three places: it inserts spice, removes a piece, repeats a piece, or
// replaces a whole value between quotes.
func mutate(rng *rand.Rand, s string) string {
	for range 1 + rng.IntN(3) {
		at := rng.IntN(len(s) + 1)
		end := min(len(s), at+rng.IntN(8))
		switch rng.IntN(5) {
		case 0:
			s = s[:at] + spice[rng.IntN(len(spice))] + s[at:]
		case 1:
			s = s[:at] + s[end:]
		case 2:
			s = s[:end] + s[at:]
		case 3:
			s = s[:at] + string(rune(rng.IntN(0x3000))) + s[end:]
		default:
			if parts := strings.Split(s, `"`); len(parts) > 2 {
				parts[1+rng.IntN(len(parts)-2)] = spice[rng.IntN(len(spice))]
				s = strings.Join(parts, `"`)
			} else {
				s = fmt.Sprint(s, spice[rng.IntN(len(spice))])
			}
		}
	}
	return s
}
