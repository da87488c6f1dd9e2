package staff

import (
	"context"
	"strings"
	"time"

	"dropbell/domain/fault"
)

// FactorStore keeps second factors and recovery codes.
type FactorStore interface {
	Factors(ctx context.Context, staffID int64) ([]Factor, error)
	// NewFactorID draws the id of a new second factor, for which its secret is sealed.
	NewFactorID(ctx context.Context) (int64, error)
	// InsertFactor stores f under its id. It returns [ErrFactorTaken] and [ErrManyFactors]. It
	// stores the hashes of recovery codes if the member has no recovery codes; codesUsed reports
	// that.
	InsertFactor(ctx context.Context, f Factor, hashes [][]byte, e Entry) (codesUsed bool, err error)
	// RenameFactor and RemoveFactor return [ErrFactorNotFound]. RemoveFactor
	// returns [ErrLastFactor] if keepOne is set and the member has no other factor.
	// Removing the last factor removes the recovery codes.
	RenameFactor(ctx context.Context, staffID, id int64, name string, e Entry) error
	RemoveFactor(ctx context.Context, f Factor, keepOne bool, e Entry) error
	// UseProof stores that the proof was used and, in the same transaction, the
	// sign-in in that it opens; nil = no sign-in. It returns [ErrSecondFactor] if
	// the proof was used before.
	UseProof(ctx context.Context, staffID int64, p Proof, in *SignIn, e Entry) error
	// RecoveryCodesLeft returns how many were not used yet.
	RecoveryCodesLeft(ctx context.Context, staffID int64) (int, error)
	ReplaceRecoveryCodes(ctx context.Context, staffID int64, hashes [][]byte, e Entry) error
	// ResetFactors removes second factors, recovery codes and the link to the identity provider, and ends all
	// sign-ins. It returns how many factors there were.
	ResetFactors(ctx context.Context, staffID int64, e Entry) (int, error)
	Policy(ctx context.Context) (Policy, error)
	SavePolicy(ctx context.Context, p Policy, e Entry) error
}

// A OneTimeSecret is shown once to be taken over by an authenticator app.
type OneTimeSecret struct {
	Secret string // base32, to be typed
	URI    string // otpauth://…
	QR     []byte // the URI as a picture, PNG
}

// OneTimeCodes makes and checks time-based one-time codes (RFC 6238). stored is a
// secret in its form at rest, bound to the row for which it was made.
type OneTimeCodes interface {
	New(row string) (stored []byte, err error)
	// Show and Step return [ErrSealed] if stored cannot be read, or is of another row.
	Show(row string, stored []byte, account string) (OneTimeSecret, error)
	// Step returns the time step whose code this is, at most one away from now.
	Step(row string, stored []byte, code string, now time.Time) (step int64, ok bool, err error)
}

// A Ceremony is one question to a browser's authenticators. The browser gets the
// options. The server keeps the state until the answer arrives, and uses it for one
// answer.
type Ceremony struct{ Options, State []byte }

// A PasskeyAnswer is a browser's answer to a [Ceremony].
type PasskeyAnswer struct {
	Party         Party
	State, Answer []byte
}

// An Owner is a member with their passkeys.
type Owner struct {
	Member
	Passkeys []Factor
}

// Passkeys requests passkeys (WebAuthn) from browsers. It returns
// [ErrSecondFactor] for answers that prove nothing.
type Passkeys interface {
	Enrol(p Party, who Owner) (Ceremony, error)
	Enrolled(who Owner, a PasskeyAnswer) (Factor, error)
	Ask(p Party, who Owner) (Ceremony, error)
	// Answered returns the passkey that answered, as it is to be stored now.
	Answered(who Owner, a PasskeyAnswer) (Factor, error)
}

// An Answer proves a member's identity: a code of an authenticator app, a recovery
// code, or a passkey.
type Answer struct {
	Code    string
	Passkey *PasskeyAnswer
}

// SecondStep completes a sign-in whose password was right. It returns
// [ErrHalfSignIn] if the first step is no longer valid, [ErrSecondFactor], or
// [ErrSealed].
func (s *Service) SecondStep(ctx context.Context, h HalfSignIn, a Answer, from Client) (Member, SignIn, error) {
	m, err := s.HalfWay(ctx, h)
	if err != nil {
		return Member{}, SignIn{}, err
	}
	p, err := s.prove(ctx, m, a)
	if err != nil {
		return m, SignIn{}, err
	}
	in := s.newSignIn(m, from)
	e := m.entry(m.Actor(), "staff.sign_in")
	e.After = map[string]string{"second_factor": string(p.kind())}
	return m, in, s.Store.UseProof(ctx, m.ID, p, &in, e)
}

// HalfWay returns the member of a first step that is still valid, otherwise
// [ErrHalfSignIn].
func (s *Service) HalfWay(ctx context.Context, h HalfSignIn) (Member, error) {
	m, err := s.Store.Member(ctx, h.StaffID)
	if fault.KindOf(err) == fault.NotFound || err == nil && !h.holds(m, s.Now()) {
		return Member{}, ErrHalfSignIn
	}
	return m, err
}

func (s *Service) prove(ctx context.Context, m Member, a Answer) (Proof, error) {
	all, err := s.Store.Factors(ctx, m.ID)
	if err != nil {
		return Proof{}, err
	}
	if a.Passkey != nil {
		f, err := s.Passkeys.Answered(Owner{m, passkeysOf(all)}, *a.Passkey)
		return Proof{Factor: f}, err
	}
	code, ok := oneTime(a.Code)
	if !ok {
		return Proof{RecoveryHash: hashRecovery(a.Code)}, nil
	}
	return s.proveCode(all, code)
}

// proveCode finds the authenticator app that the code is of.
func (s *Service) proveCode(all []Factor, code string) (Proof, error) {
	refusal := error(ErrSecondFactor)
	for _, f := range all {
		if f.Kind != TOTP {
			continue
		}
		step, ok, err := s.Codes.Step(f.row(), f.Secret, code, s.Now())
		if err != nil {
			refusal = err
		}
		if ok && step > f.Counter {
			f.Counter = step
			return Proof{Factor: f}, nil
		}
	}
	return Proof{}, refusal
}

func passkeysOf(all []Factor) (list []Factor) {
	for _, f := range all {
		if f.Kind == Passkey {
			list = append(list, f)
		}
	}
	return list
}

// AskPasskey begins a ceremony for one of m's passkeys. The ceremony is empty if m
// has no passkey, or if the console's address permits none.
func (s *Service) AskPasskey(ctx context.Context, p Party, m Member) (Ceremony, error) {
	all, err := s.Store.Factors(ctx, m.ID)
	keys := passkeysOf(all)
	if err != nil || len(keys) == 0 || p.ID == "" {
		return Ceremony{}, err
	}
	return s.Passkeys.Ask(p, Owner{m, keys})
}

// Confirm checks again that the person at the browser is m: by m's password, or as
// in [Service.SecondStep] if a is not empty.
func (s *Service) Confirm(ctx context.Context, m Member, password string, a Answer) error {
	m, err := s.Store.Member(ctx, m.ID)
	if err != nil {
		return err
	}
	e := m.entry(m.Actor(), "staff.confirm")
	if a == (Answer{}) {
		ok, err := s.Passwords.Matches(ctx, password, m.PasswordHash)
		if err != nil {
			return err
		}
		if !ok {
			return ErrSignIn
		}
		e.After = map[string]string{"confirmed_by": "password"}
		return s.Store.Record(ctx, e)
	}
	p, err := s.prove(ctx, m, a)
	if err != nil {
		return err
	}
	e.After = map[string]string{"confirmed_by": string(p.kind())}
	return s.Store.UseProof(ctx, m.ID, p, nil, e)
}

// ConfirmWith checks that the identity provider authenticated m again after the
// attempt began. It returns [ErrSingleSignOn] for another identity, and
// [ErrNotAskedAgain].
func (s *Service) ConfirmWith(ctx context.Context, m Member, who Identity, a Attempt) error {
	known, err := s.Store.MemberByIdentity(ctx, who.Issuer, who.Subject)
	same := err == nil && known.ID == m.ID
	if fault.KindOf(err) == fault.NotFound { // signed in before members were linked
		same, err = m.Subject == "" && who.Verified && NormalEmail(who.Email) == NormalEmail(m.Email), nil
	}
	if err == nil && !same {
		return ErrSingleSignOn
	}
	if err != nil {
		return err
	}
	if who.At.Before(a.At.Add(-time.Minute)) {
		return ErrNotAskedAgain
	}
	e := m.entry(m.Actor(), "staff.confirm")
	e.After = map[string]string{"confirmed_by": string(BySingleSignOn)}
	return s.Store.Record(ctx, e)
}

// Security is the content of a member's page of second factors.
type Security struct {
	Factors []Factor
	// CodesLeft is how many recovery codes were not used yet.
	CodesLeft int
	// Password is set if the member has one.
	Password bool
}

// SecurityOf returns the member's second factors.
func (s *Service) SecurityOf(ctx context.Context, m Member) (out Security, err error) {
	if out.Factors, err = s.Store.Factors(ctx, m.ID); err != nil {
		return out, err
	}
	if out.CodesLeft, err = s.Store.RecoveryCodesLeft(ctx, m.ID); err != nil {
		return out, err
	}
	m, err = s.Store.Member(ctx, m.ID)
	out.Password = m.PasswordHash != ""
	return out, err
}

// BeginCode makes the id and the secret of a new authenticator app of m. The app is a
// second factor once [Service.AddCode] has checked a code of it.
func (s *Service) BeginCode(ctx context.Context, m Member) (f Factor, err error) {
	f = Factor{StaffID: m.ID, Kind: TOTP}
	if f.ID, err = s.Store.NewFactorID(ctx); err == nil {
		f.Secret, err = s.Codes.New(f.row())
	}
	return f, err
}

// ShowCode returns the secret of [Service.BeginCode] for taking it over.
func (s *Service) ShowCode(m Member, f Factor) (OneTimeSecret, error) {
	return s.Codes.Show(f.row(), f.Secret, m.Email)
}

// AddCode enrols the authenticator app that [Service.BeginCode] has made for m. It
// returns recovery codes if the member had none. It returns a [fault.Fields] for a
// wrong name or code.
func (s *Service) AddCode(ctx context.Context, m Member, f Factor, in FactorInput) ([]string, error) {
	e := &fault.Fields{}
	name := in.name(e)
	code, ok := oneTime(in.Code)
	if !ok {
		e.Add("passcode", "rule.one_time_code", "must be the six digits that the app shows")
	}
	if err := e.Err(); err != nil {
		return nil, err
	}
	step, ok, err := s.Codes.Step(f.row(), f.Secret, code, s.Now())
	if err != nil {
		return nil, err
	}
	if !ok {
		e.Add("passcode", "rule.one_time_wrong", "is not what the app shows now; check the clock of the device")
		return nil, e.Err()
	}
	f.Kind, f.Name, f.Handle, f.Counter = TOTP, name, HashSecret("totp\x00"+string(f.Secret)), step
	return s.insert(ctx, m, f)
}

// A FactorInput is a member's input for a new second factor.
type FactorInput struct{ Name, Code string }

func (in FactorInput) name(e *fault.Fields) string {
	name := strings.TrimSpace(in.Name)
	if name == "" {
		e.Add("name", "rule.required", "is required")
	} else {
		checkName(e, name, 60)
	}
	return name
}

// BeginPasskey begins to enrol a passkey, or returns [ErrNoPasskeysHere].
func (s *Service) BeginPasskey(ctx context.Context, p Party, m Member) (Ceremony, error) {
	if p.ID == "" {
		return Ceremony{}, ErrNoPasskeysHere
	}
	all, err := s.Store.Factors(ctx, m.ID)
	if err != nil {
		return Ceremony{}, err
	}
	return s.Passkeys.Enrol(p, Owner{m, passkeysOf(all)})
}

// AddPasskey enrols the passkey that a browser made. It returns recovery codes if
// the member had none. It returns [ErrSecondFactor] or a [fault.Fields].
func (s *Service) AddPasskey(ctx context.Context, m Member, in FactorInput, a PasskeyAnswer) ([]string, error) {
	e := &fault.Fields{}
	name := in.name(e)
	if err := e.Err(); err != nil {
		return nil, err
	}
	f, err := s.Passkeys.Enrolled(Owner{Member: m}, a)
	if err != nil {
		return nil, err
	}
	if f.ID, err = s.Store.NewFactorID(ctx); err != nil {
		return nil, err
	}
	f.Kind, f.Name = Passkey, name
	return s.insert(ctx, m, f)
}

func (s *Service) insert(ctx context.Context, m Member, f Factor) ([]string, error) {
	f.StaffID = m.ID
	e := m.entry(m.Actor(), "staff.add_second_factor")
	e.After = f.shown()
	codes := newRecoveryCodes()
	used, err := s.Store.InsertFactor(ctx, f, hashesOf(codes), e)
	if err != nil || !used {
		return nil, err
	}
	return codes, nil
}
