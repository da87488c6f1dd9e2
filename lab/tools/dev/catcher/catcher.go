package catcher

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/emersion/go-smtp"
)

// Config says where the catcher listens and what it expects.
type Config struct {
	Dir           string // keeps the messages
	SMTPAddr      string
	HTTPAddr      string // the page, and the imitated providers of SMS, webhooks and push
	SMSToken      string // bearer token of /sms
	WebhookSecret string // whsec_… of /webhook
}

// Catcher is running from Start to Close.
type Catcher struct {
	config  Config
	store   *store
	letters net.Listener
	smtp    *smtp.Server
	http    *http.Server
	failed  chan error
}

// Start listens and returns at once.
func Start(c Config) (*Catcher, error) {
	s, err := openStore(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open caught messages: %w", err)
	}
	letters, err := net.Listen("tcp", c.SMTPAddr)
	if err != nil {
		return nil, fmt.Errorf("listen for e-mail: %w", err)
	}
	pages, err := net.Listen("tcp", c.HTTPAddr)
	if err != nil {
		letters.Close()
		return nil, fmt.Errorf("listen for the mail page: %w", err)
	}
	catcher := &Catcher{config: c, store: s, letters: letters, smtp: newSMTP(s), failed: make(chan error, 2)}
	catcher.http = &http.Server{Handler: catcher.routes(), ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)}
	catcher.http.Protocols.SetHTTP1(true)
	catcher.http.Protocols.SetUnencryptedHTTP2(true) // Apple's service speaks only HTTP/2
	go func() { catcher.failed <- catcher.smtp.Serve(letters) }()
	go func() { catcher.failed <- catcher.http.Serve(pages) }()
	return catcher, nil
}

// Close stops listening. It waits for messages that are being received, until ctx ends.
func (c *Catcher) Close(ctx context.Context) error {
	err := errors.Join(c.smtp.Shutdown(ctx), c.http.Shutdown(ctx))
	if err != nil { // a client keeps a connection open
		if err = c.smtp.Close(); errors.Is(err, smtp.ErrServerClosed) { // its shutdown had begun
			err = nil
		}
		err = errors.Join(err, c.http.Close())
	}
	// The server of mails closes no listener that it begins to serve only now.
	if e := c.letters.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
		err = errors.Join(err, e)
	}
	for range cap(c.failed) {
		if e := <-c.failed; !errors.Is(e, http.ErrServerClosed) && !errors.Is(e, smtp.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

func (c *Catcher) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sms", c.receiveSMS)
	mux.HandleFunc("POST /twilio/2010-04-01/Accounts/{account}/Messages.json", c.receiveTwilio)
	mux.HandleFunc("POST /aliyun", c.receiveAliyun)
	mux.HandleFunc("POST /tencent", c.receiveTencent)
	mux.HandleFunc("POST /sns/{$}", c.receiveSNS)
	mux.HandleFunc("POST /webhook", c.receiveWebhook)
	mux.HandleFunc("POST /3/device/{token}", c.receiveAPNs)
	mux.HandleFunc("POST /token", c.issueToken)
	mux.HandleFunc("POST /v1/projects/{project}/{method}", c.receiveFCM)
	mux.HandleFunc("GET /{$}", c.showList)
	mux.HandleFunc("GET /messages/{id}", c.showMessage)
	mux.HandleFunc("GET /messages/{id}/html", c.showHTML)
	mux.HandleFunc("GET /style.css", c.showStyle)
	return mux
}
