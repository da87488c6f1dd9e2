// Package bouncemail reads reports that arrive as mail: delivery status notifications (RFC 3464)
// and complaints in the abuse reporting format (RFC 5965). The mails are fetched from a mailbox
// by IMAP.
package bouncemail

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/mail"
	"slices"
	"strings"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/textproto"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// referenceHeader is the header that package smtp adds to each mail. It comes back with the
// returned message.
const referenceHeader = "X-Dropbell-Reference"

// maxParts is how many parts of a report are read; the format has three.
const maxParts = 8

// A Reader reads mails of the bounce mailbox.
type Reader struct {
	refs feedback.Refs
	// user and domain are the parts of the bounce address, in lower case.
	user, domain string
}

// NewReader returns a reader of mails to the bounce address, such as bounces@example.com, and to
// its variants bounces+REFERENCE@example.com.
func NewReader(address string, refs feedback.Refs) Reader {
	user, domain, _ := strings.Cut(strings.ToLower(address), "@")
	return Reader{refs, user, domain}
}

// Read returns the mail's report. A mail that makes a library panic is unreadable.
func (r Reader) Read(m feedback.Mail) (out feedback.Returned) {
	defer func() {
		if recover() != nil {
			out = feedback.Returned{Fate: feedback.Unreadable}
		}
	}()
	entity, err := message.Read(bytes.NewReader(m.Raw))
	if entity == nil || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
		return feedback.Returned{Fate: feedback.Unreadable}
	}
	kind, params, err := entity.Header.ContentType()
	report := err == nil && strings.EqualFold(kind, "multipart/report")
	switch {
	case report && strings.EqualFold(params["report-type"], "disposition-notification"): // a read receipt (RFC 8098)
		return feedback.Returned{Fate: feedback.Ignored}
	case report && params["boundary"] != "":
		out = r.report(entity)
	case automatic(entity.Header):
		return feedback.Returned{Fate: feedback.Ignored}
	default:
		return feedback.Returned{Fate: feedback.Foreign}
	}
	out.At = m.At
	return out
}

// automatic reports whether the mail is an automatic reply (RFC 3834). It also knows the headers
// of programs older than RFC 3834.
func automatic(h message.Header) bool {
	submitted, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(h.Get("Auto-Submitted"))), ";")
	precedence := strings.ToLower(strings.TrimSpace(h.Get("Precedence")))
	return submitted != "" && submitted != "no" || precedence == "auto_reply" || h.Has("X-Autoreply") || h.Has("X-Autorespond")
}

// A parsed report has the fields of the report's machine-readable part, in groups, and the
// header of the message that the report is about.
type parsed struct {
	kind     string // the media type of the machine-readable part
	groups   []textproto.Header
	returned textproto.Header
}

// report reads a multipart/report (RFC 6522).
func (r Reader) report(entity *message.Entity) feedback.Returned {
	p, ok := parse(entity)
	if !ok {
		return feedback.Returned{Fate: feedback.Unreadable}
	}
	out := feedback.Returned{Fate: feedback.Reported}
	if p.kind == "message/feedback-report" {
		r.complaint(p, &out)
	} else {
		notification(p, &out)
	}
	if out.Fate != feedback.Reported {
		return out
	}
	if out.Ref, ok = r.reference(entity.Header, p); !ok {
		return feedback.Returned{Fate: feedback.Foreign}
	}
	return out
}

// parse reads the parts of a report. The end of the report may be missing, because only the
// beginning of a mail is fetched.
func parse(entity *message.Entity) (p parsed, ok bool) {
	parts := entity.MultipartReader()
	if parts == nil {
		return p, false
	}
	for range maxParts {
		part, err := parts.NextPart()
		if part == nil || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
			break
		}
		kind, _, _ := part.Header.ContentType()
		switch kind = strings.ToLower(kind); kind {
		// The second of each is the form of RFC 6533 for international addresses.
		case "message/delivery-status", "message/global-delivery-status", "message/feedback-report":
			if p.kind != "" {
				return p, false
			}
			p.kind = kind
			if p.groups, err = groups(part.Body); err != nil {
				return p, false
			}
		case "message/rfc822", "message/global", "text/rfc822-headers", "message/global-headers":
			if p.returned.Len() == 0 {
				p.returned, _ = textproto.ReadHeader(bufio.NewReader(part.Body)) // as much of it as can be read
			}
		}
	}
	return p, len(p.groups) > 0
}

// groups reads the groups of fields that blank lines divide (RFC 3464, section 2.1).
func groups(body io.Reader) (list []textproto.Header, err error) {
	b := bufio.NewReader(body)
	for {
		h, err := textproto.ReadHeader(b)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if h.Len() > 0 {
			list = append(list, h)
		}
		if _, end := b.Peek(1); end != nil {
			return list, nil
		}
	}
}

// notification reads a delivery status notification (RFC 3464): the fields of the message, and
// then the fields of each recipient. Our mails have one recipient. A notification with several
// recipients is about a forwarded mail, which has bounced only if it failed for every recipient.
func notification(p parsed, out *feedback.Returned) {
	recipients := p.groups
	if len(recipients) > 1 && !recipients[0].Has("Final-Recipient") {
		recipients = recipients[1:]
	}
	failed, hard, delivered := 0, 0, 0
	for _, h := range recipients {
		status := field(h.Get("Status"))
		switch strings.ToLower(field(h.Get("Action"))) {
		case "failed":
			failed++
			if feedback.StatusOf(status) == feedback.Bounced {
				hard++
			}
			out.Cause = cause(status, h.Get("Diagnostic-Code"))
		case "delivered":
			delivered++
		case "delayed", "relayed", "expanded": // nothing is decided
		default:
			out.Fate = feedback.Unreadable
			return
		}
		out.Named = append(out.Named, addresses(h, "Original-Recipient", "Final-Recipient")...)
	}
	switch {
	case delivered > 0:
		out.Status, out.Cause = feedback.Delivered, ""
	case failed < len(recipients):
		out.Fate = feedback.Ignored
	case hard == failed:
		out.Status = feedback.Bounced
	default:
		out.Status = feedback.SoftBounced
	}
}

// complaint reads an abuse report (RFC 5965).
func (r Reader) complaint(p parsed, out *feedback.Returned) {
	h := p.groups[0]
	kind := strings.ToLower(field(h.Get("Feedback-Type")))
	switch kind {
	case "":
		out.Fate = feedback.Unreadable
		return
	case "not-spam", "auth-failure", "dkim": // taken out of the spam; about signatures (RFC 6591)
		out.Fate = feedback.Ignored
		return
	}
	out.Status, out.Cause = feedback.Complained, delivery.DetailOf(kind)
	// Mailbox providers often mask or leave out the recipient; a masked one names none.
	for _, a := range addresses(h, "Original-Rcpt-To") {
		if user, _, _ := strings.Cut(a, "@"); !strings.Contains(user, "redacted") {
			out.Named = append(out.Named, a)
		}
	}
}

// reference returns the message that the report is about. The reference is in the address to
// which the report was sent, which was the envelope's sender of the mail, or in the header of
// the returned message. A reference that this installation has not signed is ignored.
func (r Reader) reference(h message.Header, p parsed) (feedback.Ref, bool) {
	var to []string
	for _, name := range []string{"Delivered-To", "X-Original-To", "Envelope-To", "To"} {
		to = append(to, h.Values(name)...)
	}
	to = append(to, p.returned.Get("Return-Path"))
	for _, g := range p.groups {
		to = append(to, g.Get("Original-Mail-From"))
	}
	for _, text := range to {
		if ref, ok := r.ofAddress(text); ok {
			return ref, true
		}
	}
	return r.refs.Parse(strings.TrimSpace(p.returned.Get(referenceHeader)))
}

// ofAddress reads the reference in a variant of the bounce address.
func (r Reader) ofAddress(text string) (feedback.Ref, bool) {
	list, err := mail.ParseAddressList(text)
	if err != nil {
		list = []*mail.Address{{Address: strings.Trim(strings.TrimSpace(text), "<>")}}
	}
	for _, a := range list {
		user, domain, _ := strings.Cut(strings.ToLower(a.Address), "@")
		if ref, ok := strings.CutPrefix(user, r.user+"+"); ok && domain == r.domain {
			if found, ok := r.refs.Parse(ref); ok {
				return found, true
			}
		}
	}
	return feedback.Ref{}, false
}

// addresses returns the addresses in fields such as "rfc822; ann@example.com", in lower case and
// without duplicates.
func addresses(h textproto.Header, names ...string) (list []string) {
	for _, name := range names {
		text := h.Get(name)
		if kind, rest, ok := strings.Cut(text, ";"); ok && !strings.Contains(kind, "@") {
			text = rest
		}
		text = strings.ToLower(strings.Trim(strings.TrimSpace(text), "<>"))
		if strings.Contains(text, "@") && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// field returns a field's value without the comment that may follow.
func field(text string) string {
	text, _, _ = strings.Cut(text, "(")
	return strings.TrimSpace(text)
}

// cause returns the mail server's words, masked.
func cause(status, diagnostic string) string {
	if _, words, ok := strings.Cut(diagnostic, ";"); ok {
		diagnostic = words
	}
	diagnostic = strings.Join(strings.Fields(diagnostic), " ")
	if diagnostic == "" {
		diagnostic = status
	}
	return delivery.DetailOf(diagnostic)
}
