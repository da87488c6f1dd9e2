package access_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// A passkey is enrolled, serves as the second factor of a sign-in and for a confirmation, and works
// on no other site.
func TestPasskeyInTheBrowser(t *testing.T) {
	g := consoletest.New(t, demanding)
	m := g.Hire(staff.Admin)
	b := consoletest.NewTab(t)
	b.Authenticator()
	here := strings.Replace(g.Server.URL, "127.0.0.1", "localhost", 1)
	b.Open(here + "/signin?return=%2Fkeys")
	signIn := func() {
		b.Fill("#f-email", m.Email)
		b.Fill("#f-password", consoletest.Password)
		b.Click(`button.is-wide`)
	}
	signIn()
	b.Sees("h1", "Add a second factor")
	b.Press("main", "Add a passkey")
	b.Sees("h1", "Add a passkey")
	b.Fill("#f-name", "laptop")
	b.Click("[data-passkey-ask]")
	b.Sees("main", "laptop", "Your recovery codes")
	b.Press("main", "I have saved them")
	b.Sees("h1", "API keys")

	b.Open(here + "/account")
	consoletest.Evaluate[chromedp.Void](b, `document.querySelector("form[action='/signout']").submit()`)
	b.Sees("h1", "Sign in")
	signIn()
	b.Sees("h1", "Second factor")
	b.Accessible("the second step")
	b.Click("[data-passkey-ask]")
	b.Sees("h1", "Overview")

	// A form that is sent after the confirmation has expired is sent again by the browser itself.
	b.Open(here + "/keys/new")
	b.Fill("#f-name", "till")
	b.Click(`input[name=scopes][value=read]`)
	g.Wait(staff.ConfirmedFor)
	b.Press("form", "Create key")
	b.Sees("h1", "Confirm that it is you")
	b.Click("[data-passkey-ask]")
	b.Sees("main", "till", "dbk_")

	if n := g.Number(`select counter from second_factors where kind = 'passkey' and name = 'laptop'`); n != 2 {
		t.Errorf("used %d times", n)
	}
}
