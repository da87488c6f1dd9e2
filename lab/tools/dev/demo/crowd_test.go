package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// TestCrowds: a rush sells out between one and four minutes after the opening; a
// moderate crowd leaves coupons for the visitor of the demo. Both end by themselves, are the same
// each time, and differ from drop to drop.
func TestCrowds(t *testing.T) {
	rush := Drop{ID: "1", Stock: 1200, Threshold: 10000}
	list := visits(rush, Rush, SoonSpread.bookings("1"))
	if len(list) != 1380 || !reflect.DeepEqual(list, visits(rush, Rush, SoonSpread.bookings("1"))) {
		t.Fatalf("%d visits, or others the second time", len(list))
	}
	if other := visits(Drop{ID: "65", Stock: 1200}, Rush, SoonSpread.bookings("65")); other[0].user == list[0].user && other[1].user == list[1].user {
		t.Error("two drops have the same crowd")
	}
	if last := list[rush.Stock-1].claim; last < time.Minute || last > 4*time.Minute {
		t.Errorf("sold out after %v", last)
	}
	users, follow, buy, end := map[int64]bool{}, 0, 0, time.Duration(0)
	for _, v := range list {
		if v.user <= FirstUser || v.user > LastUser || users[v.user] {
			t.Fatalf("user %d: outside, first, or twice", v.user)
		}
		users[v.user] = true
		if v.channel != "" {
			follow++
		}
		if v.buys {
			buy++
		}
		if v.amount < rush.Threshold || v.follow > 265*time.Second {
			t.Fatalf("%+v", v)
		}
		end = max(end, v.claim+v.lock+v.settle+v.back)
	}
	if follow < 300 || buy < 450 || end > 25*time.Minute {
		t.Errorf("%d follow a link, %d buy, the last is done after %v", follow, buy, end)
	}
	early := 0
	moderate := visits(Drop{ID: "7", Stock: 50}, Moderate, nil)
	for _, v := range moderate {
		if v.claim < time.Minute {
			early++
		}
	}
	if early != 30 || len(moderate) != 40 {
		t.Errorf("of 50 coupons, %d are claimed in the first minute and %d altogether", early, len(moderate))
	}
}

// server is as much of the API as a crowd needs, with a drop behind the gate.
type server struct {
	t      *testing.T
	mu     sync.Mutex
	stock  int
	claims map[string]int // requests by idempotency key
	steps  map[string]int
	list   []Drop
	made   []Drop
	booked int
	links  int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch step := strings.TrimPrefix(r.URL.Path, "/api/v1"); {
	case step == "/claims":
		token, err := jwt.Parse([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")), jwt.WithKey(jwa.HS256(), []byte(secret)))
		if err != nil {
			s.t.Errorf("a claim without a user's token: %v", err)
			return
		}
		user, _ := token.Subject()
		key := r.Header.Get("Idempotency-Key")
		s.claims[key]++
		switch {
		case s.claims[key] > 1:
			fmt.Fprintf(w, `{"state":"issued","coupon_id":"%s"}`, user)
		case s.stock == 0:
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"code":"sold_out"}`)
		default:
			s.stock--
			w.WriteHeader(http.StatusAccepted)
			io.WriteString(w, `{"state":"accepted"}`)
		}
	case strings.HasPrefix(step, "/coupons/"):
		s.steps[step[strings.LastIndexByte(step, '/')+1:]]++
		io.WriteString(w, `{}`)
	case strings.HasPrefix(step, "/d/"):
		s.links++
	case step == "/reservations":
		s.booked++
	case r.Method == http.MethodPost && step == "/admin/templates":
		var d Drop
		json.NewDecoder(r.Body).Decode(&d)
		d.ID, d.State = "129", "draft"
		s.made = append(s.made, d)
		json.NewEncoder(w).Encode(d)
	case r.Method == http.MethodGet && step == "/admin/templates":
		from, _ := time.Parse(time.RFC3339, r.FormValue("from"))
		to, _ := time.Parse(time.RFC3339, r.FormValue("to"))
		found := []Drop{}
		for _, d := range s.list {
			if !d.OpensAt.Before(from) && d.OpensAt.Before(to) {
				found = append(found, d)
			}
		}
		json.NewEncoder(w).Encode(map[string]any{"templates": found})
	default:
		io.WriteString(w, `{}`)
	}
}

const secret = "a secret of some length, as it should be"

func newServer(t *testing.T, list ...Drop) (*server, *Live) {
	t.Helper()
	s := &server{t: t, claims: map[string]int{}, steps: map[string]int{}, list: list}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return s, &Live{Crowd: Crowd{Client: NewClient(web.URL, "dbk_x"), Tokens: Issuer{Secret: secret}, Faster: 10000,
		Link: func(drop string, user int64, channel string) string {
			return fmt.Sprintf("%s/d/%s-%d-%s", web.URL, drop, user, channel)
		}},
		Moderately: "shop", Say: t.Logf, followed: map[string]bool{}, came: map[string]bool{}}
}

// TestCrowdComes: the shoppers of a drop claim with their own tokens, repeat a claim that is not
// written yet, and some buy, give up or return what they bought.
func TestCrowdComes(t *testing.T) {
	d := Drop{ID: "3", Shop: "20", Name: "shop", State: "scheduled", Stock: 50, OpensAt: time.Now()}
	s, l := newServer(t, d)
	s.stock = 35
	came := l.Come(t.Context(), d, Moderate, nil)
	if came.Claimed.Load() != 35 || came.Refused.Load() != 5 || came.Failed.Load() != 0 || len(s.claims) != 40 {
		t.Errorf("%v, %d failed, of %d claims", came, came.Failed.Load(), len(s.claims))
	}
	if n := came.Paid.Load() + came.Released.Load(); n < 4 || int(n) != s.steps["lock"] || int(came.Paid.Load()) != s.steps["confirm"] {
		t.Errorf("%v and the steps %v", came, s.steps)
	}
	late := d
	late.OpensAt = time.Now().Add(-10 * time.Second)
	if came := l.Come(t.Context(), late, Moderate, nil); came.Claimed.Load()+came.Refused.Load() != 0 {
		t.Errorf("shoppers of the past came: %v", came)
	}
}

// TestLive: links are followed before the opening and a crowd comes to it, once, to the demo's
// drops alone; a drop is added if none of the demo's is ahead.
func TestLive(t *testing.T) {
	now := time.Now()
	soon := Drop{ID: "65", Shop: shop, Name: menu[2].Name, State: "scheduled", Stock: 240, OpensAt: now.Add(4 * time.Minute)}
	open := Drop{ID: "3", Shop: "20", Name: "shop", State: "open", Stock: 50, OpensAt: now}
	foreign := Drop{ID: "4", Shop: shop, Name: "somebody's", State: "open", Stock: 50, OpensAt: now}
	s, l := newServer(t, soon, open, foreign)
	s.stock = 100
	l.Faster = 1_000_000
	ctx := t.Context()
	var crowds sync.WaitGroup
	soon.OpensAt = now.Add(25 * time.Second)
	s.list[0] = soon
	l.Link = nil // the opening is too far away to wait for
	for range 2 {
		if err := l.look(ctx, now, &crowds); err != nil {
			t.Fatal(err)
		}
	}
	crowds.Wait()
	if len(s.claims) != 40 || s.links != 0 {
		t.Errorf("%d claims, %d links", len(s.claims), s.links)
	}
	if err := l.ahead(ctx, now); err != nil || len(s.made) != 0 {
		t.Errorf("made %v (%v) although %q opens", s.made, err, soon.Name)
	}
	s.list = s.list[1:]
	if err := l.ahead(ctx, now); err != nil || len(s.made) != 1 || s.booked != remindedLive {
		t.Fatalf("made %v with %d reservations (%v)", s.made, s.booked, err)
	}
	if left := s.made[0].OpensAt.Sub(now); left < notice || left > notice+every {
		t.Errorf("it opens in %v", left)
	}
	if _, _, ours := l.kind(s.made[0]); !ours {
		t.Errorf("no crowd comes to %+v", s.made[0])
	}
}

// TestLinksAreFollowed: some of the shoppers with a reminder follow its link before the opening.
func TestLinksAreFollowed(t *testing.T) {
	s, l := newServer(t)
	d := Drop{ID: "65", Stock: 240, OpensAt: time.Now().Add(time.Second / 2)}
	l.Follow(t.Context(), d, Rush, nextSpread.bookings(d.ID))
	if s.links < 60 {
		t.Errorf("%d links are followed", s.links)
	}
}

// The second version of the tested campaign is read more often than the first, most of it within the first quarter of an hour. A recipient
// reads or does not whatever the other recipients are.
func TestReadersOfTheTestedCampaign(t *testing.T) {
	var list []recipient
	for id := FirstUser; id < FirstUser+1200; id++ {
		list = append(list, recipient{strconv.Itoa(id), []string{"a", "b"}[id%2]})
	}
	all := readings(list)
	var n [2]int
	early := 0
	for i, one := range all {
		n[one.variant]++
		if one.after < 15*time.Minute {
			early++
		}
		if i > 0 && one.after < all[i-1].after {
			t.Fatalf("reader %d is out of order", i)
		}
	}
	if n[0] < 80 || n[1] < n[0]+30 || early < len(all)*8/10 {
		t.Errorf("%v readers, %d of them early", n, early)
	}
	if few := readings(list[:100]); !slices.ContainsFunc(all, func(r reading) bool { return r == few[0] }) {
		t.Errorf("%+v does not read among more recipients", few[0])
	}
}
