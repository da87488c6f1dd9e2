// Package mailcheck judges the records in DNS by which receiving servers know that
// mails of a domain are genuine: SPF (RFC 7208), DKIM (RFC 6376) and DMARC (RFC 7489).
package mailcheck

import (
	"context"
	"errors"
	"strings"
)

// Errors of a [Resolver].
var (
	// ErrNone is returned if the name does not exist or has no TXT record.
	ErrNone = errors.New("no record")
	// ErrTimeout is returned if no server answered in time.
	ErrTimeout = errors.New("no server of DNS answered in time")
)

// A Resolver reads DNS.
type Resolver interface {
	// TXT returns the TXT records of a name, with the parts of each record joined.
	// The error is [ErrNone], [ErrTimeout], or any other error if the records are
	// not known.
	TXT(ctx context.Context, name string) ([]string, error)
	// Organization returns the domain that an owner registers, such as example.com
	// for mail.example.com.
	Organization(domain string) string
}

// A Sender holds the domains that a mail names as its origin.
type Sender struct {
	// From is the domain that readers see, ReturnPath the domain of the envelope.
	From, ReturnPath string
	// Server is the mail server that mails are handed to.
	Server string
	// Selector and Signer are the name and the domain of the key that signs mails
	// here, Record the TXT record of its public half; empty = mails are not signed
	// here.
	Selector, Signer, Record string
}

// State is the verdict on one kind of record.
type State string

// The states.
const (
	OK      State = "ok"
	Missing State = "missing"
	Wrong   State = "wrong"
	// Unknown: the records could not be read, which says nothing about them.
	Unknown State = "unknown"
	// Off: there is nothing to check here.
	Off State = "off"
)

// The kinds of records.
const (
	SPF   = "spf"
	DKIM  = "dkim"
	DMARC = "dmarc"
)

// A Finding is the result for one kind of record.
type Finding struct {
	Kind  string
	State State
	// Name is the DNS name of the record, Found the records that exist there.
	Name  string
	Found []string
	// Record is the record to publish; empty = no record is to be added.
	Record string
	// Notes are keys of the catalogues for remarks about the record, each with a
	// value, which may be empty.
	Notes []Note
}

// A Note is one remark.
type Note struct{ Key, Value string }

func (f *Finding) note(key, value string) { f.Notes = append(f.Notes, Note{key, value}) }

// wrong notes a mistake.
func (f *Finding) wrong(key, value string) {
	f.State = Wrong
	f.note(key, value)
}

// Check reads and judges the records of a sender.
func Check(ctx context.Context, r Resolver, s Sender) []Finding {
	dmarc, policy := checkDMARC(ctx, r, s)
	spf, dkim := checkSPF(ctx, r, s), checkDKIM(ctx, r, s)
	align(r, s, policy, &dmarc)
	return []Finding{spf, dkim, dmarc}
}

// read returns the records that begin with the version. ok is false if the finding
// is already decided by reading them.
func (f *Finding) read(ctx context.Context, r Resolver, version string) (ok bool) {
	all, err := r.TXT(ctx, f.Name)
	switch {
	case errors.Is(err, ErrTimeout):
		f.State = Unknown
		f.note("timeout", "")
		return false
	case err != nil && !errors.Is(err, ErrNone):
		f.State = Unknown
		f.note("dns", "")
		return false
	}
	for _, text := range all {
		if begins(text, version) {
			f.Found = append(f.Found, text)
		}
	}
	switch len(f.Found) {
	case 0:
		f.State = Missing
		return false
	case 1:
		f.State = OK
		return true
	}
	f.wrong("several", "")
	return false
}

// begins reports whether the record begins with the version, followed by a space, a
// semicolon or the end.
func begins(text, version string) bool {
	if len(text) < len(version) || !strings.EqualFold(text[:len(version)], version) {
		return false
	}
	rest := text[len(version):]
	return rest == "" || rest[0] == ' ' || rest[0] == ';'
}

// tags reads "name=value; name=value".
func tags(record string) map[string]string {
	found := map[string]string{}
	for part := range strings.SplitSeq(record, ";") {
		name, value, ok := strings.Cut(part, "=")
		if name = strings.ToLower(strings.TrimSpace(name)); ok && name != "" {
			found[name] = strings.Join(strings.Fields(value), "")
		}
	}
	return found
}

// checkDKIM compares the published key with the key that signs here.
func checkDKIM(ctx context.Context, r Resolver, s Sender) Finding {
	f := Finding{Kind: DKIM}
	if s.Signer == "" {
		f.State = Off
		f.note("dkim_off", "")
		return f
	}
	f.Name = s.Selector + "._domainkey." + s.Signer
	all, err := r.TXT(ctx, f.Name)
	switch {
	case errors.Is(err, ErrTimeout):
		f.State = Unknown
		f.note("timeout", "")
		return f
	case err != nil && !errors.Is(err, ErrNone):
		f.State = Unknown
		f.note("dns", "")
		return f
	}
	f.Record, f.State = s.Record, Missing
	for _, text := range all { // the version may be left out (RFC 6376, section 3.6.1)
		if _, key := tags(text)["p"]; key {
			f.Found = append(f.Found, text)
		}
	}
	switch {
	case len(f.Found) == 0:
		return f
	case len(f.Found) > 1:
		f.wrong("several", "")
		return f
	}
	got, want := tags(f.Found[0]), tags(s.Record)
	switch {
	case got["p"] == "":
		f.wrong("dkim_revoked", "")
	case got["p"] != want["p"]:
		f.wrong("dkim_other", "")
	case got["k"] != want["k"] && (got["k"] != "" || want["k"] != "rsa"):
		f.wrong("dkim_kind", want["k"])
	default:
		f.State, f.Record = OK, ""
		f.note("dkim_ok", "")
	}
	return f
}

// checkDMARC reads the policy of the domain that readers see or, without one, of the
// domain that its owner registered.
func checkDMARC(ctx context.Context, r Resolver, s Sender) (Finding, map[string]string) {
	f := Finding{Kind: DMARC, Name: "_dmarc." + s.From}
	ok := f.read(ctx, r, "v=DMARC1")
	if org := r.Organization(s.From); f.State == Missing && org != s.From && org != "" {
		if above := (Finding{Kind: DMARC, Name: "_dmarc." + org}); above.read(ctx, r, "v=DMARC1") || above.State != Missing {
			f, ok = above, above.State == OK
		}
	}
	if f.State == Missing {
		f.Record = "v=DMARC1; p=none; rua=mailto:dmarc@" + s.From
	}
	if !ok {
		return f, nil
	}
	policy := tags(f.Found[0])
	switch policy["p"] {
	case "none":
		f.note("dmarc_none", "")
	case "quarantine", "reject":
		f.note("dmarc_policy", policy["p"])
	default:
		f.wrong("dmarc_no_policy", "")
	}
	return f, policy
}

// align checks that SPF or DKIM vouches for the domain that readers see (RFC 7489,
// section 3.1).
func align(r Resolver, s Sender, policy map[string]string, f *Finding) {
	if policy == nil {
		return
	}
	same := func(domain, mode string) bool {
		return domain == s.From || mode != "s" && domain != "" && r.Organization(domain) == r.Organization(s.From)
	}
	spf, dkim := same(s.ReturnPath, policy["aspf"]), same(s.Signer, policy["adkim"])
	switch {
	case spf && dkim:
		f.note("aligned_both", "")
	case spf:
		f.note("aligned_spf", s.ReturnPath)
	case dkim:
		f.note("aligned_dkim", s.Signer)
	case s.Signer == "": // a provider may sign with a domain that is not known here
		f.note("aligned_perhaps", s.ReturnPath)
	default:
		f.wrong("not_aligned", s.From)
	}
}
