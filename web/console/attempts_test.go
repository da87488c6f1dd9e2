package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// from makes the console believe that requests come from the address that a
// header names, as behind a proxy.
func (g *rig) from() {
	next := g.Console
	g.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ip := r.Header.Get("Test-From"); ip != "" {
			r.RemoteAddr = ip + ":1234"
		}
		next.ServeHTTP(w, r)
	})
}

func (g *rig) at(ip string) *browser {
	b := g.browser()
	b.header.Set("Test-From", ip)
	return b
}

func guarded(network, here, all int) func(*Deps) {
	return func(d *Deps) {
		d.Access.Throttle, d.Access.Guesses = shell.NewThrottle(network, 10*time.Second, d.Now), shell.NewThrottle(here, 10*time.Minute, d.Now)
		d.Access.AllGuesses = shell.NewThrottle(all, time.Minute, d.Now)
	}
}

// Who guesses from one address keeps the owner out of nothing but that address.
func TestGuessingKeepsNobodyOut(t *testing.T) {
	g := newRig(t, guarded(5, 20, 100))
	g.from()
	m := g.hire(staff.Viewer)
	thief, guessed := g.at("192.0.2.66"), 0
	for range 400 {
		if thief.try(m.Email, "guess", "/").status == http.StatusUnprocessableEntity {
			guessed++
		}
		g.wait(10 * time.Second)
	}
	if guessed > 30 {
		t.Errorf("%d guesses in an hour from one address", guessed)
	}
	g.at("192.0.2.1").try(m.Email, password, "/").to("/")
}

// Guessing from everywhere is bounded for an account, of nobody too, and its
// owner comes in from where they have been lately.
func TestAnAccountIsBoundedEverywhere(t *testing.T) {
	g := newRig(t, guarded(5, 20, 10))
	g.from()
	m := g.hire(staff.Viewer)
	g.at("2001:db8:1:2::1").try(m.Email, password, "/").to("/")
	for _, email := range []string{m.Email, "nobody@example.com"} {
		guessed := 0
		for i := range 30 {
			if g.at("192.0.2."+string(rune('0'+i/10))+string(rune('0'+i%10))).try(email, "guess", "/").status == http.StatusUnprocessableEntity {
				guessed++
			}
		}
		if guessed != 10 {
			t.Errorf("%d guesses for %s", guessed, email)
		}
	}
	g.at("192.0.2.200").try(m.Email, password, "/").is(http.StatusTooManyRequests)
	g.at("2001:db8:1:2::99").try(m.Email, password, "/").to("/")
	g.exec(`update sign_ins set created_at = created_at - interval '31 days'`)
	g.at("2001:db8:1:2::99").try(m.Email, password, "/").is(http.StatusTooManyRequests)
	g.wait(61 * time.Second)
	g.at("192.0.2.200").try(m.Email, password, "/").to("/")
}

// Colleagues behind one address are not guessing.
func TestColleaguesBehindOneAddress(t *testing.T) {
	g := newRig(t, guarded(5, 20, 100))
	for range 8 {
		g.browser().try(g.hire(staff.Viewer).Email, password, "/").to("/")
	}
	m := g.hire(staff.Viewer)
	for range 5 {
		g.browser().try(m.Email, "wrong", "/").is(http.StatusUnprocessableEntity)
	}
	g.browser().try(m.Email, password, "/").is(http.StatusTooManyRequests)
}

// comparing counts how many passwords are compared.
type comparing struct {
	quick
	n *int
}

func (c comparing) Matches(ctx context.Context, p, hash string) (bool, error) {
	*c.n++
	return c.quick.Matches(ctx, p, hash)
}

// Who signs in and out, and whose account is being guessed, is in the audit
// log, once; what is typed of others is not.
func TestSignInsAreRecorded(t *testing.T) {
	n := 0
	g := newRig(t, guarded(3, 20, 100), func(d *Deps) { d.Staff.Passwords = comparing{n: &n} })
	admin := g.as(staff.Admin)
	m := g.hire(staff.Viewer)
	b := g.browser()
	b.signIn(m.Email)
	b.post("/signout", nil).to("/signin")
	n = 0
	for range 10 {
		b.try(m.Email, "guess", "/")
		b.try("stranger@example.com", "guess", "/")
	}
	g.Console.Close() // waits for what is being recorded
	if n != 3 {
		t.Errorf("%d passwords were compared", n)
	}
	for action, want := range map[string]int{"staff.sign_in": 1, "staff.sign_out": 1, "staff.sign_in_slowed": 1} {
		var got int
		g.must(g.sql.QueryRow(t.Context(), `select count(*) from audit where action = $1 and object_id = $2`, action, fmt.Sprint(m.ID)).Scan(&got))
		if got != want {
			t.Errorf("%s is recorded %d times", action, got)
		}
	}
	admin.get("/audit?kind=staff").is(200).has("signed in:", "signed out:", "slowed down attempts to sign in as").hasNot("stranger@")
	admin.get("/").is(200).hasNot("signed in:")
}

// An admin sees where a member is signed in and can end it.
func TestSignAMemberOut(t *testing.T) {
	g := newRig(t)
	admin, m := g.as(staff.Admin), g.hire(staff.Viewer)
	page := "/staff/2"
	admin.get(page).is(200).has("Signed in nowhere.").hasNot("Sign out everywhere")
	b := g.browser()
	b.header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0")
	b.signIn(m.Email)
	admin.get(page).is(200).has("Firefox, Linux", "127.0.0.1", "Sign out everywhere", "since", "last used")
	admin.post(page+"/signout", nil).to(page)
	b.get("/").to("/signin")
	admin.get(page).is(200).has("1 sign-in has been ended.", "Signed in nowhere.")
	admin.get("/audit?kind=staff&action=staff.revoke_sign_in").is(200).has("ended sign-ins of")
	admin.post("/staff/99/signout", nil).is(http.StatusNotFound)
	g.as(staff.Operator).post(page+"/signout", nil).is(http.StatusForbidden)
}

// Two admins, one channel: the second learns what the first has said.
func TestPausingAPausedChannel(t *testing.T) {
	g := newRig(t)
	first, second := g.as(staff.Operator), g.as(staff.Admin)
	first.post("/channels/sms/pause", url.Values{"reason": {"the provider is down"}}).to("/channels")
	first.post("/channels/sms/pause", url.Values{"reason": {"the provider is down"}}).to("/channels")
	second.post("/channels/sms/pause", url.Values{"reason": {"mine"}}).is(http.StatusConflict).
		has("The operator has already paused it", "“the provider is down”", `mine`)
	settings, err := g.Settings.Settings(t.Context())
	g.must(err)
	if s := settings[2]; !s.Paused || s.PausedBy != "The operator" || s.PausedReason != "the provider is down" {
		t.Errorf("%+v", s)
	}
	if g.number(`select count(*) from audit where action = 'channel.pause'`) != 1 {
		t.Error("recorded twice")
	}
}

// The list counts days as the calendar does: in each campaign's own zone.
func TestCampaignsOfADay(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	b.post("/campaigns", campaignForm("name", "At home")).is(http.StatusSeeOther)
	b.post("/campaigns", campaignForm("name", "Abroad")).is(http.StatusSeeOther)
	g.exec(`insert into shops (number, name, timezone) values (31, 'NY', 'America/New_York')`)
	g.exec(`update campaigns set starts_at = '2031-12-01T04:30:00Z', ends_at = '2031-12-05T00:00:00Z'`) // 23:30 the day before in New York, noon in Shanghai
	g.exec(`update campaigns set shop_number = 31 where name = 'Abroad'`)
	b.get("/campaigns").is(200) // and what has been saved is said
	for day, want := range map[string]string{"2031-11-30": "Abroad", "2031-12-01": "At home"} {
		other := map[string]string{"Abroad": "At home", "At home": "Abroad"}[want]
		b.get("/campaigns?from=" + day + "&to=" + day).is(200).has(want).hasNot(other)
	}
	b.get("/campaigns?from=2031-11-30").is(200).has("Abroad", "At home")
	b.get("/campaigns?to=2031-11-30").is(200).has("Abroad").hasNot("At home")
	b.get("/campaigns?from=2031-12-02").is(200).hasNot("Abroad", "At home")
}
