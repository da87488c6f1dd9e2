// Package dnsrecords reads records of DNS.
package dnsrecords

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/net/publicsuffix"

	"dropbell/domain/mailcheck"
)

// askFor bounds one question, with its repetitions.
const askFor = 3 * time.Second

// A Resolver reads TXT records.
type Resolver struct{ net *net.Resolver }

// New returns a resolver that asks the DNS servers of this machine's configuration. Tests pass
// the address of another server; empty = this machine's servers.
func New(address string) Resolver {
	if address == "" {
		return Resolver{&net.Resolver{PreferGo: true}}
	}
	return Resolver{&net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}}
}

// TXT is part of [mailcheck.Resolver].
func (r Resolver) TXT(ctx context.Context, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	list, err := r.net.LookupTXT(ctx, name+".") // no search domains
	if err == nil {
		return list, nil
	}
	if ctx.Err() != nil {
		return nil, mailcheck.ErrTimeout
	}
	if failed, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case failed.IsNotFound:
			return nil, mailcheck.ErrNone
		case failed.IsTimeout:
			return nil, mailcheck.ErrTimeout
		}
	}
	return nil, err
}

// Organization is part of [mailcheck.Resolver]; "" for a public suffix.
func (Resolver) Organization(domain string) string {
	org, err := publicsuffix.EffectiveTLDPlusOne(domain)
	if err != nil {
		return ""
	}
	return org
}
