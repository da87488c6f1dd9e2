package pass

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/user"
)

// A Challenge is a puzzle in the form of ALTCHA, version 2 of its protocol: find a counter so that
// SHA-256(salt ‖ nonce ‖ counter), with the counter as 4 bytes big endian, begins with the prefix.
type Challenge struct {
	Parameters Parameters `json:"parameters"`
	Signature  string     `json:"signature"`
}

// Parameters are the signed part of a [Challenge]. The order of the fields is that of the signed
// text: by name.
type Parameters struct {
	Algorithm string `json:"algorithm"`
	Cost      int    `json:"cost"`
	Data      struct {
		At   int64  `json:"at"` // when it was handed out, in Unix milliseconds
		Drop string `json:"drop"`
		User string `json:"user"`
	} `json:"data"`
	ExpiresAt int64  `json:"expiresAt"` // in Unix seconds
	KeyLength int    `json:"keyLength"`
	KeyPrefix string `json:"keyPrefix"`
	Nonce     string `json:"nonce"`
	Salt      string `json:"salt"`
}

// A Solution is what the solver of a [Challenge] found.
type Solution struct {
	Counter    int64  `json:"counter"`
	DerivedKey string `json:"derivedKey"`
}

// payload is what ALTCHA sends, as JSON in base64.
type payload struct {
	Challenge Challenge `json:"challenge"`
	Solution  Solution  `json:"solution"`
}

const (
	algorithm = "SHA-256"
	// prefix has 16 bits: 65,536 hashes on average, less than a second on a phone of 2024.
	prefix = "0000"
	// puzzleFor is how long a puzzle can be solved.
	puzzleFor = 2 * time.Hour
	// MaxPayload is the greatest length of a solution as text, in bytes.
	MaxPayload = 2000
)

// Challenge returns a puzzle for the user and the drop. random are 32 random bytes. It needs a key.
func (k Keys) Challenge(by user.ID, templateID int64, now time.Time, random [32]byte) Challenge {
	c := Challenge{Parameters: Parameters{Algorithm: algorithm, Cost: 1, ExpiresAt: now.Add(puzzleFor).Unix(), KeyLength: sha256.Size,
		KeyPrefix: prefix, Nonce: hex.EncodeToString(random[:16]), Salt: hex.EncodeToString(random[16:])}}
	c.Parameters.Data.At, c.Parameters.Data.Drop, c.Parameters.Data.User = now.UnixMilli(), strconv.FormatInt(templateID, 10), by.String()
	c.Signature = k.list[0].signature(c.Parameters)
	return c
}

// signature signs the parameters as JSON with sorted names.
func (k *key) signature(p Parameters) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(p) // numbers and texts
	h := hmac.New(sha256.New, k.puzzles)
	h.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	return hex.EncodeToString(h.Sum(nil))
}

// Solved checks the solution of a puzzle, as ALTCHA's widget sends it. It returns when the puzzle
// was handed out, or [ErrRefused]. One user's puzzle earns passes of this user alone, so a solution
// may be sent again.
func (k Keys) Solved(text string, by user.ID, templateID int64, now time.Time) (handedOut time.Time, err error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(text) > MaxPayload {
		return handedOut, ErrRefused
	}
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return handedOut, ErrRefused
	}
	c := p.Challenge.Parameters
	if c.Data.Drop != strconv.FormatInt(templateID, 10) || c.Data.User != by.String() || now.Unix() >= c.ExpiresAt ||
		!k.signed(p.Challenge) || !p.Solution.solves(c) {
		return handedOut, ErrRefused
	}
	return time.UnixMilli(c.Data.At).UTC(), nil
}

// Solve finds the solution as a browser does, and returns it as ALTCHA's widget sends it.
func (c Challenge) Solve() string {
	prefix, _ := hex.DecodeString(c.Parameters.KeyPrefix) // texts of [Keys.Challenge]
	salt, _ := hex.DecodeString(c.Parameters.Salt)
	nonce, _ := hex.DecodeString(c.Parameters.Nonce)
	text := append(append(salt, nonce...), 0, 0, 0, 0)
	for counter := uint32(0); ; counter++ {
		binary.BigEndian.PutUint32(text[len(text)-4:], counter)
		if sum := sha256.Sum256(text); bytes.HasPrefix(sum[:], prefix) {
			raw, _ := json.Marshal(payload{c, Solution{int64(counter), hex.EncodeToString(sum[:])}}) // numbers and texts
			return base64.StdEncoding.EncodeToString(raw)
		}
	}
}

func (k Keys) signed(c Challenge) (ok bool) {
	for _, one := range k.list {
		ok = hmac.Equal([]byte(one.signature(c.Parameters)), []byte(c.Signature)) || ok
	}
	return ok
}

func (s Solution) solves(p Parameters) bool {
	salt, err1 := hex.DecodeString(p.Salt)
	nonce, err2 := hex.DecodeString(p.Nonce)
	if err1 != nil || err2 != nil || s.Counter < 0 || s.Counter > 1<<32-1 {
		return false
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint32(append(salt, nonce...), uint32(s.Counter)))
	found := hex.EncodeToString(sum[:])
	return found == s.DerivedKey && strings.HasPrefix(found, p.KeyPrefix)
}
