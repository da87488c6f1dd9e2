package links_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/draw"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/musttest"
	"dropbell/web/links"
)

// lottery has the draw of drop 1 with 50 tickets, of which 10 win by an announced secret.
type lottery struct {
	draw.Draw
	rows []draw.Row
}

func newLottery(t *testing.T) *lottery {
	t.Helper()
	keys, err := draw.NewKeys("a secret of at least thirty-two bytes")
	musttest.OK(t, err)
	k, closes := keys[0], time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	card := draw.Card{Drop: 1, Version: 1, OpensAt: closes.Add(-time.Hour), ClosesAt: closes, Stock: 10, MaxWeight: 1, Source: draw.Sources{}.Of(template.Opening{}, k, 1)}
	l := &lottery{Draw: draw.Draw{TemplateID: 1, State: draw.Done, Key: k.Public, OpensAt: card.OpensAt, ClosesAt: card.ClosesAt, DrawnAt: new(card.ClosesAt.Add(time.Minute))}}
	for i := range 50 {
		e := draw.Entry{UserID: int64(i + 1), Weight: 1}
		e.Ticket[0], e.Ticket[15] = byte(i), 1
		l.rows = append(l.rows, e.Row())
	}
	seal, err := draw.NewSeal(card, l.rows, closes, []draw.Count{{Reason: "not a customer", N: 2}})
	musttest.OK(t, err)
	struck := []draw.Strike{{Ticket: l.rows[0].Ticket(), Reason: draw.ReasonLapsed}, {Ticket: l.rows[1].Ticket(), Reason: "staff"}}
	result, _, _, err := draw.NewResult(card, seal, l.rows, k.Commit(1).String(), struck, nil)
	musttest.OK(t, err)
	sign := func(text string) string {
		signed, err := k.Sign(text)
		musttest.OK(t, err)
		return signed
	}
	l.Cards, l.Seal, l.Result, l.Won = []string{sign(card.Text())}, sign(seal.Text()), sign(result.Text()), 10
	return l
}

// drawsOf is the lottery as the pages read it.
type drawsOf struct{ *lottery }

func (d drawsOf) Draw(_ context.Context, id int64) (draw.Draw, error) {
	if id != 1 {
		return draw.Draw{}, draw.ErrNoDraw
	}
	return d.lottery.Draw, nil
}

func (d drawsOf) Find(_ context.Context, _ int64, t draw.Ticket) (draw.Row, bool, error) {
	at, found := draw.Find(d.rows, t)
	if !found {
		return draw.Row{}, false, nil
	}
	return d.rows[at], true, nil
}

// The page of a draw says what was drawn, looks a ticket up without scripts, and loads the modules that check the
// draw in a browser. It names no user.
func TestDrawPage(t *testing.T) {
	l := newLottery(t)
	pages := links.New(links.Deps{Links: user.NewLinks(secret), Channels: delivery.ChannelSetOf(delivery.Email), Now: still(), Log: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(http.StripPrefix(links.DrawPrefix, links.NewDrawPages(pages, &fakeDrops{state: template.Published}, drawsOf{l}, brands{}, "https://drops.example")))
	t.Cleanup(server.Close)
	get := func(path string) (int, string, http.Header) {
		t.Helper()
		res, err := http.Get(server.URL + links.DrawPrefix + path)
		musttest.OK(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		musttest.OK(t, err)
		return res.StatusCode, string(body), res.Header
	}
	status, body, header := get("/1")
	for _, want := range []string{"The draw is over: 10 of 50 entries won.", "weaker than a public source", "https://drops.example/api/v1/draws/1", `type="importmap">`, "@noble/curves/bls12-381.js",
		"Not proved", `data-draw="/api/v1/draws/1"`, "#ffd400", "2 entries were struck before the list was sealed: not a customer.", "1 winner did not accept in time.", "1 entry was struck after the seal: staff."} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	nonce := regexp.MustCompile(`nonce="([^"]+)" type="importmap"`).FindStringSubmatch(body)
	if status != 200 || len(nonce) != 2 || !strings.Contains(header.Get("Content-Security-Policy"), "'nonce-"+nonce[1]+"'") {
		t.Errorf("%d, nonce %v, policy %s", status, nonce, header.Get("Content-Security-Policy"))
	}
	won := 0
	for _, r := range l.rows {
		_, body, _ := get("/1?ticket=" + r.Ticket().String())
		switch {
		case strings.Contains(body, "Your entry won."):
			won++
		case r == l.rows[0] && strings.Contains(body, "Your entry won, and the coupon was not accepted"), r == l.rows[1] && strings.Contains(body, "Your entry was struck after the seal: staff"):
		case !strings.Contains(body, "Your entry did not win"):
			t.Errorf("nothing is said of the ticket %v", r.Ticket())
		}
	}
	if won != 10 {
		t.Errorf("the page says of %d tickets that they won", won)
	}
	for _, ticket := range []string{"zz", strings.Repeat("ab", 16), "%22%3E%3Cscript%3E"} {
		if _, body, _ := get("/1?ticket=" + ticket); !strings.Contains(body, "not in the sealed list") || strings.Contains(body, `"><script>`) {
			t.Errorf("of %s the page says something else", ticket)
		}
	}
	for _, path := range []string{"/2", "/x", "/", "/1/x"} {
		if status, _, _ := get(path); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
}
