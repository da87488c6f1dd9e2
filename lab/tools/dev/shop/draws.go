package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"dropbell/sdk/go/api"
)

// drawName is the name of the shop's draws, by which the shop knows them again.
const drawName = "茶具 50 元券抽签 · ¥50 tea set, by draw"

// AddDraw publishes a draw whose entries close after d, and returns its id. The random value comes from the
// local beacon of the server.
func (s *Shop) AddDraw(ctx context.Context, d time.Duration) (string, error) {
	opens := s.client.Clock.Now().Add(d).Truncate(time.Second).UTC()
	wish, err := json.Marshal(map[string]any{"shop_number": Number, "name": drawName, "kind": "amount_off", "amount_off": 5000, "currency": "CNY", "stock": 100,
		"opens_at": opens, "closes_at": opens.Add(2 * time.Hour), "valid_hours": 48, "claim_url": s.address + "/", "opening_mode": "draw", "draw_source": "local"})
	if err != nil {
		return "", err
	}
	draft, err := s.client.CreateTemplateWithBodyWithResponse(ctx, nil, "application/json", bytes.NewReader(wish))
	if err != nil {
		return "", err
	}
	id := draft.JSON201.Id
	if _, err := s.client.PublishTemplateWithResponse(ctx, id, nil, api.Reason{}); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draw = id
	return id, nil
}

// cardIn is how long the page waits for the card of a new draw, which a worker publishes.
const cardIn = 5 * time.Second

// openDraw adds a draw whose entries close in two minutes, and shows the page once its card is
// published. A round of the beacon decides a minute later.
func (s *Shop) openDraw(w http.ResponseWriter, r *http.Request) {
	to := "/"
	id, err := s.AddDraw(r.Context(), 2*time.Minute)
	if err == nil {
		s.awaitCard(r.Context(), id)
	} else {
		s.config.Log.Warn("the demo shop's draw", "err", err)
		to = "/?error=" + url.QueryEscape(err.Error())
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// awaitCard returns when the card of the draw is published, or after cardIn.
func (s *Shop) awaitCard(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, cardIn)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if card, err := s.client.GetDrawCardWithResponse(ctx, id); err == nil && card.JSON200 != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
