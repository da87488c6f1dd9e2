package apns

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// lasting is how long a provider token is used. Apple refuses a token that is older than an
// hour, and a new token that follows the last within twenty minutes.
const lasting = 45 * time.Minute

// A token is the provider token of one key, shared by all pushes.
type token struct {
	key           *ecdsa.PrivateKey
	keyID, teamID string
	now           func() time.Time

	mu     sync.Mutex
	bearer string
	made   time.Time
}

// ParseKey reads the .p8 file that Apple issued: a P-256 key, PKCS #8 in PEM.
func ParseKey(p8 []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(p8)
	if block == nil {
		return nil, errors.New("the key of APNs must be the .p8 file as Apple issued it, with its lines -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY-----")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || key.Curve.Params().BitSize != 256 {
		return nil, errors.New("the key of APNs must be a P-256 key, the .p8 file as Apple issued it")
	}
	return key, nil
}

func newToken(cfg Config) (*token, error) {
	key, err := ParseKey(cfg.Key)
	if err != nil {
		return nil, err
	}
	return &token{key: key, keyID: cfg.KeyID, teamID: cfg.TeamID, now: cfg.Time}, nil
}

// get returns the token, a new one if it is too old, or if it equals the refused one.
func (t *token) get(refused string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.bearer != "" && t.bearer != refused && now.Sub(t.made) < lasting {
		return t.bearer, nil
	}
	claims, err := jwt.NewBuilder().Issuer(t.teamID).IssuedAt(now).Build()
	if err != nil {
		return "", err
	}
	headers := jws.NewHeaders()
	if err := headers.Set(jws.KeyIDKey, t.keyID); err != nil {
		return "", err
	}
	signed, err := jwt.Sign(claims, jwt.WithKey(jwa.ES256(), t.key, jws.WithProtectedHeaders(headers)))
	if err != nil {
		return "", err
	}
	t.bearer, t.made = string(signed), now
	return t.bearer, nil
}
