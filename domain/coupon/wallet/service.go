package wallet

import (
	"context"
	"encoding/binary"
	"strconv"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/message"
	"dropbell/domain/user"
)

// Store keeps which coupons have a pass, and the devices that registered for it.
type Store interface {
	// Issue records that the coupon has a pass; google says that a link to save it
	// to Google Wallet was made. For an erased user nothing is recorded.
	Issue(ctx context.Context, couponID int64, google bool) error
	// Sheet returns the coupon as it is, or [coupon.ErrNotFound].
	Sheet(ctx context.Context, couponID int64) (Sheet, error)
	// Register stores that the device is woken with the token when the pass changes.
	// added says whether the registration is new. A device that is new to a pass which
	// has changed before is woken, since it may have an older version. It returns
	// [ErrUnknown] for a pass that was not issued, and [ErrFull] beyond [MaxDevices].
	Register(ctx context.Context, device string, couponID int64, token string) (added bool, err error)
	// Unregister removes the device; a device that is not registered is no error.
	Unregister(ctx context.Context, device string, couponID int64) error
	// Changed returns the passes of the device that changed at since or later, and
	// the latest of these instants.
	Changed(ctx context.Context, device string, since time.Time) (couponIDs []int64, latest time.Time, err error)
}

// A Bundler makes the file that Apple's devices add to Wallet. It is safe for
// concurrent use.
type Bundler interface {
	// PassType is the pass type identifier.
	PassType() string
	// Describe returns pass.json: equal for equal passes.
	Describe(p Pass, token string) ([]byte, error)
	// Bundle returns the signed bundle with described as its pass.json, in the
	// colours of p's shop.
	Bundle(p Pass, described []byte) ([]byte, error)
}

// A Linker makes links that save a pass to Google Wallet.
type Linker interface {
	Link(p Pass) (string, error)
}

// Service issues passes. Apple and Google are nil where they are not configured.
type Service struct {
	Store  Store
	Texts  message.Source
	Apple  Bundler
	Google Linker
	// Strip returns the files of the picture at an address for Apple's Wallet; nothing for a picture
	// that passes cannot have. nil = passes have no pictures.
	Strip func(ctx context.Context, address string) (map[string][]byte, error)
	// Signed makes the tokens of passes and of links to them; it must be enabled.
	Signed user.Links
	// Address is where this installation is reached, without a slash at the end.
	Address string
	Now     func() time.Time
}

// Links are where a phone gets the pass; "" = not configured.
type Links struct {
	Apple, Google string
	// Until is when Apple's link ends.
	Until time.Time
}

// LinkLasts is how long a link to a pass can be opened.
const LinkLasts = time.Hour

// Links returns the links to the pass of the owner's coupon. It returns [ErrOff]
// without a wallet, and [coupon.ErrNotFound] for another owner's coupon.
func (s *Service) Links(ctx context.Context, owner user.ID, couponID int64) (l Links, err error) {
	if s == nil || s.Apple == nil && s.Google == nil {
		return l, ErrOff
	}
	p, err := s.pass(ctx, owner, couponID, s.Google != nil)
	if err != nil {
		return l, err
	}
	if s.Apple != nil {
		l.Until = s.Now().Add(LinkLasts).Truncate(time.Second)
		l.Apple = s.Address + LinkPrefix + s.linkToken(couponID, l.Until) + ".pkpass"
	}
	if s.Google != nil {
		l.Google, err = s.Google.Link(p)
	}
	return l, err
}

// A File is a pass for Apple's Wallet.
type File struct {
	Pass      Pass
	described []byte
	bundler   Bundler
}

// Described returns the contents of the file without the signature, for
// comparisons: signatures of files with the same contents differ.
func (f File) Described() []byte { return f.described }

// Bundle returns the signed file.
func (f File) Bundle() ([]byte, error) { return f.bundler.Bundle(f.Pass, f.described) }

// File returns the pass of the owner's coupon. It returns [ErrOff] and
// [coupon.ErrNotFound] as [Service.Links] does.
func (s *Service) File(ctx context.Context, owner user.ID, couponID int64) (File, error) {
	if s == nil || s.Apple == nil {
		return File{}, ErrOff
	}
	p, err := s.pass(ctx, owner, couponID, false)
	if err != nil {
		return File{}, err
	}
	if s.Strip != nil && p.Picture != "" {
		if p.Strip, err = s.Strip(ctx, p.Picture); err != nil {
			p.Strip = nil // a coupon without its picture is better than no coupon
		}
	}
	described, err := s.Apple.Describe(p, s.token(couponID))
	return File{Pass: p, described: described, bundler: s.Apple}, err
}

// pass records that the coupon has a pass and returns it. The record is stored
// first, so that every later change of the coupon changes the pass.
func (s *Service) pass(ctx context.Context, owner user.ID, couponID int64, google bool) (Pass, error) {
	sheet, err := s.Store.Sheet(ctx, couponID)
	if err == nil && owner != 0 && sheet.Coupon.UserID != owner {
		err = coupon.ErrNotFound
	}
	if err != nil {
		return Pass{}, err
	}
	if err := s.Store.Issue(ctx, couponID, google); err != nil {
		return Pass{}, err
	}
	if sheet, err = s.Store.Sheet(ctx, couponID); err != nil {
		return Pass{}, err
	}
	book, err := s.Texts.Book(ctx, message.Place{Shop: sheet.ShopNumber, Template: sheet.Coupon.TemplateID}, sheet.TextsUpTo)
	return passOf(sheet, book), err
}

// Purposes keep the signatures of tokens apart.
const (
	passPurpose = "dropbell wallet pass"
	linkPurpose = "dropbell wallet link"
)

// LinkPrefix is the path of links to passes.
const LinkPrefix = "/wallet/passes/"

// token returns the authentication token of the pass. It is derived from the secret
// of links, so no token is stored; it is accepted as long as that secret is
// configured.
func (s *Service) token(couponID int64) string {
	return s.Signed.Seal(passPurpose, binary.BigEndian.AppendUint64(nil, uint64(couponID)))
}

// verify returns the coupon of a pass whose serial number and token a device sends.
// The signature is compared in constant time.
func (s *Service) verify(serial, token string) (int64, error) {
	body, err := s.Signed.Unseal(passPurpose, token, 8)
	if err != nil {
		return 0, ErrToken
	}
	id := int64(binary.BigEndian.Uint64(body))
	if strconv.FormatInt(id, 10) != serial {
		return 0, ErrToken
	}
	return id, nil
}

func (s *Service) linkToken(couponID int64, until time.Time) string {
	body := binary.BigEndian.AppendUint64(nil, uint64(couponID))
	return s.Signed.Seal(linkPurpose, binary.BigEndian.AppendUint64(body, uint64(until.Unix())))
}

// Linked returns the pass behind a link. It returns [ErrUnknown] for a link that was
// not made here or has ended, and [ErrOff] without Apple's wallet.
func (s *Service) Linked(ctx context.Context, token string) (File, error) {
	if s == nil || s.Apple == nil {
		return File{}, ErrOff
	}
	body, err := s.Signed.Unseal(linkPurpose, token, 16)
	if err != nil || s.Now().Unix() >= int64(binary.BigEndian.Uint64(body[8:])) {
		return File{}, ErrUnknown
	}
	return s.File(ctx, 0, int64(binary.BigEndian.Uint64(body)))
}

// Devices of Apple call the operations below; see "Adding a Web Service to Update
// Passes" of Apple's documentation.

// Register stores that a device has the pass and is woken by pushToken. It returns
// [ErrToken], [ErrUnknown] and [ErrFull].
func (s *Service) Register(ctx context.Context, device, serial, token, pushToken string) (added bool, err error) {
	id, err := s.verify(serial, token)
	if err != nil {
		return false, err
	}
	return s.Store.Register(ctx, device, id, pushToken)
}

// Unregister removes a device that no longer has the pass. It returns [ErrToken].
func (s *Service) Unregister(ctx context.Context, device, serial, token string) error {
	id, err := s.verify(serial, token)
	if err != nil {
		return err
	}
	return s.Store.Unregister(ctx, device, id)
}

// Updated returns the serial numbers of the device's passes that changed since tag (""
// = ever), and the tag for the next call. A tag that was not made here counts as "".
func (s *Service) Updated(ctx context.Context, device, tag string) (serials []string, next string, err error) {
	since := time.Unix(0, 0)
	if seconds, err := strconv.ParseInt(tag, 10, 48); err == nil && seconds > 0 {
		since = time.Unix(seconds, 0).Add(-overlap)
	}
	ids, latest, err := s.Store.Changed(ctx, device, since)
	for _, id := range ids {
		serials = append(serials, strconv.FormatInt(id, 10))
	}
	return serials, strconv.FormatInt(latest.Unix(), 10), err
}

// Current returns the pass that a device asks for. It returns [ErrToken].
func (s *Service) Current(ctx context.Context, serial, token string) (File, error) {
	id, err := s.verify(serial, token)
	if err != nil {
		return File{}, err
	}
	return s.File(ctx, 0, id)
}
