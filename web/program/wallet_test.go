package program

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/wallet/wallettest"
	"dropbell/musttest"
)

// TestWalletIsWired: calls of devices are served if Apple's Wallet is configured, and only then.
// Passes contain the address of this installation.
func TestWalletIsWired(t *testing.T) {
	id, err := wallettest.NewIdentity("pass.com.example.coupons", "ABCDE12345")
	musttest.OK(t, err)
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "LINK_SECRET": "a secret of at least thirty-two bytes",
		"AUTH_JWT_SECRET": "a secret of tests, long enough for HS256", "PUBLIC_URL": "https://drops.example/"}
	serve := func() (*program, http.Handler) {
		t.Helper()
		cfg, err := config.Load(func(name string) string { return env[name] })
		musttest.OK(t, err)
		p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
		musttest.OK(t, err)
		t.Cleanup(func() { _ = p.Close() })
		handler, err := p.handler(t.Context())
		musttest.OK(t, err)
		return p, handler
	}
	report := func(handler http.Handler) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/wallet/v1/log", strings.NewReader(`{"logs":[]}`)))
		return w.Code
	}
	if _, handler := serve(); report(handler) == http.StatusOK {
		t.Error("devices are served without a pass type")
	}
	env["PASS_TYPE_ID"], env["PASS_TEAM_ID"], env["PASS_CERTIFICATE"], env["PASS_KEY"], env["PASS_WWDR"] = id.TypeID, id.TeamID, string(id.Certificate), string(id.Key), string(id.WWDR)
	p, handler := serve()
	if code := report(handler); code != http.StatusOK || p.passes.Address != "https://drops.example" {
		t.Errorf("%d %s", code, p.passes.Address)
	}
}
