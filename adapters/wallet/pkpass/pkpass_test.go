package pkpass_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/smallstep/pkcs7"

	"dropbell/adapters/wallet/pkpass"
	"dropbell/adapters/wallet/wallettest"
	"dropbell/domain/coupon"
	"dropbell/domain/coupon/wallet"
	"dropbell/musttest"
)

func identity(t *testing.T) wallettest.Identity {
	t.Helper()
	id, err := wallettest.NewIdentity("pass.com.example.coupons", "ABCDE12345")
	musttest.OK(t, err)
	return id
}

func newIssuer(t *testing.T, id wallettest.Identity, change func(*pkpass.Config)) *pkpass.Issuer {
	t.Helper()
	cfg := pkpass.Config{TypeID: id.TypeID, TeamID: id.TeamID, Certificate: id.Certificate, Key: id.Key, WWDR: id.WWDR, Service: "https://drops.example/wallet"}
	if change != nil {
		change(&cfg)
	}
	issuer, err := pkpass.New(cfg)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = issuer.Close() })
	return issuer
}

func pass(state coupon.State) wallet.Pass {
	shanghai := time.FixedZone("CST", 8*3600)
	return wallet.Pass{CouponID: 7, TemplateID: 3, UserID: 1, Language: "zh-CN", Name: "满 100 减 20", Shop: "茶馆", Worth: "减 ¥20", Description: "<每人> & 一张",
		Colour: "#c2410c", Ink: "#ffffff", State: state, ExpiresAt: time.Date(2027, 1, 2, 20, 0, 0, 0, shanghai), Modified: time.Unix(1_800_000_000, 0)}
}

func unpack(t *testing.T, raw []byte) map[string][]byte {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	musttest.OK(t, err)
	files := map[string][]byte{}
	for _, f := range archive.File {
		r, err := f.Open()
		musttest.OK(t, err)
		if files[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestBundle opens a bundle as a device does. The manifest contains the hash of every file. The
// pass type's certificate signs the manifest, with the issuer's certificate in the chain. A
// changed manifest or file is noticed.
func TestBundle(t *testing.T) {
	id := identity(t)
	issuer := newIssuer(t, id, nil)
	used := pass(coupon.Used)
	used.Picture, used.Strip = "https://drop.example/pictures/10/c.png", map[string][]byte{"strip.png": []byte("small"), "strip@2x.png": []byte("large")}
	described, err := issuer.Describe(used, "token-of-the-pass")
	musttest.OK(t, err)
	raw, err := issuer.Bundle(used, described)
	musttest.OK(t, err)
	files := unpack(t, raw)
	var manifest map[string]string
	musttest.OK(t, json.Unmarshal(files["manifest.json"], &manifest))
	if len(manifest) != len(files)-2 {
		t.Errorf("the manifest has %d files, the bundle %d", len(manifest), len(files))
	}
	for name, sum := range manifest {
		if got := sha1.Sum(files[name]); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s has another hash", name)
		}
	}
	verify := func(content []byte) error {
		signature, err := pkcs7.Parse(files["signature"])
		if err != nil {
			return err
		}
		if len(signature.Content) != 0 || len(signature.Certificates) != 2 {
			t.Errorf("content of %d bytes, %d certificates", len(signature.Content), len(signature.Certificates))
		}
		signature.Content = content
		roots := x509.NewCertPool()
		roots.AddCert(id.Root)
		return signature.VerifyWithChain(roots)
	}
	if err := verify(files["manifest.json"]); err != nil {
		t.Error(err)
	}
	if verify(bytes.Replace(files["manifest.json"], []byte("pass.json"), []byte("pass.jsom"), 1)) == nil {
		t.Error("a changed manifest is signed")
	}
	for name, side := range map[string]int{"icon.png": 29, "icon@2x.png": 58, "icon@3x.png": 87} {
		if picture, err := png.Decode(bytes.NewReader(files[name])); err != nil || picture.Bounds().Dx() != side {
			t.Errorf("%s: %v", name, err)
		}
	}
	if string(files["strip.png"]) != "small" || string(files["strip@2x.png"]) != "large" || !bytes.Contains(described, []byte(used.Picture)) {
		t.Error("the picture of the coupon is missing")
	}
	if plain, err := issuer.Describe(pass(coupon.Used), "token-of-the-pass"); err != nil || bytes.Equal(plain, described) {
		t.Errorf("a pass without the picture is described the same, %v", err)
	}
	if !bytes.Equal(files["pass.json"], described) {
		t.Error("another pass.json")
	}
}

// TestDescribe: the texts of a pass, in the owner's language, for each state.
func TestDescribe(t *testing.T) {
	issuer := newIssuer(t, identity(t), nil)
	for state, word := range map[coupon.State]string{coupon.Unused: "可使用", coupon.Locked: "订单支付中", coupon.Used: "已使用", coupon.Expired: "已过期", coupon.Revoked: "已失效"} {
		raw, err := issuer.Describe(pass(state), "token-of-the-pass")
		musttest.OK(t, err)
		text := string(raw)
		for _, want := range []string{word, `"serialNumber":"7"`, `"passTypeIdentifier":"pass.com.example.coupons"`, `"teamIdentifier":"ABCDE12345"`,
			`"webServiceURL":"https://drops.example/wallet"`, `"authenticationToken":"token-of-the-pass"`, `"expirationDate":"2027-01-02T20:00:00+08:00"`,
			`"backgroundColor":"rgb(194, 65, 12)"`, `"message":"7"`, "满 100 减 20", "减 ¥20", "<每人> & 一张"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %s in %s", state, want, text)
			}
		}
		if voided := state != coupon.Unused && state != coupon.Locked; strings.Contains(text, `"voided":true`) != voided {
			t.Errorf("%s: voided is not %v", state, voided)
		}
	}
	p := pass(coupon.Unused)
	p.Language = "de"
	if raw, err := newIssuer(t, identity(t), func(c *pkpass.Config) { c.Service = "" }).Describe(p, "token-of-the-pass"); err != nil ||
		strings.Contains(string(raw), "authenticationToken") || !strings.Contains(string(raw), "Valid until") {
		t.Errorf("without a service: %s %v", raw, err)
	}
}

// TestMistakes: an error names the mistake and contains no key.
func TestMistakes(t *testing.T) {
	id, other := identity(t), identity(t)
	for name, change := range map[string]func(*pkpass.Config){
		"another key":  func(c *pkpass.Config) { c.Key = other.Key },
		"no WWDR":      func(c *pkpass.Config) { c.WWDR = []byte("x") },
		"no pass type": func(c *pkpass.Config) { c.TypeID = "" },
	} {
		cfg := pkpass.Config{TypeID: id.TypeID, TeamID: id.TeamID, Certificate: id.Certificate, Key: id.Key, WWDR: id.WWDR}
		change(&cfg)
		if _, err := pkpass.New(cfg); err == nil || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWake: the push that a device gets, and the meaning of each answer of Apple's.
func TestWake(t *testing.T) {
	id := identity(t)
	service := wallettest.NewAPNs(id.TypeID)
	defer service.Close()
	issuer := newIssuer(t, id, func(c *pkpass.Config) { c.PushURL = service.URL })
	if a := issuer.Wake(t.Context(), "d1"); a.Verdict != wallet.Told {
		t.Fatalf("%+v", a)
	}
	if p := service.All(); len(p) != 1 || p[0].Body != "{}" || p[0].Header.Get("apns-topic") != id.TypeID || p[0].Header.Get("apns-expiration") == "" {
		t.Errorf("%+v", p)
	}
	for answer, want := range map[string]wallet.Verdict{"410 Unregistered": wallet.Gone, "400 BadDeviceToken": wallet.Refused, "403 BadCertificate": wallet.Failed,
		"429 TooManyRequests": wallet.Failed, "503 ServiceUnavailable": wallet.Failed, "500 InternalServerError": wallet.Failed, "413 PayloadTooLarge": wallet.Refused} {
		status, reason, _ := strings.Cut(answer, " ")
		n := 0
		for _, digit := range status {
			n = n*10 + int(digit-'0')
		}
		service.Answer("d1", n, reason)
		if a := issuer.Wake(t.Context(), "d1"); a.Verdict != want || strings.Contains(a.Detail, "d1") {
			t.Errorf("%s: %+v", answer, a)
		}
	}
	service.Close()
	if a := issuer.Wake(t.Context(), "d2"); a.Verdict != wallet.Failed {
		t.Errorf("no service: %+v", a)
	}
}

// TestWakeByCertificate: over TLS the push service sees the certificate of the pass type.
func TestWakeByCertificate(t *testing.T) {
	id := identity(t)
	var seen string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = r.Proto + " " + r.TLS.PeerCertificates[0].Subject.CommonName
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	issuer := newIssuer(t, id, func(c *pkpass.Config) { c.PushURL = server.URL })
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	pkpass.Trust(issuer, pool)
	if a := issuer.Wake(t.Context(), "d1"); a.Verdict != wallet.Told || seen != "HTTP/2.0 Pass Type ID: "+id.TypeID {
		t.Errorf("%+v, seen %q", a, seen)
	}
}
