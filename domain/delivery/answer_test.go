package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dropbell/domain/delivery"
)

func TestDetailOf(t *testing.T) {
	for given, wanted := range map[string]string{
		"550 5.1.1 <bob@example.com>: user unknown\r\n(in reply to RCPT)": "550 5.1.1 <…>: user unknown (in reply to RCPT)",
		"number +86 138-0000-0001 is barred":                              "number … is barred",
		"number 13800000001 is barred":                                    "number … is barred",
		"see https://x.example/?token=abc for help":                       "see … for help",
		"421 4.7.0 try in 300 s":                                          "421 4.7.0 try in 300 s",
		"broken \xff bytes":                                               "broken ? bytes",
		"":                                                                "",
		" \t\x00 ":                                                        "",
	} {
		if got := delivery.DetailOf(given); got != wanted {
			t.Errorf("%q: got %q, want %q", given, got, wanted)
		}
	}
	long := delivery.DetailOf(strings.Repeat("券", 1_000_000))
	if len(long) > 200 || len(long) < 190 || !utf8.ValidString(long) {
		t.Errorf("a megabyte became %d bytes, valid: %v", len(long), utf8.ValidString(long))
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for header, wanted := range map[string]time.Duration{
		"":                               0,
		"0":                              0,
		"120":                            2 * time.Minute,
		" 5 ":                            5 * time.Second,
		"-5":                             0,
		"1.5":                            0,
		"soon":                           0,
		"18446744073709551615":           24 * time.Hour,
		"99999999999999999999999":        0,
		"Fri, 20 Nov 2026 12:00:30 GMT":  30 * time.Second,
		"Friday, 20-Nov-26 12:00:30 GMT": 30 * time.Second,
		"Fri Nov 20 12:00:30 2026":       30 * time.Second,
		"Fri, 20 Nov 2026 11:00:00 GMT":  0,
		"Sat, 20 Nov 2027 12:00:00 GMT":  24 * time.Hour,
	} {
		if got := delivery.RetryAfter(header, now); got != wanted {
			t.Errorf("%q: got %v, want %v", header, got, wanted)
		}
	}
}

func TestHTTPResult(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for status, wanted := range map[int]delivery.Status{
		200: delivery.Delivered, 299: delivery.Delivered, 302: delivery.Transient, 199: delivery.Transient,
		400: delivery.Permanent, 401: delivery.Transient, 403: delivery.Transient, 404: delivery.Transient,
		408: delivery.Transient, 409: delivery.Transient, 410: delivery.Permanent, 413: delivery.Permanent, 422: delivery.Permanent,
		425: delivery.Transient, 429: delivery.Throttled, 500: delivery.Transient, 503: delivery.Transient,
	} {
		got := delivery.HTTPResult(status, "", now)
		if whole := status == 400 || status == 413 || status == 422; got.Whole != whole || got.Provider != (status == 410) {
			t.Errorf("%d: got %+v", status, got)
		}
		if got.Unsent != (status >= 400 && status < 500 && status != 408 && status != 409) {
			t.Errorf("%d: certainly not sent is %v", status, got.Unsent)
		}
		if got.Status != wanted || got.After != 0 || (got.Detail == "") != (wanted == delivery.Delivered) {
			t.Errorf("%d: got %+v, want status %d", status, got, wanted)
		}
	}
	if got := delivery.HTTPResult(503, "3", now); got.Status != delivery.Throttled || got.After != 3*time.Second {
		t.Errorf("503 with Retry-After: got %+v", got)
	}
	if got := delivery.HTTPResult(500, "3", now); got.Status != delivery.Transient {
		t.Errorf("500 with Retry-After: got %+v", got)
	}
}

func TestCauseOf(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 25}, Err: errors.New("connection refused")}
	lookup := func(text string) error {
		return fmt.Errorf("post: %w", &net.OpError{Op: "dial", Err: &net.DNSError{Err: text, Name: "shop.example", Server: "10.0.0.53:53", IsTemporary: true}})
	}
	for _, text := range []string{"read udp 172.17.0.5:51422->10.0.0.53:53: read: connection refused", "dial udp 10.0.0.53:53: connect: network is unreachable",
		"server misbehaving", "no answer from DNS server"} {
		if got := delivery.CauseOf(lookup(text)); got != "lookup shop.example: the resolver gave no answer" {
			t.Errorf("%s: got %q", text, got)
		}
	}
	if got := delivery.CauseOf(&net.DNSError{Err: "read udp 172.17.0.5:51422->10.0.0.53:53: i/o timeout", Name: "shop.example", Server: "10.0.0.53:53", IsTimeout: true}); got != "timed out" {
		t.Errorf("a resolver that is silent: got %q", got)
	}
	if got := delivery.CauseOf(&net.DNSError{Err: "no such host", Name: "shop.example", IsNotFound: true}); got != "lookup shop.example: no such host" {
		t.Errorf("without a server: got %q", got)
	}
	for wanted, err := range map[string]error{
		"timed out":                            fmt.Errorf("post: %w", context.DeadlineExceeded),
		"stopped before the provider answered": fmt.Errorf("post: %w", context.Canceled),
		"the provider closed the connection":   fmt.Errorf("post: %w", io.ErrUnexpectedEOF),
		"connection refused":                   fmt.Errorf("post: %w", refused),
		"lookup shop.example: no such host":    fmt.Errorf("post: %w", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "shop.example", Server: "10.0.0.53:53"}}),
		"…: no such host":                      errors.New("bob@example.com: no such host"),
	} {
		if got := delivery.CauseOf(err); got != wanted {
			t.Errorf("%v: got %q, want %q", err, got, wanted)
		}
	}
}
