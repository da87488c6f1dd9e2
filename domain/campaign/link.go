package campaign

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// Links signs and reads the tokens of tracked links. A tracked link leads one recipient of a
// campaign to its claim page, or to an address in its text, and is counted. The zero value makes no tokens and accepts none.
type Links struct{ user.Links }

// LinkPath is where tracked links live below the public address.
const LinkPath = "/l/"

// A token is version, variant, campaign, user, and in the second version the mark of the target,
// with a signature. It names the user, but not the target of the link, which is looked up.
const (
	trackedVersion = 1
	targetVersion  = 2
	trackedBody    = 1 + 1 + 8 + 8
	targetBody     = trackedBody + 4
	trackedPurpose = "dropbell campaign link"
)

// A Reader is whose link it is.
type Reader struct {
	CampaignID int64
	UserID     user.ID
	Variant    int
	// Target is the [TargetMark] of the address to which the link leads; 0 = the claim page.
	Target uint32
}

// TargetMark returns the number that identifies an address among the addresses in the texts of a
// campaign: its FNV-1a hash with 32 bits. "" has the mark 0, which no other address has.
func TargetMark(address string) uint32 {
	if address == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(address)) // a hash never fails
	return max(1, h.Sum32())
}

// Token returns the part of the link's address that identifies the reader and the target; empty
// without a secret.
func (l Links) Token(r Reader) string {
	b := make([]byte, trackedBody, targetBody)
	b[0], b[1] = trackedVersion, uint8(max(r.Variant, 0))
	binary.BigEndian.PutUint64(b[2:], uint64(r.CampaignID))
	binary.BigEndian.PutUint64(b[10:], uint64(r.UserID))
	if r.Target != 0 {
		b[0], b = targetVersion, binary.BigEndian.AppendUint32(b, r.Target)
	}
	return l.Seal(trackedPurpose, b)
}

// Parse returns whose link it is, or [user.ErrLink].
func (l Links) Parse(token string) (Reader, error) {
	b, err := l.Unseal(trackedPurpose, token, trackedBody)
	version := byte(trackedVersion)
	if err != nil {
		b, err = l.Unseal(trackedPurpose, token, targetBody)
		version = targetVersion
	}
	if err != nil || b[0] != version {
		return Reader{}, user.ErrLink
	}
	r := Reader{CampaignID: int64(binary.BigEndian.Uint64(b[2:])), UserID: user.ID(binary.BigEndian.Uint64(b[10:])), Variant: int(b[1])}
	if version == targetVersion {
		r.Target = binary.BigEndian.Uint32(b[trackedBody:])
	}
	return r, nil
}

// Example returns a link for previews. It is as long as the links in messages and is never
// counted; empty without a secret.
func (l Links) Example(public string) string {
	if of := l.Addresses(public); of != nil {
		return of(0, 0, 0, "") // no campaign has that id
	}
	return ""
}

// Addresses returns the function that makes links under the public address; nil without a secret.
// target is the address in the text that the link replaces; "" = the claim page.
func (l Links) Addresses(public string) func(campaignID int64, id user.ID, variant int, target string) string {
	if !l.Enabled() {
		return nil
	}
	base := strings.TrimSuffix(public, "/") + LinkPath
	return func(campaignID int64, id user.ID, variant int, target string) string {
		return base + l.Token(Reader{campaignID, id, variant, TargetMark(target)})
	}
}

// ErrEmptyLink fails a campaign with a text that shows its link, if the link leads nowhere.
var ErrEmptyLink = fault.New(fault.Conflict, "empty_link", "a text of the campaign contains {{link}}, and the campaign has no link; create a campaign with a link, or about a drop with a claim page")

// A DropPage returns the page of a drop without a claim address, "" if there is none: mails lead
// there. It may be nil.
type DropPage func(templateID int64) string

// put makes mails about a drop without a claim address lead to its page.
func (p DropPage) put(s *delivery.Subject, over delivery.Channel) {
	if p != nil && over == delivery.Email {
		s.OwnPage(p)
	}
}

// A Destination is where the link of a campaign leads: to URL, or without one to the page of the
// drop TemplateID.
type Destination struct {
	URL        string
	TemplateID int64
}

// checkLink adds an error for every text that shows a link, if the link of the campaign leads
// nowhere. claimURL is the claim address of the template that the campaign is about.
func (s Spec) checkLink(e *fault.Fields, claimURL string, page DropPage) {
	subject := delivery.Subject{Kind: delivery.KindCampaign, TemplateID: s.TemplateID(), ClaimURL: claimURL, Copy: &s.Content}
	page.put(&subject, s.Channel)
	s.Content.CheckLink(e, subject.Link())
}

// checkLink returns [ErrEmptyLink] if messages of the cut would contain an empty link: the claim
// address may have been removed since the publication.
func (l *Launcher) checkLink(ctx context.Context, cut Cut) error {
	subject, err := l.Store.Subject(ctx, cut.Campaign)
	if err != nil {
		return err
	}
	e := &fault.Fields{}
	if cut.checkLink(e, subject.ClaimURL, l.DropPage); e.Err() != nil {
		return ErrEmptyLink
	}
	return nil
}
