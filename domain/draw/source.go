package draw

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// SourceKind is a kind of source of randomness.
type SourceKind string

// The sources of randomness.
const (
	// Drand is the chain quicknet of drand, whose constants are below.
	Drand SourceKind = "drand"
	// Local is a beacon of the operator, for development and tests. It works as quicknet does, with a key of its own, and proves nothing to others.
	Local SourceKind = "local"
	// Public is a public draw that the card announces, such as a lottery of a named day.
	Public SourceKind = "public"
	// Commit is a secret whose SHA-256 is on the card. It is revealed after the seal. Who knows the secret can add entries that win.
	Commit SourceKind = "commit"
)

// The constants of drand's chain quicknet. Signatures are on G1 of BLS12-381 and public keys on G2. They are
// pinned here and never fetched.
const (
	QuicknetChain  = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
	QuicknetKey    = "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
	quicknetStart  = 1692803367
	quicknetPeriod = 3
)

// Source is the source of randomness that a card announces.
type Source struct {
	Kind SourceKind
	// Detail is the chain's hash of drand, the public key of a local beacon in hexadecimal digits, the
	// announced public draw in words, or the SHA-256 of the secret in hexadecimal digits.
	Detail string
}

func (s Source) String() string { return string(s.Kind) + " " + s.Detail }

// Rounds reports whether the source has numbered rounds at known instants.
func (s Source) Rounds() bool { return s.Kind == Drand || s.Kind == Local }

// ErrSource is wrapped by errors about a source of randomness.
var ErrSource = errors.New("the source of randomness is not valid")

// ParseSource reads the text of [Source.String].
func ParseSource(text string) (Source, error) {
	kind, detail, _ := strings.Cut(text, " ")
	s := Source{SourceKind(kind), detail}
	wants := map[SourceKind]*regexp.Regexp{Drand: regexp.MustCompile("^" + QuicknetChain + "$"), Local: regexp.MustCompile(`^[0-9a-f]{192}$`),
		Public: regexp.MustCompile(`^[^\s].*[^\s]$`), Commit: regexp.MustCompile(`^[0-9a-f]{64}$`)}[s.Kind]
	if wants == nil || !wants.MatchString(detail) || strings.ContainsAny(detail, "\n\r") {
		return s, fmt.Errorf("%w: %.100q", ErrSource, text)
	}
	return s, nil
}

// RoundTime is the instant at which a round of quicknet or of a local beacon appears.
func RoundTime(round int64) time.Time {
	return time.Unix(quicknetStart+(round-1)*quicknetPeriod, 0).UTC()
}

// FirstRound is the first round that appears at or after t.
func FirstRound(t time.Time) int64 {
	since := t.Sub(time.Unix(quicknetStart, 0))
	if since <= 0 {
		return 1
	}
	const period = quicknetPeriod * time.Second
	return int64((since+period-1)/period) + 1
}

const (
	// RoundAfter is the time between the close, or a late seal, and the round of the draw.
	RoundAfter = time.Minute
	// SealBefore is the least time between the seal and its round. A seal that is later takes a later round.
	SealBefore = 10 * time.Second
)

// RoundOf is the round of a draw whose entries closed at closesAt and that was sealed at sealedAt:
// the first round a minute after the close. If the seal is not made ten seconds before that round, it
// is the first round a minute after the seal.
func RoundOf(closesAt, sealedAt time.Time) int64 {
	round := FirstRound(closesAt.Add(RoundAfter))
	if RoundTime(round).Sub(sealedAt) < SealBefore {
		return FirstRound(sealedAt.Add(RoundAfter))
	}
	return round
}

// Judge verifies the signature of a beacon's round under a public key in hexadecimal digits.
type Judge interface {
	Verify(key string, round int64, signature []byte) error
}

// Randomness returns the random value that evidence gives, and [ErrSource] if evidence does not
// prove it. Evidence is a signature of round in hexadecimal digits, a secret in hexadecimal digits, or
// the figures of a public draw, separated by single spaces.
func (s Source) Randomness(judge Judge, round int64, evidence string) (Hash, error) {
	switch s.Kind {
	case Drand, Local:
		key := s.Detail
		if s.Kind == Drand {
			key = QuicknetKey
		}
		signature, err := hex.DecodeString(evidence)
		if err == nil {
			err = judge.Verify(key, round, signature)
		}
		if err != nil {
			return Hash{}, fmt.Errorf("%w: round %d: %w", ErrSource, round, err)
		}
		return sha256.Sum256(signature), nil
	case Commit:
		secret, err := ParseHash(evidence)
		if hash := sha256.Sum256(secret[:]); err != nil || subtle.ConstantTimeCompare([]byte(hex.EncodeToString(hash[:])), []byte(s.Detail)) == 0 {
			return Hash{}, fmt.Errorf("%w: the secret is not the secret of the card", ErrSource)
		}
		return secret, nil
	case Public:
		if evidence != Figures(strings.Fields(evidence)) || evidence == "" {
			return Hash{}, fmt.Errorf("%w: %.80q are not figures separated by single spaces", ErrSource, evidence)
		}
		return sha256.Sum256([]byte(evidence)), nil
	}
	return Hash{}, fmt.Errorf("%w: %.100q", ErrSource, s.String())
}

// Figures is the text of the figures of a public draw: decimal numbers without leading zeros, in the
// order in which they were published, separated by single spaces. It is "" if a figure is not a number.
func Figures(figures []string) string {
	out := make([]string, len(figures))
	for i, f := range figures {
		n, err := strconv.ParseUint(f, 10, 63)
		if err != nil {
			return ""
		}
		out[i] = strconv.FormatUint(n, 10)
	}
	return strings.Join(out, " ")
}
