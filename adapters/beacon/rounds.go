package beacon

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"dropbell/domain/draw"
)

// relayTime bounds the answer of a relay, and relayAnswer its size in bytes.
const (
	relayTime   = 3 * time.Second
	relayAnswer = 64 << 10
)

// Rounds fetches rounds: from relays of drand, or from a local beacon. A relay is not believed: a round
// counts if its signature verifies.
type Rounds struct {
	// Relays are the addresses of HTTP relays of drand, such as https://api.drand.sh.
	Relays []string
	// Local is nil in an installation without a local beacon.
	Local *Local
	// Client makes the calls; nil = [http.DefaultClient].
	Client *http.Client
}

// Round is part of [draw.Beacon]. All relays are asked at the same time, and the first signature that
// verifies is the answer. If there is none, Round returns [draw.ErrNoRound] with what each relay did.
func (r Rounds) Round(ctx context.Context, s draw.Source, round int64) (string, error) {
	switch s.Kind {
	case draw.Local:
		if r.Local == nil || r.Local.Public() != s.Detail {
			return "", fmt.Errorf("%w: this program does not have the local beacon of the card", draw.ErrNoRound)
		}
		return hex.EncodeToString(r.Local.Sign(round)), nil
	case draw.Drand:
		return r.relayed(ctx, s, round)
	}
	return "", fmt.Errorf("%w: %s has no rounds", draw.ErrNoRound, s.Kind)
}

func (r Rounds) relayed(ctx context.Context, s draw.Source, round int64) (string, error) {
	if len(r.Relays) == 0 {
		return "", fmt.Errorf("%w: DRAND_URLS names no relay", draw.ErrNoRound)
	}
	ctx, cancel := context.WithTimeout(ctx, relayTime)
	defer cancel() // ends the calls that are not needed any more
	type answer struct {
		signature string
		err       error
	}
	answers := make(chan answer, len(r.Relays))
	var calls sync.WaitGroup
	for _, relay := range r.Relays {
		calls.Go(func() {
			signature, err := r.ask(ctx, relay, round)
			if err == nil {
				_, err = s.Randomness(Judge{}, round, signature)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", relay, err)
			}
			answers <- answer{signature, err}
		})
	}
	defer calls.Wait()
	defer cancel()
	wrong := error(draw.ErrNoRound)
	for range r.Relays {
		a := <-answers
		if a.err == nil {
			return a.signature, nil
		}
		wrong = errors.Join(wrong, a.err)
	}
	return "", wrong
}

// ask returns what a relay gives as the signature of a round.
func (r Rounds) ask(ctx context.Context, relay string, round int64) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/%s/public/%d", strings.TrimRight(relay, "/"), draw.QuicknetChain, round), nil)
	if err != nil {
		return "", err
	}
	client := r.Client
	if client == nil {
		client = http.DefaultClient
	}
	got, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer got.Body.Close()
	var body struct {
		Round     int64  `json:"round"`
		Signature string `json:"signature"`
	}
	if got.StatusCode != http.StatusOK {
		return "", fmt.Errorf("answers %s", got.Status)
	}
	if err := json.NewDecoder(io.LimitReader(got.Body, relayAnswer)).Decode(&body); err != nil {
		return "", fmt.Errorf("the answer is not JSON: %w", err)
	}
	if body.Round != round {
		return "", fmt.Errorf("answers round %d", body.Round)
	}
	return strings.ToLower(body.Signature), nil
}

var _ draw.Beacon = Rounds{}
