package mailfeedback

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"dropbell/domain/delivery/feedback"
)

// snsMessage is the body of the calls of Amazon SNS to HTTP endpoints.
type snsMessage struct {
	Type             string
	MessageID        string `json:"MessageId"`
	TopicArn         string
	Subject          *string
	Message          string
	Timestamp        string
	Token            string
	SubscribeURL     string
	SignatureVersion string
	Signature        string
	SigningCertURL   string
}

// signed is the text that SNS signs: names and values of some fields, a line each.
func (m snsMessage) signed() string {
	var b strings.Builder
	line := func(name, value string) { b.WriteString(name + "\n" + value + "\n") }
	line("Message", m.Message)
	line("MessageId", m.MessageID)
	if m.Type == "Notification" {
		if m.Subject != nil {
			line("Subject", *m.Subject)
		}
	} else {
		line("SubscribeURL", m.SubscribeURL)
	}
	line("Timestamp", m.Timestamp)
	if m.Type != "Notification" {
		line("Token", m.Token)
	}
	line("TopicArn", m.TopicArn)
	line("Type", m.Type)
	return b.String()
}

var (
	topicName   = regexp.MustCompile(`^arn:aws[a-z-]*:sns:([a-z]{2,}(?:-[a-z0-9]+)+):\d{12}:.+$`)
	certificate = regexp.MustCompile(`^/SimpleNotificationService-[0-9A-Za-z]+\.pem$`)
)

// hostOf returns the host of SNS in the topic's region. Certificates and confirmations are taken
// from no other host: a stranger may own a host with a similar name, such as a bucket named sns.
func hostOf(topic string) (host string, ok bool) {
	found := topicName.FindStringSubmatch(topic)
	if found == nil {
		return "", false
	}
	host = "sns." + found[1] + ".amazonaws.com"
	if strings.HasPrefix(found[1], "cn-") {
		host += ".cn"
	}
	return host, true
}

// ofSNS reads an address at the host.
func ofSNS(text, host string) (*url.URL, bool) {
	u, err := url.Parse(text)
	return u, err == nil && u.Scheme == "https" && u.User == nil && u.Host == host
}

const (
	// snsTimeout bounds a call to SNS; SNS itself waits 15 s for the answer.
	snsTimeout = 5 * time.Second
	// maxCertificate is the largest size of a certificate in bytes. maxCertificates is how many
	// certificates are kept. SNS has one certificate per region and changes it about once a
	// year.
	maxCertificate  = 64 << 10
	maxCertificates = 32
)

// certificates are the certificates with which a service signs, by address.
type certificates struct {
	client *http.Client
	// path matches the paths at which the service has them.
	path  *regexp.Regexp
	mu    sync.Mutex
	known map[string]*x509.Certificate
}

func newCertificates(client *http.Client, path *regexp.Regexp) *certificates {
	own := *client
	own.Timeout = snsTimeout
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &certificates{client: &own, path: path, known: map[string]*x509.Certificate{}}
}

// verify returns [feedback.ErrUnverified] for a message that SNS, at the host, did not sign.
// Other errors mean that the signature could not be checked now.
func (c *certificates) verify(m snsMessage, host string) error {
	signature, err := base64.StdEncoding.DecodeString(m.Signature)
	if err != nil {
		return feedback.ErrUnverified
	}
	hash, sum := crypto.SHA256, []byte(nil)
	switch m.SignatureVersion {
	case "1":
		// Version 1, which new topics have, is defined with SHA-1; a topic can be set to 2.
		h := sha1.Sum([]byte(m.signed()))
		hash, sum = crypto.SHA1, h[:]
	case "2":
		h := sha256.Sum256([]byte(m.signed()))
		sum = h[:]
	default:
		return feedback.ErrUnverified
	}
	signer, err := c.load(m.SigningCertURL, host)
	if err != nil {
		return err
	}
	key, ok := signer.PublicKey.(*rsa.PublicKey)
	if !ok || rsa.VerifyPKCS1v15(key, hash, sum, signature) != nil {
		return feedback.ErrUnverified
	}
	return nil
}

// serves reports whether the service has certificates at the address of its host.
func (c *certificates) serves(address, host string) bool {
	u, ok := ofSNS(address, host)
	return ok && c.path.MatchString(u.Path) && u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}

// unknown reports whether the certificate at the address would have to be loaded.
func (c *certificates) unknown(address, host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[address] == nil && c.serves(address, host)
}

// load returns the certificate at an address of the service's host.
func (c *certificates) load(address, host string) (*x509.Certificate, error) {
	if !c.serves(address, host) {
		return nil, feedback.ErrUnverified
	}
	c.mu.Lock()
	known := c.known[address]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	raw, err := c.get(address)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, feedback.ErrUnverified
	}
	loaded, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, feedback.ErrUnverified
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCertificates {
		clear(c.known)
	}
	c.known[address] = loaded
	return loaded, nil
}

// confirm tells SNS that calls of the topic are wanted.
func (c *certificates) confirm(address, host string) error {
	if _, ok := ofSNS(address, host); !ok {
		return feedback.ErrUnverified
	}
	_, err := c.get(address)
	return err
}

// get returns the document at an address of the service. If the service refuses, the error is
// [feedback.ErrUnverified], because repeating the call would not help.
func (c *certificates) get(address string) ([]byte, error) {
	res, err := c.client.Get(address)
	if err != nil {
		return nil, errors.New("the service that signed the callback does not answer") // the error itself repeats the address, with a token
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 500 && res.StatusCode != http.StatusTooManyRequests:
		return nil, feedback.ErrUnverified
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the service that signed the callback answers %d", res.StatusCode)
	}
	return io.ReadAll(io.LimitReader(res.Body, maxCertificate))
}
