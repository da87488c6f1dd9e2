// Package wallettest imitates the services of Apple and Google for passes by their published
// protocols, for tests: certificates of a pass type, the push service that wakes devices, and
// the Google Wallet API.
package wallettest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"time"
)

// An Identity has the certificates and the key that Apple issues for a pass type; PEM.
type Identity struct {
	TypeID, TeamID         string
	Certificate, Key, WWDR []byte
	// Root is the issuer's certificate.
	Root *x509.Certificate
}

// NewIdentity makes the certificate of a pass type, with a subject like the subjects of Apple's
// certificates, and the issuer's certificate.
func NewIdentity(typeID, teamID string) (id Identity, err error) {
	caKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return id, err
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Imitated WWDR"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caRaw, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return id, err
	}
	if id.Root, err = x509.ParseCertificate(caRaw); err != nil {
		return id, err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return id, err
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(23 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		Subject: pkix.Name{CommonName: "Pass Type ID: " + typeID, OrganizationalUnit: []string{teamID},
			ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}, Value: typeID}}}}
	raw, err := x509.CreateCertificate(rand.Reader, leaf, id.Root, &key.PublicKey, caKey)
	if err != nil {
		return id, err
	}
	id.TypeID, id.TeamID = typeID, teamID
	id.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	id.WWDR = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caRaw})
	id.Key = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return id, nil
}
