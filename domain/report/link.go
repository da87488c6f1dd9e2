package report

import (
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Faults of reports.
var (
	ErrDraft        = fault.New(fault.Conflict, "report_of_draft", "a draft has no report; publish the drop first")
	ErrNoLink       = fault.New(fault.NotFound, "report_link_invalid", "this link is not valid any more; ask its sender for a new one")
	ErrLinksOff     = fault.New(fault.Conflict, "report_links_off", "links need LINK_SECRET; set it for web")
	ErrTooManyLinks = fault.New(fault.Conflict, "report_links_too_many", "the report has as many valid links as it may have; revoke one first")
)

// A Link leads to the report of one drop without signing in.
type Link struct {
	ID         int64
	TemplateID int64
	CreatedAt  time.Time
	CreatedBy  string
	ExpiresAt  time.Time // the first instant at which it is not valid
	RevokedAt  *time.Time
}

// Valid reports whether the link can be used at now.
func (l Link) Valid(now time.Time) bool { return l.RevokedAt == nil && now.Before(l.ExpiresAt) }

// Links signs and reads the tokens of links to reports. The zero value makes none
// and accepts none.
type Links struct{ user.Links }

// LinkPath is where shared reports live below the public address.
const LinkPath = "/r/"

// A token is version, link id and a signature. The report that it leads to, and its
// expiry, are looked up.
const (
	tokenVersion = 1
	tokenBody    = 1 + 8
	tokenPurpose = "dropbell report link"
)

// Token returns the part of the link's address that identifies the link; empty without a
// secret.
func (l Links) Token(linkID int64) string {
	b := make([]byte, tokenBody)
	b[0] = tokenVersion
	binary.BigEndian.PutUint64(b[1:], uint64(linkID))
	return l.Seal(tokenPurpose, b)
}

// Parse returns the id of the link, or [ErrNoLink].
func (l Links) Parse(token string) (int64, error) {
	b, err := l.Unseal(tokenPurpose, token, tokenBody)
	if err != nil || b[0] != tokenVersion {
		return 0, ErrNoLink
	}
	return int64(binary.BigEndian.Uint64(b[1:])), nil
}

// Address returns the link's address below the public one; empty without a secret.
func (l Links) Address(public string, linkID int64) string {
	if !l.Enabled() {
		return ""
	}
	return strings.TrimSuffix(public, "/") + LinkPath + l.Token(linkID)
}

// Open returns the report that a link leads to. It returns [ErrNoLink] for a token
// that was not signed here, and for a link that was revoked or has ended.
func (s *Service) Open(ctx context.Context, token string) (Report, error) {
	id, err := s.Signed.Parse(token)
	if err != nil {
		return Report{}, err
	}
	templateID, err := s.Store.OpenLink(ctx, id)
	if err != nil {
		return Report{}, err
	}
	return s.Report(ctx, staff.System(), templateID)
}

// MaxLinks is how many valid links one drop has at most.
const MaxLinks = 20

// shownLinks is how many links a drop's page lists.
const shownLinks = 50

// Lives are how long links may be valid.
func Lives() []time.Duration {
	return []time.Duration{7 * 24 * time.Hour, 30 * 24 * time.Hour, 90 * 24 * time.Hour}
}

// Share makes a link to the report of a drop; each call makes another link. It
// returns [ErrLinksOff] without a secret, [ErrTooManyLinks], or [fault.ErrInvalid]
// for a life that is not in [Lives].
func (s *Service) Share(ctx context.Context, by staff.Actor, templateID int64, life time.Duration) (Link, error) {
	t, err := s.shared(ctx, by, templateID)
	if err != nil {
		return Link{}, err
	}
	if !s.Signed.Enabled() {
		return Link{}, ErrLinksOff
	}
	valid := false
	for _, l := range Lives() {
		valid = valid || l == life
	}
	if !valid {
		return Link{}, fault.ErrInvalid
	}
	return s.Store.AddLink(ctx, t.ID, life, MaxLinks, entry(by, t, "template.report_share"))
}

// Revoke ends a link of the drop; [ErrNoLink] if there is none.
func (s *Service) Revoke(ctx context.Context, by staff.Actor, templateID, linkID int64) error {
	t, err := s.shared(ctx, by, templateID)
	if err != nil {
		return err
	}
	return s.Store.RevokeLink(ctx, t.ID, linkID, entry(by, t, "template.report_revoke"))
}

// shared returns the drop if the actor may share its report.
func (s *Service) shared(ctx context.Context, by staff.Actor, templateID int64) (template.Template, error) {
	t, err := s.Templates.Template(ctx, by, templateID)
	if err != nil {
		return t, err
	}
	if t.Stored == template.Draft {
		return t, ErrDraft
	}
	return t, by.May(staff.ManageTemplates, t.ShopNumber)
}

func entry(by staff.Actor, t template.Template, action string) staff.Entry {
	return staff.Entry{Actor: by, Action: action, ObjectKind: "template", ObjectID: strconv.FormatInt(t.ID, 10), ShopNumber: t.ShopNumber}
}

// LinksOf returns the links to the report, the latest first.
func (s *Service) LinksOf(ctx context.Context, by staff.Actor, templateID int64) ([]Link, error) {
	if _, err := s.Templates.Template(ctx, by, templateID); err != nil {
		return nil, err
	}
	return s.Store.Links(ctx, templateID, shownLinks)
}
