package console

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"dropbell/adapters/oidc"
	"dropbell/adapters/oidctest"
	"dropbell/domain/staff"
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

func (g *rig) flush() {
	g.Helper()
	g.must(g.Security.Flush(g.Context()))
}

// authenticator gives the browser a security key that always agrees.
func (b *tab) authenticator() {
	b.Helper()
	b.do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		if _, err := chromedp.Call(ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return chromedp.Void{}, err
		}
		_, err := chromedp.Call(ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
			Options: &webauthn.VirtualAuthenticatorOptions{Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
				HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true}})
		return chromedp.Void{}, err
	})
}

// linkShown returns the path of the link that a member's page shows once.
func (b *browser) linkShown(page string) string {
	b.Helper()
	a := b.get(page).is(200).has("It is shown this once.")
	link := html.UnescapeString(between(a.body, "<code>", "</code>"))
	u, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(link, b.PublicURL+"/password?token=") {
		b.Fatalf("the link %q, %v", link, err)
	}
	return u.RequestURI()
}

func memberTyped(email, role string) url.Values {
	return url.Values{"email": {email}, "name": {"Ada"}, "role": {role}, "shops": {"10, 11"}}
}

// shownSecret is the secret that the page shows for an authenticator app.
func (a answer) shownSecret() string {
	a.Helper()
	m := regexp.MustCompile(`data-copy="([A-Z2-7 ]+)"`).FindStringSubmatch(a.body)
	if m == nil {
		a.Fatalf("%s: no secret in\n%s", a.what, a.text())
	}
	return strings.ReplaceAll(m[1], " ", "")
}

var recoveryForm = regexp.MustCompile(`<code>([a-z2-7]{4}(?:-[a-z2-7]{4}){3})</code>`)

// enrol adds an authenticator app and returns its secret and the recovery codes.
func (b *browser) enrol() (secret string, recovery []string) {
	b.Helper()
	secret = b.get("/account/security/app").is(200).shownSecret()
	b.post("/account/security/app", url.Values{"name": {"phone"}, "passcode": {b.code(secret)}}).to("/account/security")
	for _, m := range recoveryForm.FindAllStringSubmatch(b.get("/account/security").is(200).has("phone").body, -1) {
		recovery = append(recovery, m[1])
	}
	if len(recovery) != staff.RecoveryCodes {
		b.Fatalf("%d recovery codes are shown", len(recovery))
	}
	return secret, recovery
}

// code is what an authenticator app shows now.
func (g *rig) code(secret string) string {
	g.Helper()
	code, err := totp.GenerateCode(secret, g.now())
	g.must(err)
	return code
}

func (b *browser) try(email, pass, to string) answer {
	b.Helper()
	return b.post("/signin", url.Values{"email": {email}, "password": {pass}, "return": {to}})
}

// door is a console beside an identity provider.
type door struct {
	*rig
	there  *oidctest.Provider
	member staff.Member
}

func newDoor(t *testing.T, change ...func(*Deps)) *door {
	t.Helper()
	d := &door{}
	d.rig = newRig(t, append([]func(*Deps){func(deps *Deps) {
		d.there = oidctest.New(t, deps.Now)
		deps.Access.SingleSignOn = oidc.New(oidc.Options{Issuer: d.there.Issuer(), ClientID: oidctest.ClientID,
			ClientSecret: oidctest.ClientSecret, PublicURL: deps.PublicURL, Now: deps.Now})
	}}, change...)...)
	d.member = d.hire(staff.Viewer)
	d.there.Says("email", strings.ToUpper(d.member.Email))
	return d
}

// agree begins in the browser b and returns where the provider sends it back to.
func (d *door) agree(b *browser, to string) string {
	b.Helper()
	a := b.get("/signin/oidc?return=" + url.QueryEscape(to)).is(http.StatusSeeOther)
	return d.there.Agree(a.header.Get("Location")).RequestURI()
}

func (d *door) signIns() (n int) {
	d.Helper()
	d.must(d.sql.QueryRow(d.Context(), `select count(*) from sign_ins`).Scan(&n))
	return n
}

// refusedThere comes back from the provider with an error.
func (d *door) refusedThere(b *browser, code string) {
	u, err := url.Parse(d.agree(b, "/"))
	d.must(err)
	b.get("/signin/oidc/callback?error=" + url.QueryEscape(code) + "&state=" + u.Query().Get("state")).is(422)
}
