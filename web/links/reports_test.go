package links_test

import (
	"cmp"
	"context"
	"errors"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/adapters/postgres"
	"dropbell/domain/campaign"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/domain/report"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/links"
)

var reportLinks = report.Links{Links: user.NewLinks(secret)}

// fakeReports has one report, behind link 1, and fails with err if set. language is the shop's.
type fakeReports struct {
	err            error
	language, name string
}

func (f *fakeReports) Book(context.Context, message.Place, int64) (*message.Book, error) {
	return message.NewBook([]message.Version{{Shop: 10, Key: message.Key{Kind: message.Settings}, Text: &message.Text{Shop: &message.Shop{Language: f.language}}}}), nil
}

func (f *fakeReports) Open(_ context.Context, token string) (report.Report, error) {
	id, err := reportLinks.Parse(token)
	if err == nil {
		err = f.err
	}
	if err == nil && id != 1 {
		err = report.ErrNoLink
	}
	opens := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	t := template.Template{ID: 7, ShopName: "Harbour <Tea>", ShopTimezone: "Asia/Shanghai", Stored: template.Closed,
		Spec: template.Spec{Name: "Moon & cake", Kind: template.AmountOff, AmountOff: 1000, Currency: "CNY", Stock: 10, OpensAt: opens, ClosesAt: opens.Add(time.Hour)}}
	t.Name = cmp.Or(f.name, t.Name)
	return report.Report{Figures: report.Figures{Template: t, Total: 10, Issued: 4}, Sales: claim.Curve{}, At: opens.Add(2 * time.Hour)}, err
}

func (f *fakeReports) serve(t *testing.T) string {
	pages := links.New(links.Deps{Links: user.NewLinks(secret), Channels: delivery.ChannelSetOf(delivery.Email), Now: still(), Log: slog.New(slog.DiscardHandler)})
	r := chi.NewRouter()
	r.Mount(links.ReportPrefix, links.NewReports(pages, reportLinks, f, f, "https://coupons.example/"))
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return server.URL + report.LinkPath
}

// The report is shown without signing in, is not indexed, cached or sent on as a referrer, and runs
// no scripts but its own.
func TestSharedReport(t *testing.T) {
	base := (&fakeReports{}).serve(t)
	res, page := ask(t, http.MethodGet, base+reportLinks.Token(1), "", nil)
	if res.StatusCode != 200 || !strings.Contains(page, "Moon &amp; cake") || !strings.Contains(page, "Harbour &lt;Tea&gt;") || strings.Contains(page, "<form") || strings.Contains(page, `href="/`+"templates") {
		t.Errorf("%d: %s", res.StatusCode, page)
	}
	for name, want := range map[string]string{"X-Robots-Tag": "noindex", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Content-Security-Policy": "default-src 'none'; script-src 'nonce-"} {
		if got := res.Header.Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if !strings.Contains(page, `<meta name="robots" content="noindex"`) {
		t.Error("the page may be indexed")
	}
	if res, _ := ask(t, http.MethodHead, base+reportLinks.Token(1), "", nil); res.StatusCode != 200 {
		t.Errorf("a program that only asks: %d", res.StatusCode)
	}
}

// A preview of the link shows a picture that is made from the figures, in each language. Its address
// is the link's own, so it ends with the link.
func TestPictureOfASharedReport(t *testing.T) {
	base := (&fakeReports{}).serve(t)
	token := reportLinks.Token(1)
	_, page := ask(t, http.MethodGet, base+token, "", nil)
	for _, want := range []string{`property="og:image" content="https://coupons.example/r/` + token + `/picture.png"`, `property="og:title"`, `content="4 of 10 coupons given."`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s: %s", want, page)
		}
	}
	res, raw := ask(t, http.MethodGet, base+token+"/picture.png", "", nil)
	shown, err := png.Decode(strings.NewReader(raw))
	if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "image/png" || res.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v: %v", res.StatusCode, res.Header, err)
	}
	if size := shown.Bounds().Size(); size.X != droppages.PictureWidth || size.Y != droppages.PictureHeight {
		t.Errorf("size %v", size)
	}
	for name, bad := range map[string]string{"ended": reportLinks.Token(2), "nonsense": "x"} {
		if res, _ := ask(t, http.MethodGet, base+bad+"/picture.png", "", nil); res.StatusCode != http.StatusNotFound || res.Header.Get("Content-Type") == "image/png" {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
	}
}

// The picture, and the page for a program that names no language, are in the language of the shop, with
// its characters. A name with a letter that the fonts lack is left out, an emoji alone is.
func TestPictureInTheLanguageOfTheShop(t *testing.T) {
	token := reportLinks.Token(1)
	picture := func(f *fakeReports) string {
		_, raw := ask(t, http.MethodGet, f.serve(t)+token+"/picture.png", "", nil)
		return raw
	}
	english, chinese := picture(&fakeReports{}), picture(&fakeReports{language: "zh-CN"})
	if english == chinese {
		t.Error("the picture of a Chinese shop is in English")
	}
	if _, page := ask(t, http.MethodGet, (&fakeReports{language: "zh-CN"}).serve(t)+token, "", nil); !strings.Contains(page, `lang="zh-CN"`) {
		t.Error("the page of a Chinese shop is in English")
	}
	named, unnamed := picture(&fakeReports{language: "zh-CN", name: "月饼之夜，满 100 减 10"}), picture(&fakeReports{language: "zh-CN", name: "คืนขนม"})
	if named == chinese || named == unnamed {
		t.Error("the picture lacks a Chinese name")
	}
	if picture(&fakeReports{language: "zh-CN", name: "月饼之夜ค"}) != unnamed {
		t.Error("half a name is shown")
	}
	if picture(&fakeReports{language: "zh-CN", name: "月饼之夜，满 100 减 10 🥮"}) != named {
		t.Error("an emoji changes the picture")
	}
}

// Invalid links all look the same, and the page does not say why they are invalid.
func TestSharedReportRefused(t *testing.T) {
	base := (&fakeReports{}).serve(t)
	var first string
	for name, token := range map[string]string{"ended": reportLinks.Token(2), "nonsense": "x", "a campaign's": campaign.Links{Links: reportLinks.Links}.Token(campaign.Reader{CampaignID: 1}),
		"changed": strings.ToUpper(reportLinks.Token(1)), "hostile": "%00%ff", "long": strings.Repeat("A", 5000)} {
		res, page := ask(t, http.MethodGet, base+token, "", nil)
		page = page[strings.Index(page, "<main"):]
		if first == "" {
			first = page
		}
		if res.StatusCode != http.StatusNotFound || page != first || !strings.Contains(page, "expired or was revoked") {
			t.Errorf("%s: %d %s", name, res.StatusCode, page)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodPut} {
		if res, _ := ask(t, method, base+reportLinks.Token(1), "", nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", method, res.StatusCode)
		}
	}
	for cause, want := range map[error]int{postgres.ErrUnavailable: 503, errors.New("a bug"): 503, report.ErrDraft: 404} {
		base := (&fakeReports{err: cause}).serve(t)
		res, page := ask(t, http.MethodGet, base+reportLinks.Token(1), "", nil)
		if res.StatusCode != want || strings.Contains(page, cause.Error()) {
			t.Errorf("%v: %d", cause, res.StatusCode)
		}
	}
}

// Guesses are limited per client address, and reading per link.
func TestSharedReportLimits(t *testing.T) {
	base := (&fakeReports{}).serve(t)
	last := 0
	for range 200 {
		res, _ := ask(t, http.MethodGet, base+"guess", "", nil)
		if last = res.StatusCode; last == http.StatusTooManyRequests {
			break
		}
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("guesses end with %d", last)
	}
	if res, _ := ask(t, http.MethodGet, base+reportLinks.Token(1), "", nil); res.StatusCode != 200 {
		t.Errorf("a reader meanwhile: %d", res.StatusCode)
	}
}
