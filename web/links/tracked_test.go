package links_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"dropbell/adapters/postgres"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/web/links"
)

var tracked = campaign.Links{Links: user.NewLinks(secret)}

// fakeCampaigns maps campaign 1 to target, records openings, and fails with err
// if set.
type fakeCampaigns struct {
	target string
	about  int64 // the drop
	err    error
	opened []campaign.Reader
}

func (d *fakeCampaigns) Target(_ context.Context, r campaign.Reader) (campaign.Destination, error) {
	if d.err == nil && r.CampaignID != 1 {
		return campaign.Destination{}, user.ErrLink
	}
	return campaign.Destination{URL: d.target, TemplateID: d.about}, d.err
}

func (d *fakeCampaigns) Open(ctx context.Context, r campaign.Reader) (campaign.Destination, error) {
	to, err := d.Target(ctx, r)
	if err == nil {
		d.opened = append(d.opened, r)
	}
	return to, err
}

func (d *fakeCampaigns) serve(t *testing.T) string {
	pages := links.New(links.Deps{Links: user.NewLinks(secret), Channels: delivery.ChannelSetOf(delivery.Email), Now: still(), Log: slog.New(slog.DiscardHandler)})
	r := chi.NewRouter()
	r.Mount(links.TrackedPrefix, links.NewTracked(pages, tracked, d, dropLinks.Addresses("https://drop.example")))
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return server.URL + campaign.LinkPath
}

// The link of a campaign about a drop without a claim address leads to the reader's own page of the
// drop, which does not count the click again.
func TestTrackedLinkToThePageOfADrop(t *testing.T) {
	d := &fakeCampaigns{about: 1}
	res, _ := ask(t, http.MethodGet, d.serve(t)+tracked.Token(campaign.Reader{CampaignID: 1, UserID: 7}), "", nil)
	token, ok := strings.CutPrefix(res.Header.Get("Location"), "https://drop.example/d/")
	token, counted := strings.CutSuffix(token, "?counted")
	reader, err := dropLinks.Parse(token)
	if res.StatusCode != http.StatusFound || !ok || !counted || err != nil || reader.TemplateID != 1 || reader.UserID != 7 || len(d.opened) != 1 {
		t.Fatalf("%d %v, %+v %v, opened %v", res.StatusCode, res.Header, reader, err, d.opened)
	}
	drops := &fakeDrops{state: template.Published}
	page := drops.serve(t) + token
	if res := click(t, http.MethodGet, page+"?counted"); res.StatusCode != http.StatusOK || len(drops.opened) != 0 {
		t.Errorf("%d, the drop counts %v", res.StatusCode, drops.opened)
	}
	if res := click(t, http.MethodGet, page); res.StatusCode != http.StatusOK || len(drops.opened) != 1 {
		t.Errorf("without a campaign: %d, the drop counts %v", res.StatusCode, drops.opened)
	}
	d.about = 0
	if res, _ := ask(t, http.MethodGet, d.serve(t)+tracked.Token(campaign.Reader{CampaignID: 1, UserID: 7}), "", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("about no drop: %d", res.StatusCode)
	}
}

func TestTrackedLink(t *testing.T) {
	d := &fakeCampaigns{target: "https://shop.example/claim?a=1&b=2"}
	base, reader := d.serve(t), campaign.Reader{CampaignID: 1, UserID: 7, Variant: 1}
	for _, query := range []string{"", "?to=https://evil.example", "?url=//evil.example"} {
		res, _ := ask(t, http.MethodGet, base+tracked.Token(reader)+query, "", nil)
		if res.StatusCode != http.StatusFound || res.Header.Get("Location") != d.target || res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Fatalf("%q: %d %v", query, res.StatusCode, res.Header)
		}
	}
	if len(d.opened) != 3 || d.opened[0] != reader {
		t.Fatalf("noted %+v", d.opened)
	}
	if res, _ := ask(t, http.MethodHead, base+tracked.Token(reader), "", nil); res.StatusCode != http.StatusFound || len(d.opened) != 3 {
		t.Fatalf("a program that only asks: %d, noted %d", res.StatusCode, len(d.opened))
	}
}

func TestTrackedLinkRefusals(t *testing.T) {
	d := &fakeCampaigns{target: "https://shop.example/"}
	base, good := d.serve(t), tracked.Token(campaign.Reader{CampaignID: 1, UserID: 7})
	for _, token := range []string{"", "nonsense", good[1:], good + "A", "a/b", "%00%ff", "https:%2F%2Fevil.example",
		user.NewLinks(secret).Token(7, 1), tracked.Token(campaign.Reader{CampaignID: 2, UserID: 7})} {
		res, text := ask(t, http.MethodGet, base+token, "", nil)
		if res.StatusCode != http.StatusNotFound || res.Header.Get("Location") != "" || !strings.Contains(text, "This link is not valid") {
			t.Errorf("%q: %d %s", token, res.StatusCode, res.Header.Get("Location"))
		}
	}
	if res, _ := ask(t, http.MethodPost, base+good, form, strings.NewReader("a=b")); res.StatusCode != http.StatusNotFound {
		t.Errorf("POST: %d", res.StatusCode)
	}
	if len(d.opened) != 0 {
		t.Errorf("noted %+v", d.opened)
	}
	for _, target := range []string{"javascript:alert(1)", "//evil.example", "/console", "data:text/html,x", ""} {
		d.target = target
		if res, _ := ask(t, http.MethodGet, base+good, "", nil); res.StatusCode != http.StatusNotFound || res.Header.Get("Location") != "" {
			t.Errorf("%q: %d to %s", target, res.StatusCode, res.Header.Get("Location"))
		}
	}
}

func TestTrackedLinkTrouble(t *testing.T) {
	for _, err := range []error{postgres.ErrUnavailable, errors.New("a defect")} {
		d := &fakeCampaigns{err: err}
		res, _ := ask(t, http.MethodGet, d.serve(t)+tracked.Token(campaign.Reader{CampaignID: 1, UserID: 7}), "", nil)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("%v: %d", err, res.StatusCode)
		}
	}
	d := &fakeCampaigns{target: "https://shop.example/"}
	base, last := d.serve(t), 0
	for range 65 {
		res, _ := ask(t, http.MethodGet, base+tracked.Token(campaign.Reader{CampaignID: 1, UserID: 8}), "", nil)
		last = res.StatusCode
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("one link again and again: %d", last)
	}
	if res, _ := ask(t, http.MethodGet, base+tracked.Token(campaign.Reader{CampaignID: 1, UserID: 9}), "", nil); res.StatusCode != http.StatusFound {
		t.Errorf("somebody else: %d", res.StatusCode)
	}
}
