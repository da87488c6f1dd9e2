package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/lestrrat-go/httprc/v3"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

const (
	// jwksInterval bounds how long a key that was withdrawn is still trusted.
	jwksInterval = time.Minute
	maxKeySet    = 10 << 20
	// maxSkipped bounds how many skipped keys the log names.
	maxSkipped = 10
)

// keySets fetches the key set repeatedly and keeps the last good set.
type keySets struct {
	control  httprc.Controller
	resource *httprc.ResourceBase[*trustedKeys]
}

// trustedKeys is the key set of one answer of the key server.
type trustedKeys struct {
	set    jwk.Set
	prints map[keyPrint]struct{} // of the keys in set
}

// keyPrint identifies a key with its id and permitted use.
type keyPrint [sha256.Size]byte

func printOf(key jwk.Key) (keyPrint, error) {
	text, err := json.Marshal(key)
	return sha256.Sum256(text), err
}

func trust(set jwk.Set) (*trustedKeys, error) {
	keys := &trustedKeys{set: set, prints: map[keyPrint]struct{}{}}
	for i := range set.Len() {
		key, _ := set.Key(i)
		print, err := printOf(key)
		if err != nil {
			return nil, errors.New("a key of the key set cannot be written down")
		}
		keys.prints[print] = struct{}{}
	}
	return keys, nil
}

// verify returns the token's payload and the key that signed it.
func (k *trustedKeys) verify(token string) ([]byte, keyPrint, error) {
	var used any
	payload, err := jws.Verify([]byte(token), jws.WithKeySet(k.set, jws.WithInferAlgorithmFromKey(true), jws.WithRequireKid(false)), jws.WithKeyUsed(&used))
	if err != nil {
		return nil, keyPrint{}, err
	}
	key, ok := used.(jwk.Key)
	if !ok {
		return nil, keyPrint{}, fmt.Errorf("the key is a %T", used)
	}
	print, err := printOf(key)
	return payload, print, err
}

// fetchKeySets does not wait for the first answer; ctx ends the fetching.
func fetchKeySets(ctx context.Context, url string, log *slog.Logger) (*keySets, error) {
	resource, err := httprc.NewResource(url, &keySetReader{log: log},
		httprc.WithHTTPClient(jwk.DefaultHTTPClient()), httprc.WithConstantInterval(jwksInterval),
		httprc.WithMinInterval(jwksInterval)) // the pause after a call that failed
	if err != nil {
		return nil, fmt.Errorf("AUTH_JWKS_URL: %w", err)
	}
	control, err := httprc.NewClient().Start(ctx)
	if err != nil {
		return nil, fmt.Errorf("key set cache: %w", err)
	}
	if err := control.Add(ctx, resource, httprc.WithWaitReady(false)); err != nil {
		return nil, fmt.Errorf("AUTH_JWKS_URL: %w", err)
	}
	return &keySets{control, resource}, nil
}

// known returns the key set that was fetched last.
func (s *keySets) known() (*trustedKeys, error) {
	keys := s.resource.Resource()
	switch {
	case keys == nil:
		return nil, errors.New("not fetched yet")
	case keys.set.Len() == 0:
		return nil, errors.New("the key set has no key that can be used")
	}
	return keys, nil
}

// publishes reports whether the key is in the key set that was fetched last.
func (s *keySets) publishes(key keyPrint) bool {
	keys, err := s.known()
	if err != nil {
		return false
	}
	_, ok := keys.prints[key]
	return ok
}

// refresh returns the key set that the server has now.
func (s *keySets) refresh(ctx context.Context) (*trustedKeys, error) {
	if err := s.control.Refresh(ctx, s.resource.URL()); err != nil {
		return nil, err
	}
	return s.known()
}

// keySetReader reads answers of the key server. Keys that are not understood or out of range are
// left out (RFC 7517 §5).
type keySetReader struct {
	log *slog.Logger

	mu      sync.Mutex
	skipped []string // in the last answer
}

// Transform is part of [httprc.Transformer]. A set without keys is valid: it withdraws the keys of
// the previous answer.
func (k *keySetReader) Transform(_ context.Context, res *http.Response) (*trustedKeys, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxKeySet+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxKeySet {
		return nil, fmt.Errorf("the key set is longer than %d bytes", maxKeySet)
	}
	set, skipped, err := parseKeySet(body)
	if err != nil {
		return nil, err
	}
	k.tell(skipped, set.Len())
	if set.Len() == 0 {
		k.log.Warn("AUTH_JWKS_URL has no key that can be used: no user's token is accepted")
	}
	return trust(set)
}

// tell logs the skipped keys, once until they change.
func (k *keySetReader) tell(skipped []string, used int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(skipped) > 0 && !slices.Equal(skipped, k.skipped) {
		k.log.Warn("keys of AUTH_JWKS_URL were skipped", "skipped", len(skipped), "used", used, "why", skipped[:min(len(skipped), maxSkipped)])
	}
	k.skipped = skipped
}

// parseKeySet returns the keys that tokens can be verified with, and the reasons why other keys are
// unusable. The reasons quote nothing of a key's content.
func parseKeySet(body []byte) (jwk.Set, []string, error) {
	var in struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Keys == nil {
		return nil, nil, errors.New("the key set is not a JSON object with an array of keys")
	}
	set, skipped := jwk.NewSet(), []string(nil)
	for i, raw := range in.Keys {
		key, err := parseKey(raw)
		if err == nil {
			err = set.AddKey(key)
		}
		if err != nil {
			skipped = append(skipped, fmt.Sprintf("key %d: %s", i+1, err))
		}
	}
	return set, skipped, nil
}

// parseKey returns a public key; its errors quote nothing but names.
func parseKey(raw []byte) (jwk.Key, error) {
	var head struct {
		Kind  string `json:"kty"`
		Curve string `json:"crv"`
	}
	if json.Unmarshal(raw, &head) != nil {
		return nil, errors.New("cannot be read")
	}
	switch head.Kind {
	case "RSA", "EC", "OKP":
	case "oct":
		return nil, errors.New("is a secret, which verifies nothing here")
	default:
		return nil, fmt.Errorf("kty %.32q is not understood", head.Kind)
	}
	key, err := jwk.ParseKey(raw)
	if err == nil {
		key, err = key.PublicKey()
	}
	if err == nil {
		var plain any
		err = jwk.Export(key, &plain)
	}
	switch {
	case err == nil:
		return key, nil
	case head.Kind == "RSA":
		return nil, errors.New("this RSA key cannot be read or is too short")
	}
	return nil, fmt.Errorf("this %s key cannot be read, or its curve %.32q is not understood", head.Kind, head.Curve)
}
