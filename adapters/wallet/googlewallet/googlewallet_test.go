package googlewallet_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/wallet/googlewallet"
	"dropbell/adapters/wallet/wallettest"
	"dropbell/domain/coupon"
	"dropbell/domain/coupon/wallet"
	"dropbell/musttest"
)

const issuer = "3388000000012345678"

func start(t *testing.T) (*wallettest.Google, *googlewallet.Issuer) {
	t.Helper()
	google, err := wallettest.NewGoogle(issuer)
	musttest.OK(t, err)
	t.Cleanup(google.Close)
	i, err := googlewallet.New(googlewallet.Config{Account: google.Account, Issuer: issuer, URL: google.URL})
	musttest.OK(t, err)
	t.Cleanup(func() { _ = i.Close() })
	return google, i
}

func pass() wallet.Pass {
	return wallet.Pass{CouponID: 7, TemplateID: 3, UserID: 1, Language: "zh-CN", Name: "满 100 减 20", Shop: "茶馆", Worth: "减 ¥20", Colour: "#c2410c", Ink: "#ffffff",
		Logo: "https://shop.example/logo.png", Picture: "https://drop.example/pictures/10/c.png", PictureText: "两块月饼", State: coupon.Unused, ExpiresAt: time.Date(2027, 1, 2, 20, 0, 0, 0, time.FixedZone("CST", 8*3600))}
}

// TestLink: Google accepts the link, and long texts are cut so that browsers accept the link.
func TestLink(t *testing.T) {
	google, i := start(t)
	link, err := i.Link(pass())
	musttest.OK(t, err)
	class, object, err := google.Save(link)
	musttest.OK(t, err)
	if class["title"] != "减 ¥20 · 满 100 减 20" || class["issuerName"] != "茶馆" || class["hexBackgroundColor"] != "#c2410c" || class["titleImage"] == nil {
		t.Errorf("class %v", class)
	}
	hero, _ := json.Marshal(class["heroImage"])
	if want := `{"contentDescription":{"defaultValue":{"language":"zh-CN","value":"两块月饼"}},"sourceUri":{"uri":"https://drop.example/pictures/10/c.png"}}`; string(hero) != want {
		t.Errorf("picture %s, want %s", hero, want)
	}
	barcode, _ := object["barcode"].(map[string]any)
	if object["id"] != issuer+".dropbell-coupon-7" || object["state"] != "ACTIVE" || barcode["type"] != "QR_CODE" || barcode["value"] != "7" {
		t.Errorf("object %v", object)
	}
	long := pass()
	long.Name, long.Shop, long.Worth = strings.Repeat("券", 200), strings.Repeat("店", 200), strings.Repeat("减", 60)
	if link, err = i.Link(long); err != nil || len(link) > 1900 {
		t.Errorf("a link of %d bytes, %v", len(link), err)
	}
	if _, _, err = google.Save(link); err != nil {
		t.Error(err)
	}
	if _, _, err := google.Save(link[:len(link)-6] + "AAAAAA"); err == nil {
		t.Error("a changed link is accepted")
	}
}

// TestTell: a state reaches the saved pass. A pass that was not saved needs no state. A pass
// that Google refuses for the moment is tried again after a pause.
func TestTell(t *testing.T) {
	google, i := start(t)
	if a := i.Tell(t.Context(), 7, coupon.Used); a.Verdict != wallet.Told {
		t.Fatalf("not saved: %+v", a)
	}
	link, err := i.Link(pass())
	musttest.OK(t, err)
	if _, _, err := google.Save(link); err != nil {
		t.Fatal(err)
	}
	for state, want := range map[coupon.State]string{coupon.Used: "COMPLETED", coupon.Expired: "EXPIRED", coupon.Revoked: "INACTIVE", coupon.Unused: "ACTIVE", coupon.Locked: "ACTIVE"} {
		a := i.Tell(t.Context(), 7, state)
		if got, _ := google.State(issuer + ".dropbell-coupon-7"); a.Verdict != wallet.Told || got != want {
			t.Errorf("%s: %+v, %s", state, a, got)
		}
	}
	for status, want := range map[int]wallet.Verdict{429: wallet.Failed, 503: wallet.Failed, 403: wallet.Failed, 400: wallet.Refused} {
		google.Fail("7", status)
		if a := i.Tell(t.Context(), 7, coupon.Used); a.Verdict != want || a.After != 7*time.Second {
			t.Errorf("%d: %+v", status, a)
		}
	}
	google.Fail("", 401) // the access token was revoked: another one is asked for
	if a := i.Tell(t.Context(), 7, coupon.Used); a.Verdict != wallet.Told {
		t.Errorf("401: %+v", a)
	}
	google.Close()
	if a := i.Tell(t.Context(), 7, coupon.Used); a.Verdict != wallet.Failed || strings.Contains(a.Detail, "BEGIN") {
		t.Errorf("no service: %+v", a)
	}
}
