package console

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
)

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

// A passkey is enrolled, answers for the second factor of a sign-in and for a
// confirmation, and works on no other site.
func TestPasskeyInTheBrowser(t *testing.T) {
	g := newRig(t, demanding)
	m := g.hire(staff.Admin)
	b := newTab(t)
	b.authenticator()
	here := strings.Replace(g.server.URL, "127.0.0.1", "localhost", 1)
	b.open(here + "/signin?return=%2Fkeys")
	signIn := func() {
		b.fill("#f-email", m.Email)
		b.fill("#f-password", password)
		b.click(`button.is-wide`)
	}
	signIn()
	b.sees("h1", "Add a second factor")
	b.press("main", "Add a passkey")
	b.sees("h1", "Add a passkey")
	b.fill("#f-name", "laptop")
	b.click("[data-passkey-ask]")
	b.sees("main", "laptop", "Your recovery codes")
	b.press("main", "I have saved them; continue")
	b.sees("h1", "API keys")

	b.open(here + "/account")
	evaluate[chromedp.Void](b, `document.querySelector("form[action='/signout']").submit()`)
	b.sees("h1", "Sign in")
	signIn()
	b.sees("h1", "Second factor")
	b.accessible("the second step")
	b.click("[data-passkey-ask]")
	b.sees("h1", "Overview")

	// A form that comes too late is sent again by the browser itself.
	b.open(here + "/keys/new")
	b.fill("#f-name", "till")
	b.click(`input[name=scopes][value=read]`)
	g.wait(staff.ConfirmedFor)
	b.press("form", "Create key")
	b.sees("h1", "Confirm that it is you")
	b.click("[data-passkey-ask]")
	b.sees("main", "till", "dbk_")

	if n := g.number(`select counter from second_factors where kind = 'passkey' and name = 'laptop'`); n != 2 {
		t.Errorf("used %d times", n)
	}
}
