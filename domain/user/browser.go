package user

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
)

// BrowserID returns the name by which a user removes a browser: 32 hexadecimal digits
// of the endpoint's hash. The components of shops' pages compute the same name.
func (p PushSubscription) BrowserID() string {
	sum := sha256.Sum256([]byte(p.Endpoint))
	return hex.EncodeToString(sum[:16])
}

// BrowserStore stores the browsers of users that take push messages.
type BrowserStore interface {
	// PutBrowser adds the browser to the user, and creates a user who is not known. It
	// takes the endpoint from every other user. If there are more than [MaxPush]
	// browsers, the browsers that registered first are removed. It returns [ErrErased]
	// for an erased user.
	PutBrowser(ctx context.Context, id ID, p PushSubscription) error
	// RemoveBrowser removes the user's browser of that [PushSubscription.BrowserID], if
	// there is one.
	RemoveBrowser(ctx context.Context, id ID, browser string) error
}

// PutBrowser registers the browser from which the user writes. The call may be repeated.
// A browser has one user: registering the browser takes it from its previous user. It
// returns a [fault.Fields] or [ErrErased].
func (s *Service) PutBrowser(ctx context.Context, id ID, p PushSubscription) error {
	if err := p.Check(s.AllowLocalPush); err != nil {
		return err
	}
	return s.Store.PutBrowser(ctx, id, p)
}

// RemoveBrowser removes the user's browser of that [PushSubscription.BrowserID]. The call
// may be repeated.
func (s *Service) RemoveBrowser(ctx context.Context, id ID, browser string) error {
	return s.Store.RemoveBrowser(ctx, id, browser)
}
