package links_test

import (
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	"dropbell/adapters/beacon"
	"dropbell/domain/delivery"
	"dropbell/domain/draw"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/musttest"
	"dropbell/views/static"
	"dropbell/web/console/consoletest"
	"dropbell/web/links"
)

// weighted is a draw of n entries of two doors, by a local beacon, as an operator publishes it.
func weighted(t *testing.T, n int) *lottery {
	t.Helper()
	keys, err := draw.NewKeys(secret)
	musttest.OK(t, err)
	local, err := beacon.NewLocal(keys[0].Beacon())
	musttest.OK(t, err)
	k, closes := keys[0], time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	card := draw.Card{Drop: 1, Version: 1, OpensAt: closes.Add(-time.Hour), ClosesAt: closes, Stock: n / 10, MaxWeight: 3, Source: draw.Source{Kind: draw.Local, Detail: local.Public()},
		Doors: []draw.CardDoor{{Weight: 3, Name: "Members"}, {Weight: 1, Name: "Everybody"}}, Round: draw.RoundOf(closes, closes)}
	l := &lottery{Draw: draw.Draw{TemplateID: 1, State: draw.Done, Key: k.Public, OpensAt: card.OpensAt, ClosesAt: card.ClosesAt, DrawnAt: new(card.ClosesAt.Add(time.Minute))}}
	for i := range n {
		h := draw.HashOf(strconv.Itoa(i))
		l.rows = append(l.rows, draw.Entry{UserID: int64(i + 1), Ticket: draw.Ticket(h[:16]), Salt: draw.Salt(h[16:]), Weight: 1 + 2*(i%5/4)}.Row())
	}
	seal, err := draw.NewSeal(card, l.rows, closes, nil)
	musttest.OK(t, err)
	result, _, _, err := draw.NewResult(card, seal, l.rows, hex.EncodeToString(local.Sign(seal.Round)), nil, beacon.Judge{})
	musttest.OK(t, err)
	for to, text := range map[*string]string{&l.Seal: seal.Text(), &l.Result: result.Text()} {
		if *to, err = k.Sign(text); err != nil {
			t.Fatal(err)
		}
	}
	signed, err := k.Sign(card.Text())
	musttest.OK(t, err)
	l.Cards, l.Won, l.Round = []string{signed}, int64(result.Won), seal.Round
	return l
}

// The button of the page recomputes a draw with weights in the browser, and finds a weight that was changed after the seal.
// A second draw with a seal of its own, which is right in itself, is found out by the seal that the browser kept.
// DROPBELL_TEST_TICKETS is the number of entries, to see how long many take.
func TestDrawIsCheckedInTheBrowser(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("DROPBELL_TEST_TICKETS"))
	if err != nil {
		n = 2000
	}
	l := weighted(t, n)
	assets, err := static.Load()
	musttest.OK(t, err)
	pages := links.New(links.Deps{Links: user.NewLinks(secret), Channels: delivery.ChannelSetOf(delivery.Email), Now: still(), Log: slog.New(slog.DiscardHandler)})
	mux := http.NewServeMux()
	mux.Handle(static.Prefix, assets)
	mux.Handle(links.DrawPrefix+"/", http.StripPrefix(links.DrawPrefix, links.NewDrawPages(pages, &fakeDrops{state: template.Published}, drawsOf{l}, brands{}, "https://drops.example")))
	mux.HandleFunc("/api/v1/draws/1/proof", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(l.Published()) })
	mux.HandleFunc("/api/v1/draws/1/list", func(w http.ResponseWriter, r *http.Request) {
		chunk, _ := strconv.Atoi(r.FormValue("chunk"))
		_, _ = w.Write(draw.Chunk(l.rows, chunk))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	tab := consoletest.NewTab(t)
	tab.Open(server.URL + links.DrawPrefix + "/1?ticket=" + l.rows[7].Ticket().String())
	tab.Sees("main", "Members: weight 3")
	began := time.Now()
	tab.Click("[data-check]")
	tab.Sees("[data-finding=sound]:not([hidden])", "as it was announced")
	t.Logf("the browser checked %d entries in %v", n, time.Since(began))
	l.rows[3][48]++
	tab.Open(server.URL + links.DrawPrefix + "/1")
	tab.Click("[data-check]")
	tab.Sees("[data-finding=wrong]:not([hidden])", "root")
	second := weighted(t, n-1)
	l.Draw, l.rows = second.Draw, second.rows
	tab.Open(server.URL + links.DrawPrefix + "/1")
	tab.Click("[data-check]")
	tab.Sees("[data-finding=wrong]:not([hidden])", "seal")
}
