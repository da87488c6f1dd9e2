// Package pkpass makes passes for Apple's Wallet and tells devices that passes have changed. See
// "Creating the Source for a Pass", "Building a Pass" and "Adding a Web Service to Update Passes"
// in Apple's documentation.
package pkpass

import (
	"archive/zip"
	"bytes"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/smallstep/pkcs7"

	"dropbell/adapters/sender"
	"dropbell/domain/coupon/wallet"
)

// Type is the media type of the file.
const Type = "application/vnd.apple.pkpass"

// Config is the identity at Apple.
type Config struct {
	// TypeID is the pass type identifier, TeamID the developer team.
	TypeID, TeamID string
	// Certificate and Key belong to the pass type. WWDR is Apple's intermediate certificate,
	// which issued Certificate. All are PEM.
	Certificate, Key, WWDR []byte
	// Service is the address below which devices ask for changed passes: https, without a slash
	// at the end; "" = passes do not change.
	Service string
	// PushURL is the address of Apple's push service: https, or http on this machine for tests;
	// "" = [DefaultPushURL].
	PushURL string
	// Transport replaces the connection to it; nil = HTTP/2 with the certificate.
	Transport http.RoundTripper
	// Now is the clock of Retry-After; nil = [time.Now].
	Now func() time.Time
}

// An Issuer makes and signs passes. It is safe for concurrent use.
type Issuer struct {
	cfg    Config
	pair   tls.Certificate
	wwdr   *x509.Certificate
	client *http.Client
}

// New returns the issuer. An error names the mistake in cfg and never contains the key.
func New(cfg Config) (*Issuer, error) {
	pair, err := tls.X509KeyPair(cfg.Certificate, cfg.Key)
	if err != nil {
		return nil, errors.New("the key does not belong to the certificate of the pass type")
	}
	block, _ := pem.Decode(cfg.WWDR)
	if block == nil {
		return nil, errors.New("Apple's intermediate certificate must be PEM")
	}
	wwdr, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errors.New("Apple's intermediate certificate cannot be read")
	}
	if cfg.TypeID == "" || cfg.TeamID == "" {
		return nil, errors.New("passes need the pass type identifier and the team")
	}
	if cfg.PushURL == "" {
		cfg.PushURL = DefaultPushURL
	}
	cfg.PushURL = strings.TrimRight(cfg.PushURL, "/")
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Transport == nil {
		cfg.Transport = http2Only(cfg.PushURL, pair)
	}
	return &Issuer{cfg: cfg, pair: pair, wwdr: wwdr, client: sender.NewClient(timeout, cfg.Transport)}, nil
}

// PassType returns the pass type identifier.
func (i *Issuer) PassType() string { return i.cfg.TypeID }

// ExpiresAt returns when the certificate of the pass type ends. Devices refuse new passes after
// that.
func (i *Issuer) ExpiresAt() time.Time { return i.pair.Leaf.NotAfter }

// Close ends idle connections.
func (i *Issuer) Close() error {
	i.client.CloseIdleConnections()
	return nil
}

// Describe returns pass.json of the pass. Devices prove with the token that they have the pass.
func (i *Issuer) Describe(p wallet.Pass, token string) ([]byte, error) {
	d := describe(p)
	d.PassTypeIdentifier, d.TeamIdentifier = i.cfg.TypeID, i.cfg.TeamID
	if i.cfg.Service != "" && token != "" {
		d.WebServiceURL, d.AuthenticationToken = i.cfg.Service, token
	}
	return append(sender.JSON(d), '\n'), nil
}

// Bundle returns the pass file: pass.json, the icons, the picture, the manifest with the SHA-1 of each file,
// and the signature of the manifest.
func (i *Issuer) Bundle(p wallet.Pass, described []byte) ([]byte, error) {
	files, err := icons(p)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, p.Strip)
	files["pass.json"] = described
	sums := map[string]string{}
	for name, content := range files {
		sum := sha1.Sum(content) // which the format demands; the signature below is what protects
		sums[name] = hex.EncodeToString(sum[:])
	}
	manifest, err := json.Marshal(sums)
	if err != nil {
		return nil, err
	}
	signature, err := i.sign(manifest)
	if err != nil {
		return nil, err
	}
	files["manifest.json"], files["signature"] = manifest, signature
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := archive.Create(name)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err = archive.Close()
	return b.Bytes(), err
}

// sign returns the detached PKCS #7 signature of the manifest, with the time of signing, the
// pass type's certificate and the issuer's certificate.
func (i *Issuer) sign(manifest []byte) ([]byte, error) {
	signed, err := pkcs7.NewSignedData(manifest)
	if err != nil {
		return nil, err
	}
	signed.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA256)
	if err := signed.AddSigner(i.pair.Leaf, i.pair.PrivateKey, pkcs7.SignerInfoConfig{}); err != nil {
		return nil, err
	}
	signed.AddCertificate(i.wwdr)
	signed.Detach()
	return signed.Finish()
}
