// Package webpushtest has the browser's side of push messages for tests: the keys of a
// subscription, and the decryption of what arrives for it.
package webpushtest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"testing"

	"dropbell/domain/user"
)

// A Browser is a subscription together with the keys that read its pushes.
type Browser struct {
	key  *ecdh.PrivateKey
	auth []byte
	user.PushSubscription
}

// NewBrowser returns a browser that has subscribed at the endpoint.
func NewBrowser(t testing.TB, endpoint string) Browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := Browser{key: key, auth: make([]byte, 16)}
	_, _ = rand.Read(b.auth)
	b.Endpoint = endpoint
	b.P256dh = base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes())
	b.Auth = base64.RawURLEncoding.EncodeToString(b.auth)
	return b
}

// Read decrypts a push as a browser does (RFC 8291, section 3.4, and RFC 8188).
func (b Browser) Read(t testing.TB, body []byte) []byte {
	t.Helper()
	if len(body) < 86 || len(body) > 4096 {
		t.Fatalf("a body of %d bytes", len(body))
	}
	salt, point, sealed := body[:16], body[21:86], body[86:]
	sender, err := ecdh.P256().NewPublicKey(point)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := b.key.ECDH(sender)
	if err != nil {
		t.Fatal(err)
	}
	info := "WebPush: info\x00" + string(b.key.PublicKey().Bytes()) + string(point)
	ikm := derive(t, shared, b.auth, info, 32)
	block, err := aes.NewCipher(derive(t, ikm, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	padded, err := gcm.Open(nil, derive(t, ikm, salt, "Content-Encoding: nonce\x00", 12), sealed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(bytes.TrimRight(padded, "\x00"), []byte{2})
}

func derive(t testing.TB, secret, salt []byte, info string, n int) []byte {
	t.Helper()
	key, err := hkdf.Key(sha256.New, secret, salt, info, n)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
