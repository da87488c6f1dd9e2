// Package verification proves that a phone number belongs to a user: the user enters
// a code that was sent to the number by text message.
package verification

import (
	"context"
	"errors"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// Faults of users. None says whether another user has the number.
var (
	// ErrNoNumber is returned if no number was given and none is stored.
	ErrNoNumber = fault.New(fault.Conflict, "phone_missing", "no phone number is stored; send the number that is to be verified")
	// ErrOptedOut is returned to a user whom no text message may be sent to.
	ErrOptedOut = fault.New(fault.Conflict, "sms_opted_out", "the user has opted out of text messages; take that back first")
	// ErrTooMany is returned, as a [fault.RetryAfter], to a user who asks for too many
	// codes.
	ErrTooMany = fault.New(fault.Throttled, "too_many_codes", "too many codes were requested; wait a moment")
	// ErrWrong is returned for a code that is not the last code that was sent.
	ErrWrong = fault.New(fault.Invalid, "phone_code_wrong", "this is not the code that was sent last; enter that one")
	// ErrNoCode is returned if no code is valid: no code was requested, or the code
	// has expired, was used, or was entered wrongly too often.
	ErrNoCode = fault.New(fault.Conflict, "phone_code_expired", "no code is valid any longer; request a new one")
)

// Limits of codes.
const (
	// CodeFor is how long a code is valid.
	CodeFor = 10 * time.Minute
	// MaxAttempts is how often one code may be entered.
	MaxAttempts = 5
	// AgainAfter is how long a user waits before requesting another code.
	AgainAfter = 30 * time.Second
	// PerHour and PerDay are how many codes a user may request in an hour and in a
	// day, and how many are sent to one number, whichever users request them.
	PerHour = 5
	PerDay  = 10
)

// A Wish is a user's request.
type Wish struct {
	// Phone is the number in E.164; empty = the stored one.
	Phone string
	// Locale is the language of the message, BCP 47; empty = the stored one.
	Locale string
}

// An Opening is a request that is to be stored.
type Opening struct {
	Request
	// Number is Phone in its usual form, Forms all ways to write it.
	Number string
	Forms  []string
	Locale string
}

// An Opened is a request that was stored.
type Opened struct {
	Phone string
	// ExpiresAt is until when the code is valid if it is sent at once. AgainAt is when
	// another code may be requested.
	ExpiresAt, AgainAt time.Time
}

// Store stores requests for users.
type Store interface {
	// Open stores a request. The request is held, without an error, if the number has had
	// too many codes, or if another user proved by STOP or by a code that the number is
	// theirs and wants no text messages. It returns [ErrTooMany] wrapped in a
	// [fault.RetryAfter] for a user who requested too many codes, and [user.ErrErased].
	Open(ctx context.Context, o Opening) (Opened, error)
	// Try counts an attempt for the user's last request, and then calls match with the
	// request and the hash of its code, which may be empty. If match returns true, the
	// number becomes the user's verified number. Try returns the number, [ErrWrong],
	// [ErrNoCode] or [user.ErrErased]. Only an attempt that was counted is compared.
	Try(ctx context.Context, id user.ID, match func(r Request, hash []byte) bool) (phone string, err error)
}

// Users reads the stored data of users.
type Users interface {
	// User returns [user.ErrNotFound] if nothing is known about the id.
	User(ctx context.Context, id user.ID) (user.User, error)
}

// Numbers understands phone numbers.
type Numbers struct {
	// Usual returns the usual form of a number in E.164, or an error.
	Usual func(phone string) (string, error)
	// Forms returns all ways to write a number in its usual form.
	Forms func(number string) []string
	// Country returns its country's ISO 3166 code.
	Country func(number string) string
}

// Service holds the use cases of users.
type Service struct {
	Store Store
	Users Users
	Keys  Keys
	// Sends is whether text messages can be sent at all.
	Sends   func() bool
	Numbers Numbers
	// Countries are the countries to whose numbers codes are sent, by ISO 3166 codes;
	// none = all.
	Countries []string
}

// Request has a code sent to the number. It returns a [fault.Fields],
// [delivery.ErrChannelUnavailable], or one of the faults of this package.
func (s *Service) Request(ctx context.Context, id user.ID, w Wish) (Opened, error) {
	if !s.Keys.Enabled() || !s.Sends() {
		return Opened{}, delivery.ErrChannelUnavailable
	}
	u, err := s.Users.User(ctx, id)
	if err != nil && !errors.Is(err, user.ErrNotFound) {
		return Opened{}, err
	}
	o := Opening{Request: Request{User: id, Phone: w.Phone}, Locale: w.Locale}
	if o.Locale == "" {
		o.Locale = u.Locale
	}
	if o.Phone == "" {
		o.Phone = u.Phone
	}
	switch {
	case o.Phone == "":
		return Opened{}, ErrNoNumber
	case u.OptOuts&delivery.SMS.Bit() != 0:
		return Opened{}, ErrOptedOut
	}
	if err := s.check(&o, w); err != nil {
		return Opened{}, err
	}
	// The stored number keeps its spelling: the shop's next import has the same one.
	if same, err := s.Numbers.Usual(u.Phone); err == nil && same == o.Number {
		o.Phone = u.Phone
	}
	o.Forms = s.Numbers.Forms(o.Number)
	return s.Store.Open(ctx, o)
}

// check finds the usual form of the number, in which a new one is stored.
func (s *Service) check(o *Opening, w Wish) (err error) {
	e := &fault.Fields{}
	if o.Number, err = s.Numbers.Usual(o.Phone); err != nil || !user.ValidPhone(o.Phone) {
		e.Add("phone", "rule.phone", "must be an E.164 number such as +8613800138000")
	} else if len(s.Countries) > 0 && !slices.Contains(s.Countries, s.Numbers.Country(o.Number)) {
		e.Add("phone", "rule.phone_country", "is a number of a country to which no text messages are sent")
	}
	if !user.ValidLocale(w.Locale) {
		e.Add("locale", "rule.locale", "must be a BCP 47 language tag such as zh-CN")
	}
	if w.Phone != "" && o.Number != "" {
		o.Phone = o.Number
	}
	return e.Err()
}

// Confirm verifies the number of the user's last request by the code that was sent to
// it, and returns the number, which is the user's from then on. It returns [ErrWrong],
// [ErrNoCode] or [user.ErrErased].
func (s *Service) Confirm(ctx context.Context, id user.ID, typed string) (phone string, err error) {
	code, possible := typedCode(typed)
	if !possible { // no code can be like it: not counted
		return "", ErrWrong
	}
	return s.Store.Try(ctx, id, func(r Request, hash []byte) bool {
		return len(hash) > 0 && s.Keys.Match(hash, r, code)
	})
}
