package program

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/domain/redeemcode"
	"dropbell/musttest"
)

// TestRedemptionsAreWired sends two codes through the whole program: an invented code, and a
// well-formed code that belongs to no batch.
func TestRedemptionsAreWired(t *testing.T) {
	const keys = "1:YSBrZXkgb2YgMzIgYnl0ZXMsIGZvciB0ZXN0cyBvbmU="
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "CODE_KEYS": keys,
		"ADMIN_API_KEY": "dbk_abcdefghijklmnopqrstuvwxyz012345"}
	cfg, err := config.Load(func(name string) string { return env[name] })
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	t.Cleanup(func() { _ = p.Close() })
	handler, err := p.handler(t.Context())
	musttest.OK(t, err)
	musttest.OK(t, p.ensureAccess(context.WithoutCancel(t.Context())))
	ring, err := redeemcode.ParseKeys(keys)
	musttest.OK(t, err)
	never, err := ring.Code(1, 417)
	musttest.OK(t, err)
	for _, code := range []string{"1111-1111-1111-1111", never.Text()} {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/redemptions", strings.NewReader(`{"code":"`+code+`"}`))
		r.Header.Set("Authorization", "Bearer "+cfg.AdminAPIKey)
		r.Header.Set("X-User-ID", "1001")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), `"code_invalid"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}
