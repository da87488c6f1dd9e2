package api

import (
	"context"
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
)

const (
	jwksInterval = 10 * time.Minute
	maxKeySet    = 10 << 20
	// maxSkipped bounds how many skipped keys the log names.
	maxSkipped = 10
)

// keySets fetches the key set again and again and keeps the last good one.
type keySets struct {
	control  httprc.Controller
	resource *httprc.ResourceBase[jwk.Set]
}

// fetchKeySets does not wait for the first answer; ctx ends the fetching.
func fetchKeySets(ctx context.Context, url string, log *slog.Logger) (*keySets, error) {
	resource, err := httprc.NewResource(url, &keySetReader{log: log},
		httprc.WithHTTPClient(jwk.DefaultHTTPClient()), httprc.WithConstantInterval(jwksInterval))
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
func (s *keySets) known() (jwk.Set, error) {
	if set := s.resource.Resource(); set != nil {
		return set, nil
	}
	return nil, errors.New("not fetched yet")
}

// refresh returns the key set that the server has now.
func (s *keySets) refresh(ctx context.Context) (jwk.Set, error) {
	if err := s.control.Refresh(ctx, s.resource.URL()); err != nil {
		return nil, err
	}
	return s.known()
}

// keySetReader reads what the key server answers. Keys that are not
// understood or out of range are left out (RFC 7517 §5).
type keySetReader struct {
	log *slog.Logger

	mu      sync.Mutex
	skipped []string // in the last answer
}

// Transform is part of [httprc.Transformer].
func (k *keySetReader) Transform(_ context.Context, res *http.Response) (jwk.Set, error) {
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
		return nil, errors.New("the key set has no key that can be used")
	}
	return set, nil
}

// tell logs what was left out, once until that changes.
func (k *keySetReader) tell(skipped []string, used int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(skipped) > 0 && !slices.Equal(skipped, k.skipped) {
		k.log.Warn("keys of AUTH_JWKS_URL were skipped", "skipped", len(skipped), "used", used, "why", skipped[:min(len(skipped), maxSkipped)])
	}
	k.skipped = skipped
}

// parseKeySet returns the keys that tokens can be verified with, and why the
// others cannot, without a word of what a key holds.
func parseKeySet(body []byte) (jwk.Set, []string, error) {
	var in struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
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
