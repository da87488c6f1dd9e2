// Package passkey registers and verifies passkeys: Web Authentication, Level 3.
package passkey

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"dropbell/domain/staff"
)

// Passkeys implements [staff.Passkeys].
type Passkeys struct{}

// party returns the library's view of the site.
func party(p staff.Party) (*webauthn.WebAuthn, error) {
	return webauthn.New(&webauthn.Config{RPID: p.ID, RPDisplayName: "Dropbell", RPOrigins: []string{p.Origin},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementDiscouraged, UserVerification: protocol.VerificationPreferred},
	})
}

// owner is a member as the library wants one.
type owner struct {
	staff.Owner
	keys webauthn.Credentials
}

func ownerOf(o staff.Owner) (owner, error) {
	out := owner{Owner: o}
	for _, f := range o.Passkeys {
		var c webauthn.Credential
		if err := json.Unmarshal(f.Secret, &c); err != nil {
			return out, fmt.Errorf("passkey %d: %w", f.ID, err)
		}
		out.keys = append(out.keys, c)
	}
	return out, nil
}

// WebAuthnID is the member's id that authenticators keep: a number without a meaning outside
// this installation.
func (o owner) WebAuthnID() []byte                         { return []byte("staff:" + strconv.FormatInt(o.ID, 10)) }
func (o owner) WebAuthnName() string                       { return o.Email }
func (o owner) WebAuthnDisplayName() string                { return o.Actor().Name }
func (o owner) WebAuthnCredentials() []webauthn.Credential { return o.keys }

// Enrol begins to enrol another passkey.
func (Passkeys) Enrol(p staff.Party, who staff.Owner) (staff.Ceremony, error) {
	w, err := party(p)
	if err != nil {
		return staff.Ceremony{}, err
	}
	o, err := ownerOf(who)
	if err != nil {
		return staff.Ceremony{}, err
	}
	options, state, err := w.BeginRegistration(o, webauthn.WithExclusions(o.keys.CredentialDescriptors()))
	if err != nil {
		return staff.Ceremony{}, err
	}
	return ceremony(options.Response, state)
}

// Ask begins to ask for one of the member's passkeys.
func (Passkeys) Ask(p staff.Party, who staff.Owner) (staff.Ceremony, error) {
	w, err := party(p)
	if err != nil {
		return staff.Ceremony{}, err
	}
	o, err := ownerOf(who)
	if err != nil {
		return staff.Ceremony{}, err
	}
	options, state, err := w.BeginLogin(o)
	if err != nil {
		return staff.Ceremony{}, err
	}
	return ceremony(options.Response, state)
}

func ceremony(options any, state *webauthn.SessionData) (c staff.Ceremony, err error) {
	if c.Options, err = json.Marshal(options); err != nil {
		return c, err
	}
	c.State, err = json.Marshal(state)
	return c, err
}

// begun returns the site and the state of the question that a answers.
func begun(a staff.PasskeyAnswer) (*webauthn.WebAuthn, webauthn.SessionData, error) {
	var state webauthn.SessionData
	if a.Party.ID == "" || json.Unmarshal(a.State, &state) != nil {
		return nil, state, staff.ErrSecondFactor.Because("nobody asked for a passkey")
	}
	w, err := party(a.Party)
	return w, state, err
}

// refused is why an answer proves nothing.
func refused(err error) error {
	return fmt.Errorf("%w: %w", staff.ErrSecondFactor, err)
}

// Enrolled returns the passkey that the browser has made.
func (Passkeys) Enrolled(who staff.Owner, a staff.PasskeyAnswer) (staff.Factor, error) {
	w, state, err := begun(a)
	if err != nil {
		return staff.Factor{}, err
	}
	answer, err := protocol.ParseCredentialCreationResponseBytes(a.Answer)
	if err != nil {
		return staff.Factor{}, refused(err)
	}
	key, err := w.CreateCredential(owner{Owner: who}, state, answer)
	if err != nil {
		return staff.Factor{}, refused(err)
	}
	key.Attestation = webauthn.CredentialAttestation{} // no attestation
	secret, err := json.Marshal(key)
	return staff.Factor{Kind: staff.Passkey, Handle: key.ID, Secret: secret}, err
}

// Answered returns the passkey that answered. It refuses a passkey whose signature counter went
// back, because the passkey may have been copied.
func (Passkeys) Answered(who staff.Owner, a staff.PasskeyAnswer) (staff.Factor, error) {
	w, state, err := begun(a)
	if err != nil {
		return staff.Factor{}, err
	}
	o, err := ownerOf(who)
	if err != nil {
		return staff.Factor{}, err
	}
	answer, err := protocol.ParseCredentialRequestResponseBytes(a.Answer)
	if err != nil {
		return staff.Factor{}, refused(err)
	}
	key, err := w.ValidateLogin(o, state, answer)
	if err != nil {
		return staff.Factor{}, refused(err)
	}
	if key.Authenticator.CloneWarning {
		return staff.Factor{}, staff.ErrSecondFactor.Because("the passkey's count of signatures went back")
	}
	for _, f := range who.Passkeys {
		if string(f.Handle) == string(key.ID) {
			f.Counter++
			f.Secret, err = json.Marshal(key)
			return f, err
		}
	}
	return staff.Factor{}, staff.ErrSecondFactor
}
