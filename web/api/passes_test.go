package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/lookup"
	couponsdb "dropbell/adapters/postgres/coupons"
	messagesdb "dropbell/adapters/postgres/messages"
	"dropbell/adapters/wallet/googlewallet"
	"dropbell/adapters/wallet/pkpass"
	"dropbell/adapters/wallet/wallettest"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/api"
)

// withPasses configures both wallets.
func withPasses(t testing.TB) func(*api.Deps) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	identity, err := wallettest.NewIdentity("pass.com.example.coupons", "ABCDE12345")
	must(err)
	apple, err := pkpass.New(pkpass.Config{TypeID: identity.TypeID, TeamID: identity.TeamID, Certificate: identity.Certificate, Key: identity.Key, WWDR: identity.WWDR})
	must(err)
	imitation, err := wallettest.NewGoogle("3388000000012345678")
	must(err)
	t.Cleanup(imitation.Close)
	google, err := googlewallet.New(googlewallet.Config{Account: imitation.Account, Issuer: imitation.Issuer})
	must(err)
	return func(d *api.Deps) {
		db := d.Coupons.Coupons.Store.(*couponsdb.Payments).DB
		texts, err := lookup.NewBooks(messagesdb.NewMessages(db))
		must(err)
		d.Coupons.Passes = &wallet.Service{Store: couponsdb.NewWallet(db), Texts: texts, Apple: apple, Google: google, Signed: user.NewLinks(secret),
			Address: "https://drops.example", Now: d.Now}
	}
}

// TestPassOfACoupon: an owner gets links and the file, other users get neither. Without a wallet
// there is no pass.
func TestPassOfACoupon(t *testing.T) {
	r := newFixture(t, withPasses(t))
	id := "/coupons/" + r.coupon(7, r.drop(time.Hour))
	a := r.want(r.call(as(token(7)), "GET", id+"/pass", nil), 200, "")
	if link, _ := a.at("apple_url").(string); !strings.HasPrefix(link, "https://drops.example/wallet/passes/") || a.at("apple_until") == nil {
		t.Errorf("%s", a.Body)
	}
	if link, _ := a.at("google_url").(string); !strings.HasPrefix(link, "https://pay.google.com/gp/v/save/ey") {
		t.Errorf("%s", a.Body)
	}
	file := r.want(r.call(as(token(7)), "GET", id+"/pass.pkpass", nil), 200, "")
	if file.Header().Get("Content-Type") != "application/vnd.apple.pkpass" || !strings.HasPrefix(file.Body.String(), "PK") || file.Header().Get("Last-Modified") == "" {
		t.Errorf("%v", file.Header())
	}
	same := r.call(as(token(7), "If-None-Match", file.Header().Get("ETag")), "GET", id+"/pass.pkpass", nil)
	if same.Code != http.StatusNotModified || same.Body.Len() != 0 || same.Header().Get("ETag") != file.Header().Get("ETag") {
		t.Errorf("%d %v", same.Code, same.Header())
	}
	for _, path := range []string{id + "/pass", id + "/pass.pkpass"} {
		r.want(r.call(as(token(8)), "GET", path, nil), 404, "coupon_not_found")
		r.want(r.call(as(r.keys[staff.ScopeActAsUser], "X-User-ID", "7"), "GET", path, nil), 200, "")
		r.want(r.call(as(""), "GET", path, nil), 401, "unauthenticated")
	}
	without := r.second()
	for _, path := range []string{id + "/pass", id + "/pass.pkpass"} {
		without.want(without.call(as(token(7)), "GET", path, nil), 404, "wallet_not_configured")
	}
	if strings.Contains(r.logs.String(), "PRIVATE KEY") {
		t.Error("a key stands in the log")
	}
}

// TestLiveChannelOfADrop: a drop names its broadcast channel once it has one.
func TestLiveChannelOfADrop(t *testing.T) {
	channel := ""
	r := newFixture(t, func(d *api.Deps) {
		d.Drops.LiveChannel = func(context.Context, int64) (string, error) { return channel, nil }
	})
	path := "/templates/" + r.drop(time.Hour)
	if a := r.want(r.call(nil, "GET", path, nil), 200, ""); a.at("live_channel") != nil {
		t.Errorf("%s", a.Body)
	}
	channel = "c29tZUNoYW5uZWw="
	if a := r.want(r.call(nil, "GET", path, nil), 200, ""); a.at("live_channel") != channel {
		t.Errorf("%s", a.Body)
	}
}
