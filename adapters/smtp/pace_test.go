package smtp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
)

// limits admits mails by its map permits and records its calls.
type limits struct {
	permits map[string]smtp.Permit
	asked   []map[string]smtp.Mails
	slow    []string
	taken   map[string]int
	alone   bool // a mail that its domain does not take waits alone
	unsent  int
}

func (l *limits) Admit(_ context.Context, mails map[string]smtp.Mails) (map[string]smtp.Permit, func(context.Context, map[string]int)) {
	l.asked = append(l.asked, mails)
	return l.permits, func(_ context.Context, back map[string]int) {
		for domain, n := range back {
			if n > mails[domain].All {
				n = -1000
			}
			l.unsent += n
		}
	}
}

func (l *limits) Slow(_ context.Context, _, domain string) (wait time.Duration, others bool) {
	l.slow = append(l.slow, domain)
	return 15 * time.Second, !l.alone
}

func (l *limits) Taken(_, domain string) {
	if l.taken == nil {
		l.taken = map[string]int{}
	}
	l.taken[domain]++
}

// addressed are messages to users at the domains.
func addressed(domains ...string) []delivery.Message {
	list := sendertest.Messages(delivery.Email, len(domains))
	for i, d := range domains {
		u := *list[i].To
		u.Email = "reader@" + d
		list[i].To = &u
	}
	return list
}

func paceOf(results []delivery.Result) (sent, held int) {
	for _, r := range results {
		switch {
		case r.Status == delivery.Delivered:
			sent++
		case r.Held && r.Status == delivery.Throttled && r.Apart && r.After > 0 && r.After%(2*time.Second) == 0:
			held++
		}
	}
	return sent, held
}

// TestMailsAreHeldBackByDomain: mails beyond a domain's permit are kept back without a command
// to the server, each a little later than the mail before. Mails to other domains and test
// messages go out.
func TestMailsAreHeldBackByDomain(t *testing.T) {
	r := new(relay).start(t, nil)
	l := &limits{permits: map[string]smtp.Permit{"gmail.com": {Now: 2, Wait: time.Second, Every: time.Second, Reason: delivery.ReasonDomain}}}
	s := r.sender(t, func(c *smtp.Config) { c.Pace = l })
	messages := addressed("gmail.com", "Gmail.com", "gmail.com", "qq.com", "gmail.com", "gmail.com", "gmail.com")
	test := *messages[6].Subject
	test.Kind = delivery.KindTest
	messages[6].Subject = &test
	results := s.Send(t.Context(), messages)
	sent, held := paceOf(results)
	if mails, _, _ := r.count(); sent != 4 || held != 3 || mails != 4 || l.unsent != 0 {
		t.Errorf("%d sent, %d held, %d arrived: %+v", sent, held, mails, results)
	}
	if len(l.asked) != 1 || l.asked[0]["gmail.com"].All != 5 || l.asked[0]["qq.com"].All != 1 {
		t.Errorf("asked %v", l.asked)
	}
	if a, b := results[2].After, results[5].After; a != 2*time.Second || b != 4*time.Second || results[2].Reason != delivery.ReasonDomain {
		t.Errorf("waits of %s and %s for %s", a, b, results[2].Reason)
	}
}

// TestADomainThatAsksInReplyToOneMail: a domain asks for fewer mails in reply to one mail and
// takes most other mails. The other mails are still sent, and the pace is told of each mail that
// the domain took.
func TestADomainThatAsksInReplyToOneMail(t *testing.T) {
	tries := 0
	r := &relay{onRcpt: func(*gosmtp.Conn, string) error {
		if tries++; tries == 2 || tries == 4 {
			return &gosmtp.SMTPError{Code: 451, EnhancedCode: gosmtp.EnhancedCode{4, 7, 28}, Message: "unusual rate of mail"}
		}
		return nil
	}}
	r.start(t, nil)
	l := &limits{alone: true}
	results := r.sender(t, func(c *smtp.Config) { c.Pace = l }).Send(t.Context(), addressed("gmail.com", "Gmail.com", "gmail.com", "qq.com", "qq.com"))
	for i, a := range results {
		waits := i == 1 || i == 3
		if waits != (a.Status == delivery.Throttled) || waits && (!a.Apart || a.Held || !a.Growing || a.After < 15*time.Second || a.After > 20*time.Second || a.Reason != "") {
			t.Errorf("%d: %+v", i, a)
		}
	}
	if tries != 5 || len(l.slow) != 2 || l.taken["gmail.com"] != 2 || l.taken["qq.com"] != 1 || l.unsent != 2 {
		t.Errorf("%d tries, slow %v, taken %v, given back %d", tries, l.slow, l.taken, l.unsent)
	}
}

// TestADomainThatEndsConnections: if the server ends the connection over a mail, the mail's
// domain gets no further mails in this call, and mails to other domains go out. If two domains
// are refused one after the other, the mail server itself asks for fewer mails.
func TestADomainThatEndsConnections(t *testing.T) {
	refused := "@gmail.com"
	tries := 0
	r := &relay{onRcpt: func(_ *gosmtp.Conn, to string) error {
		if tries++; strings.HasSuffix(to, refused) {
			return &gosmtp.SMTPError{Code: 421, EnhancedCode: gosmtp.EnhancedCode{4, 7, 28}, Message: "unusual rate of mail"}
		}
		return nil
	}}
	r.start(t, nil)
	s := r.sender(t, func(c *smtp.Config) { c.Pace = &limits{alone: true} })
	results := s.Send(t.Context(), addressed("gmail.com", "gmail.com", "gmail.com", "gmail.com", "qq.com", "gmail.com", "163.com"))
	sent, held := paceOf(results)
	if sent != 2 || held != 4 || tries != 3 {
		t.Errorf("%d sent, %d held back after %d tries: %+v", sent, held, tries, results)
	}
	refused = ".com"
	results = s.Send(t.Context(), addressed("gmail.com", "qq.com", "163.com"))
	if a, b := results[0], results[1]; !a.Apart || b.Status != delivery.Throttled || b.Apart {
		t.Errorf("%+v", results)
	}
}

// TestADomainThatAsksForFewer: a domain that asks for fewer mails gets no further mails, and
// mails to other domains are sent. The same holds if the server ends the connection; the sender
// then opens another. If a second domain answers in the same way, the mail server itself asks,
// and the whole channel waits. Greylisting concerns one recipient.
func TestADomainThatAsksForFewer(t *testing.T) {
	for name, code := range map[string]int{"ends the connection": 421, "goes on": 451} {
		t.Run(name, func(t *testing.T) {
			refused := "@gmail.com"
			tries := 0
			r := &relay{onRcpt: func(_ *gosmtp.Conn, to string) error {
				if !strings.HasSuffix(to, refused) {
					return nil
				}
				tries++
				return &gosmtp.SMTPError{Code: code, EnhancedCode: gosmtp.EnhancedCode{4, 7, 28}, Message: "unusual rate of mail"}
			}}
			r.start(t, nil)
			l := &limits{}
			s := r.sender(t, func(c *smtp.Config) { c.Pace = l })
			results := s.Send(t.Context(), addressed("qq.com", "gmail.com", "gmail.com", "qq.com", "163.com"))
			sent, _ := paceOf(results)
			for _, i := range []int{1, 2} {
				if a := results[i]; a.Status != delivery.Throttled || !a.Apart || a.After < 15*time.Second || a.Reason != delivery.ReasonDomain {
					t.Errorf("%d: %+v", i, a)
				}
			}
			if sent != 3 || tries != 1 || len(l.slow) != 1 || l.slow[0] != "gmail.com" || l.unsent != 2 {
				t.Errorf("%d sent after %d tries, slow %v, given back %d: %+v", sent, tries, l.slow, l.unsent, results)
			}
			refused = ".com"
			results = s.Send(t.Context(), addressed("gmail.com", "qq.com"))
			if a := results[1]; a.Status != delivery.Throttled || a.Apart {
				t.Errorf("the second domain: %+v", a)
			}
		})
	}
	r := &relay{onRcpt: func(*gosmtp.Conn, string) error {
		return &gosmtp.SMTPError{Code: 451, EnhancedCode: gosmtp.EnhancedCode{4, 7, 1}, Message: "Greylisting in action"}
	}}
	r.start(t, nil)
	l := &limits{}
	if a := r.sender(t, func(c *smtp.Config) { c.Pace = l }).Send(t.Context(), addressed("small.example"))[0]; len(l.slow) != 0 || a.Status != delivery.Transient || !a.Apart || l.unsent != 1 {
		t.Errorf("slow %v, given back %d: %+v", l.slow, l.unsent, a)
	}
}

// TestUnsentMailsAreGivenBack: admitted mails that no server has taken are given back: mails
// that the server refused with a reply to any command, mails for which there was no connection,
// and mails that remain when a run ends. A mail that may have been taken, or that was kept back,
// is not given back. The result of a mail that is given back says so, so that another mail
// server may get the mail at once.
func TestUnsentMailsAreGivenBack(t *testing.T) {
	refuse := func(code int) error { return &gosmtp.SMTPError{Code: code, Message: "not now"} }
	for name, c := range map[string]struct {
		prepare func(r *relay)
		permit  int // for gmail.com
		back    int // of five mails
	}{
		"all are taken":         {func(*relay) {}, 9, 0},
		"three are kept back":   {func(r *relay) { r.onMail = func(string) error { return refuse(451) } }, 2, 2},
		"the sender refused":    {func(r *relay) { r.onMail = func(string) error { return refuse(550) } }, 9, 5},
		"recipients put off":    {func(r *relay) { r.onRcpt = func(*gosmtp.Conn, string) error { return refuse(450) } }, 9, 5},
		"mails put off":         {func(r *relay) { r.onData = func(*gosmtp.Conn, string) error { return refuse(452) } }, 9, 5},
		"no connection":         {func(r *relay) { r.Addr = "" }, 9, 5},
		"hangs up before":       {func(r *relay) { r.onRcpt = func(c *gosmtp.Conn, _ string) error { return c.Conn().Close() } }, 9, 5},
		"hangs up after a mail": {func(r *relay) { r.onData = func(c *gosmtp.Conn, _ string) error { return c.Conn().Close() } }, 9, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := new(relay)
			r.start(t, nil)
			address := r.Addr
			if c.prepare(r); r.Addr == "" {
				address = "127.0.0.1:1" // where nothing listens
			}
			l := &limits{permits: map[string]smtp.Permit{"gmail.com": {Now: c.permit, Wait: time.Hour}}}
			s := newSender(t, address, func(to *smtp.Config) { to.Pace = l })
			results := s.Send(t.Context(), addressed("gmail.com", "gmail.com", "gmail.com", "gmail.com", "gmail.com"))
			said := 0
			for _, a := range results {
				if a.Unsent && !a.Held {
					said++
				}
			}
			if l.unsent != c.back || said != c.back {
				t.Errorf("%d given back, %d say so, want %d: %+v", l.unsent, said, c.back, results)
			}
		})
	}
}
