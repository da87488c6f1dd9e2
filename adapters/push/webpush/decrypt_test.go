package webpush_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"testing"
)

// read decrypts a push as a browser does (RFC 8291, section 3.4, and RFC 8188).
func (b browser) read(t *testing.T, body []byte) []byte {
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

func derive(t *testing.T, secret, salt []byte, info string, n int) []byte {
	t.Helper()
	key, err := hkdf.Key(sha256.New, secret, salt, info, n)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
