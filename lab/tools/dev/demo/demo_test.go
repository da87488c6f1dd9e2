package demo

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"
	"github.com/nyaruka/phonenumbers"

	"dropbell/musttest"
)

func TestUsersAreDistinctAndReachable(t *testing.T) {
	emails, phones := map[string]bool{}, map[string]bool{}
	for id := FirstUser; id <= LastUser; id++ {
		u := demoUser(id)
		emails[u.Email], phones[u.Phone] = true, true
		number, err := phonenumbers.Parse(u.Phone, "")
		if err != nil || !phonenumbers.IsValidNumber(number) {
			t.Fatalf("user %d has the impossible number %s (%v)", id, u.Phone, err)
		}
		if !strings.Contains(u.Phone, "55501") {
			t.Fatalf("user %d has a number that may be somebody's: %s", id, u.Phone)
		}
		if _, err := time.LoadLocation(u.Timezone); err != nil || u.Name == "" || u.Locale == "" {
			t.Fatalf("user %+v: %v", u, err)
		}
	}
	if n := LastUser - FirstUser + 1; len(emails) != n || len(phones) != n {
		t.Errorf("%d e-mail addresses and %d numbers for %d users", len(emails), len(phones), n)
	}
}

// TestUsersAreFound: half of the users have Latin names, some of which begin with the names that a
// visitor tries, and the demo's segments of attributes have members.
func TestUsersAreFound(t *testing.T) {
	n := map[string]int{}
	for id := FirstUser; id <= LastUser; id++ {
		u := demoUser(id)
		if u.Name[0] < 0x80 {
			n["latin"]++
		}
		family, _, _ := strings.Cut(u.Name, " ")
		n[family]++
		if u.Attributes["tier"] == goldTier {
			n["gold"]++
			if u.Attributes["city"] == "Shanghai" {
				n["gold in Shanghai"]++
			}
		}
	}
	if n["latin"] != 2500 || n["Li"] < 50 || n["Chen"] < 50 || n["Grace"] < 50 || n["gold"] < 500 || n["gold in Shanghai"] < 50 {
		t.Errorf("%v", n)
	}
	for hour := range 24 {
		now := time.Date(2026, 11, 20, hour, 30, 0, 0, time.UTC)
		if left := membersAt(now).Sub(now); left < 3*time.Hour || left > 22*time.Hour {
			t.Errorf("at %v gold members wait for %v", now, left)
		}
	}
	doors := membersFirst("1")
	if tests := doors["tests"].([]map[string]any); len(tests) != 4 || len(doors["doors"].([]map[string]any)) != 2 {
		t.Errorf("doors %v", doors)
	}
}

func TestBookings(t *testing.T) {
	for _, five := range []bool{false, true} {
		slots, users := map[int]int{}, map[int64]bool{}
		for _, b := range bookings(rand.New(rand.NewPCG(1, 2)), Spread{Users: 4000, FiveMinutes: five}) {
			if b.user <= FirstUser || b.user > LastUser || users[b.user] {
				t.Fatalf("user %d: outside, first, or twice", b.user)
			}
			users[b.user] = true
			seen := map[reminder]bool{}
			for _, r := range b.reminders {
				if r.Minutes < 5 || r.Minutes > 60 || r.Minutes%5 != 0 || seen[r] {
					t.Fatalf("reminder %+v: not allowed, or twice", r)
				}
				seen[r] = true
				slots[r.Minutes]++
			}
		}
		if want := map[bool]int{false: 12, true: 1}[five]; len(slots) != want || slots[5] == 0 {
			t.Errorf("five=%v uses the slots %v", five, slots)
		}
	}
}

func TestSoonLeavesTimeToReserve(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var asked url.Values
	answer := `{"templates":[{"id":"3","opens_at":"2026-11-20T12:07:00Z"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query()
		io.WriteString(w, answer)
	}))
	defer server.Close()
	c := NewClient(server.URL, "dbk_x")
	d, ok, err := c.Soon(t.Context(), now)
	if err != nil || !ok || d.ID != "3" || !d.OpensAt.Equal(now.Add(7*time.Minute)) {
		t.Errorf("%+v %v %v", d, ok, err)
	}
	if asked.Get("from") != "2026-11-20T12:06:00Z" || asked.Get("state") != "scheduled" || asked.Get("order") != "asc" {
		t.Errorf("asked for %v", asked)
	}
	answer = `{"templates":[]}`
	if d, ok, err := c.Soon(t.Context(), now); ok || err != nil {
		t.Errorf("found %+v in an empty list (%v)", d, err)
	}
}

func TestCallWaitsWhenAskedTo(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if calls++; calls == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		json.NewEncoder(w).Encode(map[string]string{"id": string(body)})
	}))
	defer server.Close()
	began := time.Now()
	var d Drop
	err := NewClient(server.URL, "dbk_x").call(t.Context(), request{method: "POST", path: "/x", body: strings.NewReader("7")}, &d)
	if err != nil || d.ID != "7" || calls != 2 {
		t.Errorf("%v, %+v after %d calls: the body must be sent again", err, d, calls)
	}
	if waited := time.Since(began); waited < time.Second {
		t.Errorf("waited %v instead of the second it was asked to", waited)
	}
}

func TestCallReportsTheProblem(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, `{"code":"already_due","detail":"too late"}`)
	}))
	defer server.Close()
	err := NewClient(server.URL, "dbk_x").call(t.Context(), request{method: "POST", path: "/x"}, nil)
	if err == nil || err.Error() != "answer 409 already_due: too late" {
		t.Errorf("error %v", err)
	}
}

func TestToken(t *testing.T) {
	now := time.Now()
	issuer := Issuer{Secret: "a secret of some length, as it should be", Name: "shop", Audience: "drops"}
	signed, err := issuer.Token(FirstUser, now, time.Hour)
	musttest.OK(t, err)
	key := jwt.WithKey(jwa.HS256(), []byte(issuer.Secret))
	token, err := jwt.Parse([]byte(signed), key, jwt.WithIssuer("shop"), jwt.WithAudience("drops"))
	musttest.OK(t, err)
	if sub, _ := token.Subject(); sub != "1001" {
		t.Errorf("subject %q", sub)
	}
	late := jwt.WithClock(jwt.ClockFunc(func() time.Time { return now.Add(2 * time.Hour) }))
	if _, err := jwt.Parse([]byte(signed), key, late); err == nil {
		t.Error("the token does not expire")
	}
}
