package mailcheck

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
)

// maxLookups is how many terms of a policy may make receivers query DNS (RFC 7208,
// section 4.6.4). Beyond it receivers refuse the policy as a whole.
const maxLookups = 10

// checkSPF judges the policy of the domain of the envelope.
func checkSPF(ctx context.Context, r Resolver, s Sender) Finding {
	f := Finding{Kind: SPF, Name: s.ReturnPath}
	ok := f.read(ctx, r, "v=spf1")
	if f.State == Missing {
		f.propose(r, s)
	}
	if !ok {
		return f
	}
	w := &spfWalk{resolver: r, finding: &f}
	w.terms(ctx, f.Found[0], true)
	if f.State != Wrong && f.State != Unknown {
		f.note("spf_lookups", strconv.Itoa(w.lookups))
		f.note("spf_servers", s.Server)
	}
	return f
}

// propose adds a policy to publish if the mail server belongs to the sender's owner.
// For another operator's server the sending addresses are not known here, and a policy
// without them would make receivers refuse the mails. Even the proposed policy ends
// softly, for the same reason.
func (f *Finding) propose(r Resolver, s Sender) {
	if org := r.Organization(s.Server); org != "" && !isAddress(s.Server) && org == r.Organization(s.ReturnPath) {
		f.Record = "v=spf1 a:" + s.Server + " ~all"
		f.note("spf_servers", s.Server)
		return
	}
	f.note("spf_add", "")
}

// An spfWalk follows a policy and the policies that it includes.
type spfWalk struct {
	resolver Resolver
	finding  *Finding
	lookups  int
	over     bool
}

// terms reads one policy; top says that it is the policy of the domain itself.
func (w *spfWalk) terms(ctx context.Context, record string, top bool) {
	closed := false
	var redirect string
	for _, term := range strings.Fields(record)[1:] {
		sign, name := term[0], strings.ToLower(term)
		if strings.ContainsRune("+-~?", rune(sign)) {
			name = name[1:]
		} else {
			sign = '+'
		}
		head, rest, _ := strings.Cut(name, ":")
		if target, ok := strings.CutPrefix(name, "redirect="); ok {
			redirect = target
			continue
		}
		switch head, _, _ = strings.Cut(head, "/"); head {
		case "all":
			closed = true
			if top && sign == '+' {
				w.finding.wrong("spf_all", "")
			} else if top && sign == '?' {
				w.finding.wrong("spf_neutral", "")
			}
		case "include":
			w.follow(ctx, rest)
		case "a", "mx", "ptr", "exists":
			w.count()
		case "ip4", "ip6":
		default:
			if !strings.Contains(name, "=") { // further modifiers are allowed
				w.finding.wrong("spf_term", term)
			}
		}
	}
	switch {
	case redirect != "" && !closed:
		w.follow(ctx, redirect)
	case top && !closed && redirect == "":
		w.finding.wrong("spf_open", "")
	}
}

// count counts a term that makes receivers ask DNS; false if there are too many.
func (w *spfWalk) count() bool {
	if w.lookups++; w.lookups <= maxLookups {
		return true
	}
	if !w.over {
		w.over = true
		w.finding.wrong("spf_too_many", strconv.Itoa(maxLookups))
	}
	return false
}

// follow reads the policy of another domain.
func (w *spfWalk) follow(ctx context.Context, domain string) {
	if !w.count() || strings.Contains(domain, "%") { // a macro, which each mail fills in
		return
	}
	other := Finding{Name: domain}
	switch ok := other.read(ctx, w.resolver, "v=spf1"); {
	case ok:
		w.terms(ctx, other.Found[0], false)
	case other.State == Unknown:
		if w.finding.State != Wrong {
			w.finding.State = Unknown
		}
		w.finding.note(other.Notes[0].Key+"_of", domain)
	default:
		w.finding.wrong("spf_include", domain)
	}
}

// isAddress reports whether a host is written as an IP address.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
