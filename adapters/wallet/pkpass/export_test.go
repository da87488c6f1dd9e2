package pkpass

import (
	"crypto/x509"
	"net/http"
)

// Trust makes the issuer accept push services with certificates of these roots.
func Trust(i *Issuer, roots *x509.CertPool) {
	i.client.Transport.(*http.Transport).TLSClientConfig.RootCAs = roots
}
