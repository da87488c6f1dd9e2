package consoletest

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
	"dropbell/web/console"
)

// From makes the console take the client's address from a header, as behind a proxy.
func (g *Fixture) From() {
	next := g.Console
	g.Server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ip := r.Header.Get("Test-From"); ip != "" {
			r.RemoteAddr = ip + ":1234"
		}
		next.ServeHTTP(w, r)
	})
}

// At returns a browser whose requests come from the address ip, behind the proxy of
// [Fixture.From].
func (g *Fixture) At(ip string) *Browser {
	b := g.Browser()
	b.Header.Set("Test-From", ip)
	return b
}

// Flush stores the security events noted so far.
func (g *Fixture) Flush() {
	g.Helper()
	g.Must(g.Security.Flush(g.Context()))
}

// Authenticator gives the browser a security key that always agrees.
func (b *Tab) Authenticator() {
	b.Helper()
	b.Do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		if _, err := chromedp.Call(ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return chromedp.Void{}, err
		}
		_, err := chromedp.Call(ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
			Options: &webauthn.VirtualAuthenticatorOptions{Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
				HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true}})
		return chromedp.Void{}, err
	})
}

// LinkShown returns the path of the link that a member's page shows once.
func (b *Browser) LinkShown(page string) string {
	b.Helper()
	a := b.Get(page).Is(200).Has("It is shown only once.")
	link := html.UnescapeString(Between(a.Body, "<code>", "</code>"))
	u, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(link, b.PublicURL+"/password?token=") {
		b.Fatalf("the link %q, %v", link, err)
	}
	return u.RequestURI()
}

// MemberTyped is the form about a member.
func MemberTyped(email, role string) url.Values {
	return url.Values{"email": {email}, "name": {"Ada"}, "role": {role}, "shops": {"10, 11"}}
}

// ShownSecret is the secret that the page shows for an authenticator app.
func (a Answer) ShownSecret() string {
	a.Helper()
	m := regexp.MustCompile(`data-copy="([A-Z2-7 ]+)"`).FindStringSubmatch(a.Body)
	if m == nil {
		a.Fatalf("%s: no secret in\n%s", a.What, a.Text())
	}
	return strings.ReplaceAll(m[1], " ", "")
}

var recoveryForm = regexp.MustCompile(`<code>([a-z2-7]{4}(?:-[a-z2-7]{4}){3})</code>`)

// Enrol adds an authenticator app and returns its secret and the recovery codes.
func (b *Browser) Enrol() (secret string, recovery []string) {
	b.Helper()
	secret = b.Get("/account/security/app").Is(200).ShownSecret()
	b.Post("/account/security/app", url.Values{"name": {"phone"}, "passcode": {b.Code(secret)}}).To("/account/security")
	for _, m := range recoveryForm.FindAllStringSubmatch(b.Get("/account/security").Is(200).Has("phone").Body, -1) {
		recovery = append(recovery, m[1])
	}
	if len(recovery) != staff.RecoveryCodes {
		b.Fatalf("%d recovery codes are shown", len(recovery))
	}
	return secret, recovery
}

// Code returns the code that an authenticator app shows now.
func (g *Fixture) Code(secret string) string {
	g.Helper()
	code, err := totp.GenerateCode(secret, g.Now())
	g.Must(err)
	return code
}

// Try answers the form of the sign-in.
func (b *Browser) Try(email, pass, to string) Answer {
	b.Helper()
	return b.Post("/signin", url.Values{"email": {email}, "password": {pass}, "return": {to}})
}

// SignOn is a console together with an identity provider.
type SignOn struct {
	*Fixture
	There  *oidctest.Provider
	Member staff.Member
}

// NewSignOn returns a console with single sign-on, and its identity provider.
func NewSignOn(t *testing.T, change ...func(*console.Deps)) *SignOn {
	t.Helper()
	d := &SignOn{}
	d.Fixture = New(t, append([]func(*console.Deps){func(deps *console.Deps) {
		d.There = oidctest.New(t, deps.Now)
		deps.Access.SingleSignOn = oidc.New(oidc.Options{Issuer: d.There.Issuer(), ClientID: oidctest.ClientID,
			ClientSecret: oidctest.ClientSecret, PublicURL: deps.PublicURL, Now: deps.Now})
	}}, change...)...)
	d.Member = d.Hire(staff.Viewer)
	d.There.Says("email", strings.ToUpper(d.Member.Email))
	return d
}

// Agree begins the sign-in in the browser b and returns the address that the provider sends the
// browser back to.
func (d *SignOn) Agree(b *Browser, to string) string {
	b.Helper()
	a := b.Get("/signin/oidc?return=" + url.QueryEscape(to)).Is(http.StatusSeeOther)
	return d.There.Agree(a.Header.Get("Location")).RequestURI()
}

// SignIns counts the sign-ins that are open.
func (d *SignOn) SignIns() (n int) {
	d.Helper()
	d.Must(d.SQL.QueryRow(d.Context(), `select count(*) from sign_ins`).Scan(&n))
	return n
}

// RefusedThere returns from the provider with an error.
func (d *SignOn) RefusedThere(b *Browser, code string) {
	u, err := url.Parse(d.Agree(b, "/"))
	d.Must(err)
	b.Get("/signin/oidc/callback?error=" + url.QueryEscape(code) + "&state=" + u.Query().Get("state")).Is(422)
}
