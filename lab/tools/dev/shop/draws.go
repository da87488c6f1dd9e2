package shop

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"dropbell/sdk/go/api"
)

// AddDraw publishes a draw whose entries close after d, and returns its id. The random value comes from the
// local beacon of the server.
func (s *Shop) AddDraw(ctx context.Context, d time.Duration) (string, error) {
	opens, off, limit, valid := s.client.Clock.Now().Add(d).Truncate(time.Second), int64(5000), int64(1), int64(48)
	mode, source, claim := api.TemplateWishOpeningMode("draw"), api.TemplateWishDrawSource("local"), s.address+"/"
	draft, err := s.client.CreateTemplateWithResponse(ctx, nil, api.TemplateWish{ShopNumber: Number, Name: "¥50 tea set, by draw · 茶具 50 元券抽签", Kind: "amount_off",
		AmountOff: &off, Currency: "CNY", Stock: 100, PerUserLimit: &limit, OpensAt: opens, ClosesAt: opens.Add(2 * time.Hour), ValidHours: &valid, ClaimUrl: &claim,
		OpeningMode: &mode, DrawSource: &source})
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

// openDraw adds a draw whose entries close in two minutes. A round of the beacon decides a minute later.
func (s *Shop) openDraw(w http.ResponseWriter, r *http.Request) {
	to := "/"
	if _, err := s.AddDraw(r.Context(), 2*time.Minute); err != nil {
		s.config.Log.Warn("the demo shop's draw", "err", err)
		to = "/?error=" + url.QueryEscape(err.Error())
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}
