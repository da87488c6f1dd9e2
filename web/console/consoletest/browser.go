package consoletest

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"dropbell/adapters/localstack"
	"dropbell/domain/staff"
)

// Browser is a browser without scripts.
type Browser struct {
	*Fixture
	Client *http.Client
	Header http.Header
	// Live, if set, is listened to instead of a template's page.
	Live string
}

// Browser returns a browser without a sign-in.
func (g *Fixture) Browser() *Browser {
	jar, err := cookiejar.New(nil)
	g.Must(err)
	return &Browser{Fixture: g, Header: http.Header{}, Client: &http.Client{Jar: jar, Timeout: localstack.Patience(g.T),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// As returns the browser of a signed-in member with this role.
func (g *Fixture) As(role staff.Role, shops ...int64) *Browser {
	g.Helper()
	b := g.Browser()
	b.SignIn(g.Hire(role, shops...).Email)
	return b
}

// SignIn signs the member with the address in.
func (b *Browser) SignIn(email string) {
	b.Helper()
	b.Post("/signin", url.Values{"email": {email}, "password": {Password}}).Is(http.StatusSeeOther)
}

// Answer is the response to a request.
type Answer struct {
	*testing.T
	What   string
	Status int
	Header http.Header
	Body   string
}

// Do sends a request; form may be nil.
func (b *Browser) Do(method, path string, form url.Values) Answer {
	b.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.Context(), method, b.Server.URL+path, body)
	b.Must(err)
	req.Header = b.Header.Clone()
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := b.Client.Do(req)
	b.Must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	b.Must(err)
	return Answer{b.T, method + " " + path, res.StatusCode, res.Header, string(text)}
}

// Get loads a page.
func (b *Browser) Get(path string) Answer { b.Helper(); return b.Do(http.MethodGet, path, nil) }

// Post sends a form, an empty one for nil.
func (b *Browser) Post(path string, form url.Values) Answer {
	b.Helper()
	if form == nil {
		form = url.Values{}
	}
	return b.Do(http.MethodPost, path, form)
}

// Version returns the version in the confirmation of publishing the page's
// template or campaign.
func (b *Browser) Version(page string) string {
	b.Helper()
	return b.Get(page + "/publish").Is(http.StatusOK).Field("version")
}

// Is ends the test if the answer has another status.
func (a Answer) Is(status int) Answer {
	a.Helper()
	if a.Status != status {
		a.Fatalf("%s: status %d, want %d\n%s", a.What, a.Status, status, a.Text())
	}
	return a
}

// To ends the test if the answer leads elsewhere.
func (a Answer) To(path string) Answer {
	a.Helper()
	a.Is(http.StatusSeeOther)
	if got := a.Header.Get("Location"); got != path {
		a.Fatalf("%s: leads to %q, want %q", a.What, got, path)
	}
	return a
}

// Has fails the test for each text that is missing.
func (a Answer) Has(words ...string) Answer {
	a.Helper()
	for _, w := range words {
		if !strings.Contains(a.Body, w) && !strings.Contains(a.Text(), w) {
			a.Errorf("%s: %q is missing in\n%s", a.What, w, a.Text())
		}
	}
	return a
}

// HasNot fails the test for each text that is there.
func (a Answer) HasNot(words ...string) Answer {
	a.Helper()
	for _, w := range words {
		if strings.Contains(a.Body, w) {
			a.Errorf("%s: %q should not be in\n%s", a.What, w, a.Text())
		}
	}
	return a
}

var (
	headOrMarkup = regexp.MustCompile(`(?s)<head>.*?</head>|<[^>]*>`)
	blank        = regexp.MustCompile(`\s+`)
)

// Text is the visible text.
func (a Answer) Text() string {
	return strings.TrimSpace(blank.ReplaceAllString(headOrMarkup.ReplaceAllString(a.Body, " "), " "))
}

var inputPattern = regexp.MustCompile(`<(?:input|textarea|select)[^>]*\bname="([^"]+)"[^>]*>`)

// Field returns the value of a field of the page's form.
func (a Answer) Field(name string) string {
	a.Helper()
	m := regexp.MustCompile(`<input[^>]*\bname="` + regexp.QuoteMeta(name) + `"[^>]*\bvalue="([^"]*)"`).FindStringSubmatch(a.Body)
	if m == nil {
		a.Fatalf("%s: there is no field %q among %v", a.What, name, inputPattern.FindAllStringSubmatch(a.Body, -1))
	}
	return m[1]
}
