package stories

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"dropbell/musttest"
)

// Each begins with letters that can be looked for quickly.
var (
	inlineStyle   = regexp.MustCompile(` style=`)
	inlineHandler = regexp.MustCompile(` on[a-z]+=`)
	bareScript    = regexp.MustCompile(`<script(?: |>)`)
	idAttribute   = regexp.MustCompile(` id="([^"]+)"`)
	htmx2         = regexp.MustCompile(` hx-(ext|vars|params|prompt|disabled-elt|history-elt)=| (sse|ws)-(connect|swap)=| hx-on:htmx:[a-z]+[A-Z]`)
	halfWidth     = regexp.MustCompile(`\p{Han}(?:</a>|</strong>)?(?:: | \()[^<]{0,20}`)
	rawKey        = regexp.MustCompile(`>\s*[a-z_]+\.[a-z_]+(\.[a-z_]+)?\s*<`)
)

// Each story is rendered in every language. Every second story has the dark theme, which changes
// only an attribute of the page. No page may contain content that the content security policy
// blocks, or attributes of an older htmx.
func TestStories(t *testing.T) {
	book, err := NewBook()
	musttest.OK(t, err)
	for i, s := range All() {
		for _, look := range Looks() {
			if look.Theme != [...]string{"light", "dark"}[i%2] {
				continue
			}
			var b bytes.Buffer
			if err := s.Page.Render(book.Context(t.Context(), s, look, "nonce"), &b); err != nil {
				t.Errorf("%s: %v", s.Name, err)
				continue
			}
			page := b.String()
			for what, found := range map[string]string{"an inline style": inlineStyle.FindString(page), "an inline handler": inlineHandler.FindString(page),
				"an attribute of htmx 2": htmx2.FindString(page), "a bare key": rawKey.FindString(strings.ReplaceAll(page, "<code>", "<code"))} {
				if found != "" && !strings.HasPrefix(s.Name, "audit/") && !strings.HasPrefix(s.Name, "dead/") {
					t.Errorf("%s %v: %s: %s", s.Name, look, what, found)
				}
			}
			if half := halfWidth.FindString(page); half != "" && look.Locale == "zh-CN" && !strings.Contains(half, ": http") { // an address in a text of a mail
				t.Errorf("%s has half-width punctuation after a Chinese character: %s", s.Name, half)
			}
			if n := len(bareScript.FindAllString(page, -1)); n != strings.Count(page, `<script nonce="nonce"`) {
				t.Errorf("%s: a script without nonce", s.Name)
			}
			if strings.Count(page, "<h1") != 1 {
				t.Errorf("%s: %d main headings", s.Name, strings.Count(page, "<h1"))
			}
			oneAction(t, s.Name, page)
			seen := map[string]bool{}
			for _, m := range idAttribute.FindAllStringSubmatch(page, -1) {
				if seen[m[1]] {
					t.Errorf("%s: the id %q twice", s.Name, m[1])
				}
				seen[m[1]] = true
			}
		}
	}
}

var (
	headActions = regexp.MustCompile(`(?s)<div class="page-head">.*?<div class="actions">(.*?)</div>\s*</div>`)
	headButton  = regexp.MustCompile(`class="button[^"]*"`)
)

// oneAction checks the head of a page: it may have at most one primary action, as the last action,
// and no red action. A step that cannot be undone is red in its dialog only.
func oneAction(t *testing.T, name, page string) {
	t.Helper()
	for _, m := range headActions.FindAllStringSubmatch(page, -1) {
		buttons := headButton.FindAllString(m[1], -1)
		for i, b := range buttons {
			if strings.Contains(b, "is-danger") || strings.Contains(b, "is-primary") && i != len(buttons)-1 {
				t.Errorf("%s: button %d of %d in the head of the page is %s", name, i+1, len(buttons), b)
			}
		}
	}
}

// The page of a user shows times of several shops. Each time names its zone, and all times are in
// the same zone.
func TestTimesOfAUserNameTheirZone(t *testing.T) {
	book, err := NewBook()
	musttest.OK(t, err)
	p, zones := busyUser(), map[string]bool{}
	for i := range p.Coupons {
		p.Coupons[i].ShopTimezone = "Europe/Berlin"
	}
	var b bytes.Buffer
	musttest.OK(t, p.Page().Render(book.Context(t.Context(), Story{}, Looks()[0], "nonce"), &b))
	for _, m := range regexp.MustCompile(`<time datetime[^>]*>([^<]*)(?:<span class="zone">([^<]*))?`).FindAllStringSubmatch(b.String(), -1) {
		zones[m[2]] = true
		if m[2] == "" {
			t.Errorf("in which zone is %s?", m[1])
		}
	}
	if len(zones) != 1 {
		t.Errorf("times are in the zones %v", zones)
	}
}

// A time without its zone may be read as a time of the reader's own clock. Each page with times
// names their zone at least once.
func TestPagesWithTimesNameTheirZone(t *testing.T) {
	book, err := NewBook()
	musttest.OK(t, err)
	times := regexp.MustCompile(`<time datetime="[^"]*" data-local>`)
	zone := regexp.MustCompile(`Beijing time|Berlin time|UTC`)
	for _, s := range All() {
		var b bytes.Buffer
		musttest.OK(t, s.Page.Render(book.Context(t.Context(), s, Looks()[0], "nonce"), &b))
		if times.Match(b.Bytes()) && !zone.Match(b.Bytes()) {
			t.Errorf("%s shows times and no zone", s.Name)
		}
	}
}
