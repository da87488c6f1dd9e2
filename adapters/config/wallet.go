package config

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"regexp"
)

// Wallet is the identity under which passes of coupons are issued.
type Wallet struct {
	// TypeID and TeamID are the pass type identifier and the developer team at Apple.
	TypeID, TeamID string
	// Certificate, Key and WWDR are PEM: the certificate of the pass type, its key, and
	// Apple's intermediate certificate.
	Certificate, Key, WWDR string
	// PushURL is the push service that wakes devices.
	PushURL string
	// GoogleAccount is the JSON file of a service account, GoogleIssuer the issuer's number.
	GoogleAccount, GoogleIssuer string
	GoogleURL                   string
}

// Apple reports whether passes for Apple's Wallet are issued.
func (w Wallet) Apple() bool { return w.TypeID != "" }

// Google reports whether passes for Google Wallet are issued.
func (w Wallet) Google() bool { return w.GoogleIssuer != "" }

var (
	passTypeID   = regexp.MustCompile(`^pass(\.[A-Za-z0-9-]+)+$`)
	googleIssuer = regexp.MustCompile(`^[0-9]{8,20}$`)
)

func walletVariables() []Variable {
	field := func(f func(*Wallet) *string) func(*Config) *string {
		return func(c *Config) *string { return f(&c.Wallet) }
	}
	matching := func(pattern *regexp.Regexp, f func(*Wallet) *string, msg string) reader {
		return func(c *Config, v string) error {
			*f(&c.Wallet) = v
			if v != "" && !pattern.MatchString(v) {
				return errors.New(msg)
			}
			return nil
		}
	}
	return []Variable{
		{"PASS_TYPE_ID", "", "passes for Apple's Wallet: the pass type identifier, such as pass.com.example.coupons; with LINK_SECRET, which signs the tokens of passes",
			matching(passTypeID, func(w *Wallet) *string { return &w.TypeID }, "must be a pass type identifier, such as pass.com.example.coupons")},
		{"PASS_TEAM_ID", "", "passes for Apple's Wallet: id of the developer team, ten characters", appleID(field(func(w *Wallet) *string { return &w.TeamID }))},
		{"PASS_CERTIFICATE", "", "passes for Apple's Wallet: certificate of the pass type, PEM, or the same in base64 on one line", passCertificate(func(w *Wallet) *string { return &w.Certificate })},
		{"PASS_KEY", "", "passes for Apple's Wallet: private key of that certificate, RSA, PEM without a password, or the same in base64 on one line", passKey},
		{"PASS_WWDR", "", "passes for Apple's Wallet: Apple's intermediate certificate that issued PASS_CERTIFICATE (WWDR), PEM, or the same in base64 on one line", passCertificate(func(w *Wallet) *string { return &w.WWDR })},
		{"PASS_PUSH_URL", "https://api.push.apple.com", "passes for Apple's Wallet: Apple's service that tells devices of changes", pushAddress(field(func(w *Wallet) *string { return &w.PushURL }), "https://api.push.apple.com")},
		{"GOOGLE_WALLET_ACCOUNT", "", "passes for Google Wallet: the service account's JSON file as Google issued it, or the same in base64 on one line", walletAccount},
		{"GOOGLE_WALLET_ISSUER", "", "passes for Google Wallet: the issuer ID of the Google Pay & Wallet Console",
			matching(googleIssuer, func(w *Wallet) *string { return &w.GoogleIssuer }, "must be the number of the issuer, as the Google Pay & Wallet Console shows it")},
		{"GOOGLE_WALLET_URL", "https://walletobjects.googleapis.com", "passes for Google Wallet: Google's service", pushAddress(field(func(w *Wallet) *string { return &w.GoogleURL }), "https://walletobjects.googleapis.com")},
	}
}

// certificateOf returns the first certificate of a PEM file, nil if it holds none.
func certificateOf(file string) *x509.Certificate {
	for rest := []byte(file); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		return c
	}
}

func passCertificate(field func(*Wallet) *string) reader {
	return func(c *Config, v string) error {
		if v == "" {
			return nil
		}
		// A file that openssl made may begin with lines about the certificate.
		file := fileOf(v, "-----BEGIN")
		if bytes.Contains([]byte(v), []byte("-----BEGIN CERTIFICATE-----")) {
			file = v
		}
		*field(&c.Wallet) = file
		if certificateOf(file) == nil {
			return errors.New("must be a certificate in PEM, with its lines -----BEGIN CERTIFICATE-----, or the same in base64 (openssl x509 -inform der -in pass.cer, then base64 -w0)")
		}
		return nil
	}
}

func passKey(c *Config, v string) error {
	if v == "" {
		return nil
	}
	file := fileOf(v, "-----BEGIN")
	if bytes.Contains([]byte(v), []byte("-----BEGIN")) {
		file = v
	}
	c.Wallet.Key = file
	block, _ := pem.Decode([]byte(file))
	if block != nil {
		if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return nil
		}
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if _, ok := parsed.(*rsa.PrivateKey); err == nil && ok {
			return nil
		}
	}
	return errors.New("must be an RSA key in PEM without a password, with its lines -----BEGIN … KEY-----, or the same in base64 (openssl rsa -in pass.key, then base64 -w0)")
}

func walletAccount(c *Config, v string) error {
	if v == "" {
		return nil
	}
	file, err := accountFile(v)
	c.Wallet.GoogleAccount = file
	return err
}

// userID is the attribute of a certificate's subject that holds the pass type
// identifier (RFC 4519, section 2.39).
var userID = asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}

// walletTogether checks the rules that concern several variables of passes.
func (c Config) walletTogether(all func(names []string, values ...string), need func(bool, string)) {
	w := c.Wallet
	all([]string{"PASS_TYPE_ID", "PASS_TEAM_ID", "PASS_CERTIFICATE", "PASS_KEY", "PASS_WWDR"}, w.TypeID, w.TeamID, w.Certificate, w.Key, w.WWDR)
	all([]string{"GOOGLE_WALLET_ACCOUNT", "GOOGLE_WALLET_ISSUER"}, w.GoogleAccount, w.GoogleIssuer)
	need(c.LinkSecret != "" || !w.Apple() || c.reported(), "LINK_SECRET is missing: it signs the tokens of passes")
	certificate, wwdr := certificateOf(w.Certificate), certificateOf(w.WWDR)
	if certificate == nil || wwdr == nil || w.Key == "" {
		return
	}
	_, err := tls.X509KeyPair([]byte(w.Certificate), []byte(w.Key))
	need(err == nil, "PASS_KEY does not belong to PASS_CERTIFICATE: give the key with which the certificate was requested")
	need(certificate.CheckSignatureFrom(wwdr) == nil, "PASS_WWDR did not issue PASS_CERTIFICATE: its issuer's name says which of Apple's intermediate certificates did, such as G4")
	for _, name := range certificate.Subject.Names {
		if id, ok := name.Value.(string); ok && name.Type.Equal(userID) {
			need(w.TypeID == "" || id == w.TypeID, "PASS_TYPE_ID is not the pass type of PASS_CERTIFICATE")
		}
	}
	for _, unit := range certificate.Subject.OrganizationalUnit {
		need(w.TeamID == "" || unit == w.TeamID, "PASS_TEAM_ID is not the team of PASS_CERTIFICATE")
	}
}
