package campaign

import (
	"encoding/binary"
	"strings"

	"dropbell/domain/user"
)

// Links signs and reads the tokens of tracked links. A tracked link leads one recipient of a
// campaign to its claim page and is counted. The zero value makes no tokens and accepts none.
type Links struct{ user.Links }

// LinkPath is where tracked links live below the public address.
const LinkPath = "/l/"

// A token is version, variant, campaign, user and a signature. It names the user, but not the
// target of the link, which is looked up.
const (
	trackedVersion = 1
	trackedBody    = 1 + 1 + 8 + 8
	trackedPurpose = "dropbell campaign link"
)

// A Reader is whose link it is.
type Reader struct {
	CampaignID int64
	UserID     user.ID
	Variant    int
}

// Token returns the part of the link's address that identifies the reader; empty without a
// secret.
func (l Links) Token(r Reader) string {
	b := make([]byte, trackedBody)
	b[0], b[1] = trackedVersion, uint8(max(r.Variant, 0))
	binary.BigEndian.PutUint64(b[2:], uint64(r.CampaignID))
	binary.BigEndian.PutUint64(b[10:], uint64(r.UserID))
	return l.Seal(trackedPurpose, b)
}

// Parse returns whose link it is, or [user.ErrLink].
func (l Links) Parse(token string) (Reader, error) {
	b, err := l.Unseal(trackedPurpose, token, trackedBody)
	if err != nil || b[0] != trackedVersion {
		return Reader{}, user.ErrLink
	}
	return Reader{CampaignID: int64(binary.BigEndian.Uint64(b[2:])), UserID: user.ID(binary.BigEndian.Uint64(b[10:])), Variant: int(b[1])}, nil
}

// Example returns a link for previews. It is as long as the links in messages and is never
// counted; empty without a secret.
func (l Links) Example(public string) string {
	if of := l.Addresses(public); of != nil {
		return of(0, 0, 0) // no campaign has that id
	}
	return ""
}

// Addresses returns the function that makes links under the public address; nil without a secret.
func (l Links) Addresses(public string) func(campaignID int64, id user.ID, variant int) string {
	if !l.Enabled() {
		return nil
	}
	base := strings.TrimSuffix(public, "/") + LinkPath
	return func(campaignID int64, id user.ID, variant int) string {
		return base + l.Token(Reader{campaignID, id, variant})
	}
}
