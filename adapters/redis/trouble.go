package redis

import (
	"crypto/tls"
	"errors"
	"strings"
)

// Trouble says why a call to Redis failed, and for mistakes of the
// configuration what to correct. It names neither address nor password.
func Trouble(err error) string {
	text := err.Error()
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "invalid password"), strings.Contains(text, "without any password configured"):
		return "redis refuses the user name or password: correct them in REDIS_URL, redis://user:password@host:port/0"
	case strings.Contains(text, "NOAUTH"):
		return "redis wants a password: put it into REDIS_URL, redis://user:password@host:port/0"
	case untrusted, strings.Contains(text, "x509: "):
		return "redis shows a TLS certificate that is not trusted here: make its authority known to this machine, or name a file with it in SSL_CERT_FILE, " +
			"and use in REDIS_URL a host name that the certificate names"
	}
	return "redis does not answer"
}
