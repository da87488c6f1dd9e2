package delivery

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxDetail bounds how much of a provider's answer is kept, in bytes.
const maxDetail = 200

// maxPause bounds the pause that a provider may ask for; a longer one is taken for a mistake of
// the provider.
const maxPause = 24 * time.Hour

// lookup matches errors of package net about a host name ([net.DNSError]). Their texts contain
// the addresses of the DNS server and of this machine, which may belong to the private network.
var lookup = regexp.MustCompile(`^lookup (\S+?)(?: on \S+)?: (.*)`)

var (
	mailAddress = regexp.MustCompile(`[^\s<>"'(),;:]+@[^\s<>"'(),;:]+`)
	phoneNumber = regexp.MustCompile(`\+\d[\d\-() .]{5,}\d|\d{7,}`)
	anyLink     = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+`)
)

// DetailOf turns a provider's answer into a [Result.Detail]: one line of valid UTF-8, at most 200
// bytes. Mail addresses, links and long numbers are masked, so that the text may be logged and
// equal causes have equal texts.
func DetailOf(text string) string {
	// Cut generously before the expressions run: a provider may answer a megabyte.
	text = cut(text, 4*maxDetail)
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	text = anyLink.ReplaceAllString(text, "…")
	text = mailAddress.ReplaceAllString(text, "…")
	text = phoneNumber.ReplaceAllString(text, "…")
	return cut(text, maxDetail)
}

// cut shortens s to at most n bytes of valid UTF-8, never inside a rune.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// CauseOf describes why a call got no answer. Addresses and ports in network errors are left out.
// A DNS error keeps the name and whether such a host exists.
func CauseOf(err error) string {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	switch {
	case ok && timeout.Timeout():
		return "timed out"
	case errors.Is(err, context.Canceled):
		return "stopped before the provider answered"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the provider closed the connection"
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	if m := lookup.FindStringSubmatch(err.Error()); m != nil && strings.HasPrefix(m[2], "no such host") {
		return DetailOf("lookup " + m[1] + ": no such host")
	} else if m != nil {
		return DetailOf("lookup " + m[1] + ": the resolver gave no answer")
	}
	return DetailOf(err.Error())
}

// RetryAfter reads a Retry-After header (RFC 9110, section 10.2.3), which is
// whole seconds or an HTTP date. It returns zero for a header that is absent,
// unreadable or in the past, and never more than a day.
func RetryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(maxPause/time.Second))) * time.Second
	}
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if at, err := time.Parse(layout, header); err == nil {
			return min(max(at.Sub(now), 0), maxPause)
		}
	}
	return 0
}

// HTTPResult classes the status of an HTTP provider's answer to a whole call. Statuses that
// indicate a wrong configuration (401, 403, 404, …) are Transient: they say nothing about the
// recipient and must not end a delivery. Statuses that indicate a wrong call (400, 413, 422) are
// Permanent and [Result.Whole]. After 408, 409 and redirects the provider may have taken the
// messages, for example in an earlier call, so these results are not [Result.Unsent].
func HTTPResult(status int, retryAfter string, now time.Time) Result {
	result := Result{Status: Transient, Unsent: status >= 400 && status < 500 && status != 408 && status != 409, Detail: "the provider answered HTTP " + strconv.Itoa(status)}
	switch {
	case status >= 200 && status < 300:
		return Result{Status: Delivered}
	case status >= 300 && status < 400:
		result.Detail += ": redirects are not followed"
	case status == 410: // Standard Webhooks: the receiver wants no further calls
		result.Status, result.Provider = Permanent, true
		result.Detail += ": the endpoint no longer exists"
	case status == 400, status == 413, status == 422:
		result.Status, result.Whole = Permanent, true
	case status == 401, status == 403:
		result.Detail += ": check the configured credentials"
	case status == 429, status == 503 && retryAfter != "":
		result.Status = Throttled
		result.After = RetryAfter(retryAfter, now)
	}
	return result
}

// Repeat returns n times r: one answer for a whole call.
func Repeat(r Result, n int) []Result { return slices.Repeat([]Result{r}, n) }
