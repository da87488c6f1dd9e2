package smtp

import (
	"bufio"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"

	"github.com/emersion/go-msgauth/dkim"
	gomail "github.com/wneessen/go-mail"
)

// Record returns the TXT record that publishes the public half of the key.
func (d DKIM) Record() string {
	switch key := d.Key.Public().(type) {
	case ed25519.PublicKey: // the bare key (RFC 8463, section 4)
		return "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(key)
	default:
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			return "" // ParseDKIMKey returns no such key
		}
		return "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(der)
	}
}

// minRSA is the length in bits below which receivers distrust a key (RFC 8301).
const minRSA = 2048

// DKIM signs mails (RFC 6376) in the name of a domain whose DNS has the public key.
type DKIM struct {
	Domain, Selector string
	// Key is an RSA key of 2048 bits or more, or an Ed25519 key (RFC 8463).
	Key crypto.Signer
}

// ParseDKIMKey reads a private key in PEM, PKCS #8 or PKCS #1.
func ParseDKIMKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("must be a private key in PEM, with its lines -----BEGIN PRIVATE KEY-----")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	switch key := parsed.(type) {
	case *rsa.PrivateKey:
		if err == nil && key.N.BitLen() >= minRSA {
			return key, nil
		}
	case ed25519.PrivateKey:
		return key, nil
	}
	return nil, errors.New("must be an RSA key of 2048 bits or more, or an Ed25519 key, not encrypted")
}

// signedHeaders are the header fields that a signature covers. A listed field that the mail
// lacks may not be added later. From, To and Subject are listed twice, so that nobody can add a
// second field, which mail programs might show instead.
func signedHeaders() []string {
	return strings.Fields(`From To Subject Date Message-ID MIME-Version Content-Type Content-Transfer-Encoding
		Auto-Submitted List-Unsubscribe List-Unsubscribe-Post From To Subject`)
}

// sign adds the signature's header to the mail. sign writes the mail once into the hash, in
// addition to the write for the server, so no copy of the mail is held. Both writes must be
// equal. The body is signed without canonicalization (simple): it is encoded, so no server has a
// reason to change its white space.
func (s *Sender) sign(m *gomail.Msg) error {
	signer, err := dkim.NewSigner(&dkim.SignOptions{Domain: s.cfg.DKIM.Domain, Selector: s.cfg.DKIM.Selector, Signer: s.cfg.DKIM.Key,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationSimple, HeaderKeys: s.signed})
	if err != nil {
		return err
	}
	// The signer handles each write in another goroutine, so a few large writes cost less.
	b := bufio.NewWriterSize(signer, 16<<10)
	_, err = m.WriteTo(b)
	if err = errors.Join(err, b.Flush(), signer.Close()); err != nil {
		return err
	}
	name, value, _ := strings.Cut(signer.Signature(), ":")
	m.SetGenHeaderPreformatted(gomail.Header(name), strings.TrimSpace(value))
	return nil
}
