package dnsrecords_test

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"dropbell/adapters/dnsrecords"
	"dropbell/domain/mailcheck"
)

// serve answers questions about TXT records on this machine. It answers with the records in
// zone, with an error for names that begin with "broken.", and not at all for "mute.". Any other
// name does not exist.
func serve(t *testing.T, zone map[string][]string) dnsrecords.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	go func() {
		defer close(done)
		buffer := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			name := strings.TrimSuffix(strings.ToLower(m.Questions[0].Name.String()), ".")
			m.Response, m.Authoritative, m.RecursionAvailable, m.Additionals = true, true, true, nil
			switch texts := zone[name]; {
			case strings.HasPrefix(name, "mute."):
				continue
			case strings.HasPrefix(name, "broken."):
				m.RCode = dnsmessage.RCodeServerFailure
			case len(texts) == 0:
				m.RCode = dnsmessage.RCodeNameError
			default:
				for _, text := range texts {
					parts := []string{}
					for chunk := range slices.Chunk([]byte(text), 255) { // a TXT record is made of such parts
						parts = append(parts, string(chunk))
					}
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassINET, TTL: 60},
						Body: &dnsmessage.TXTResource{TXT: parts}})
				}
			}
			if raw, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(raw, from)
			}
		}
	}()
	return dnsrecords.New(conn.LocalAddr().String())
}

// TestRecordsAreTold: the result distinguishes a name without records, a server that fails and a
// server that does not answer.
func TestRecordsAreTold(t *testing.T) {
	r := serve(t, map[string][]string{"shop.example": {"v=spf1 -all", strings.Repeat("x", 600)}})
	got, err := r.TXT(t.Context(), "shop.example")
	if err != nil || !slices.Equal(got, []string{"v=spf1 -all", strings.Repeat("x", 600)}) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := r.TXT(t.Context(), "nothing.example"); !errors.Is(err, mailcheck.ErrNone) {
		t.Errorf("no record: %v", err)
	}
	if _, err := r.TXT(t.Context(), "mute.example"); !errors.Is(err, mailcheck.ErrTimeout) {
		t.Errorf("no answer: %v", err)
	}
	if _, err := r.TXT(t.Context(), "broken.example"); err == nil || errors.Is(err, mailcheck.ErrNone) || errors.Is(err, mailcheck.ErrTimeout) {
		t.Errorf("an error of the server: %v", err)
	}
}

const record = "v=DKIM1; k=rsa; p=MIIBIjANBgkqAAAA"

// TestFindings checks domains that each have one thing right or wrong. It compares the kind of
// record, its state and one of the notes.
func TestFindings(t *testing.T) {
	zone := map[string][]string{
		"good.example": {"google-site-verification=x", "v=spf1 ip4:192.0.2.1 a mx include:inner.example ~all"}, "inner.example": {"v=spf1 a:x.example ip6:2001:db8::/32 -all"},
		"drop._domainkey.good.example": {record}, "_dmarc.good.example": {"v=DMARC1; p=reject; aspf=s"},
		"mail.good.example": {"v=spf1 redirect=good.example"},
		"plus.example":      {"v=spf1 +all"}, "neutral.example": {"V=SPF1 mx ?all"}, "open.example": {"v=spf1 a"}, "twice.example": {"v=spf1 -all", "v=spf1 a -all"}, "odd.example": {"v=spf1 ipv4:1.2.3.4 -all"},
		"gone.example": {"v=spf1 include:nothing.example -all"}, "later.example": {"v=spf1 include:broken.example -all"},
		"many.example": {"v=spf1 a a a a a a a a a a a -all"}, "round.example": {"v=spf1 include:round.example -all"},
		"drop._domainkey.plus.example": {"v=DKIM1; p="}, "drop._domainkey.neutral.example": {strings.Replace(record, "MII", "MIJ", 1)},
		"drop._domainkey.open.example": {"p=MIIBIjANBgkq AAAA"}, "drop._domainkey.twice.example": {record, record}, "drop._domainkey.odd.example": {"v=DKIM1; k=ed25519; p=MIIBIjANBgkqAAAA"},
		"_dmarc.plus.example": {"v=DMARC1; p=none"}, "_dmarc.neutral.example": {"v=DMARC1; p=maybe"}, "_dmarc.twice.example": {"v=DMARC1; p=none", "v=DMARC1; p=reject"},
	}
	r := serve(t, zone)
	at := func(domain string) mailcheck.Sender {
		return mailcheck.Sender{From: domain, ReturnPath: domain, Server: "relay.example", Selector: "drop", Signer: domain, Record: record}
	}
	with := func(domain string, change func(*mailcheck.Sender)) mailcheck.Sender {
		s := at(domain)
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		sender mailcheck.Sender
		kind   string
		state  mailcheck.State
		note   string // a key with its value; "" = none is looked for
		add    string // how the record to add begins
	}{
		"all terms":            {at("good.example"), mailcheck.SPF, mailcheck.OK, "spf_lookups 4", ""},
		"redirect":             {at("mail.good.example"), mailcheck.SPF, mailcheck.OK, "spf_lookups 5", ""},
		"no policy":            {at("nothing.example"), mailcheck.SPF, mailcheck.Missing, "spf_add ", ""},
		"of an own server":     {with("nothing.example", func(s *mailcheck.Sender) { s.Server = "relay.nothing.example" }), mailcheck.SPF, mailcheck.Missing, "spf_servers relay.nothing.example", "v=spf1 a:relay.nothing.example ~all"},
		"of an address":        {with("nothing.example", func(s *mailcheck.Sender) { s.Server = "192.0.2.1" }), mailcheck.SPF, mailcheck.Missing, "spf_add ", ""},
		"of a container":       {with("nothing.example", func(s *mailcheck.Sender) { s.Server = "postfix" }), mailcheck.SPF, mailcheck.Missing, "spf_add ", ""},
		"everybody may":        {at("plus.example"), mailcheck.SPF, mailcheck.Wrong, "spf_all ", ""},
		"neutral":              {at("neutral.example"), mailcheck.SPF, mailcheck.Wrong, "spf_neutral ", ""},
		"no end":               {at("open.example"), mailcheck.SPF, mailcheck.Wrong, "spf_open ", ""},
		"two policies":         {at("twice.example"), mailcheck.SPF, mailcheck.Wrong, "several ", ""},
		"unknown term":         {at("odd.example"), mailcheck.SPF, mailcheck.Wrong, "spf_term ipv4:1.2.3.4", ""},
		"included nothing":     {at("gone.example"), mailcheck.SPF, mailcheck.Wrong, "spf_include nothing.example", ""},
		"included broken":      {at("later.example"), mailcheck.SPF, mailcheck.Unknown, "dns_of broken.example", ""},
		"eleven lookups":       {at("many.example"), mailcheck.SPF, mailcheck.Wrong, "spf_too_many 10", ""},
		"includes itself":      {at("round.example"), mailcheck.SPF, mailcheck.Wrong, "spf_too_many 10", ""},
		"server fails":         {at("broken.example"), mailcheck.SPF, mailcheck.Unknown, "dns ", ""},
		"key":                  {at("good.example"), mailcheck.DKIM, mailcheck.OK, "dkim_ok ", ""},
		"key without version":  {at("open.example"), mailcheck.DKIM, mailcheck.OK, "dkim_ok ", ""},
		"no key":               {at("nothing.example"), mailcheck.DKIM, mailcheck.Missing, "", record},
		"key withdrawn":        {at("plus.example"), mailcheck.DKIM, mailcheck.Wrong, "dkim_revoked ", record},
		"another key":          {at("neutral.example"), mailcheck.DKIM, mailcheck.Wrong, "dkim_other ", record},
		"two keys":             {at("twice.example"), mailcheck.DKIM, mailcheck.Wrong, "several ", record},
		"another kind":         {at("odd.example"), mailcheck.DKIM, mailcheck.Wrong, "dkim_kind rsa", record},
		"not signed":           {with("good.example", func(s *mailcheck.Sender) { s.Signer = "" }), mailcheck.DKIM, mailcheck.Off, "dkim_off ", ""},
		"policy":               {at("good.example"), mailcheck.DMARC, mailcheck.OK, "dmarc_policy reject", ""},
		"both agree":           {at("good.example"), mailcheck.DMARC, mailcheck.OK, "aligned_both ", ""},
		"policy of the owner":  {at("mail.good.example"), mailcheck.DMARC, mailcheck.OK, "aligned_both ", ""},
		"strict":               {with("good.example", func(s *mailcheck.Sender) { s.ReturnPath = "mail.good.example" }), mailcheck.DMARC, mailcheck.OK, "aligned_dkim good.example", ""},
		"relaxed":              {with("plus.example", func(s *mailcheck.Sender) { s.ReturnPath, s.Signer = "mail.plus.example", "other.example" }), mailcheck.DMARC, mailcheck.OK, "aligned_spf mail.plus.example", ""},
		"neither agrees":       {with("good.example", func(s *mailcheck.Sender) { s.ReturnPath, s.Signer = "a.example", "b.example" }), mailcheck.DMARC, mailcheck.Wrong, "not_aligned good.example", ""},
		"the provider's":       {with("plus.example", func(s *mailcheck.Sender) { s.ReturnPath, s.Signer = "a.example", "" }), mailcheck.DMARC, mailcheck.OK, "aligned_perhaps a.example", ""},
		"watches only":         {at("plus.example"), mailcheck.DMARC, mailcheck.OK, "dmarc_none ", ""},
		"no such policy":       {at("neutral.example"), mailcheck.DMARC, mailcheck.Wrong, "dmarc_no_policy ", ""},
		"two of them":          {at("twice.example"), mailcheck.DMARC, mailcheck.Wrong, "several ", ""},
		"none of them":         {at("nothing.example"), mailcheck.DMARC, mailcheck.Missing, "", "v=DMARC1; p=none; rua=mailto:dmarc@nothing.example"},
		"a domain of a server": {at("sub.nothing.example"), mailcheck.DMARC, mailcheck.Missing, "", "v=DMARC1; p=none"},
	} {
		for _, f := range mailcheck.Check(t.Context(), r, c.sender) {
			if f.Kind != c.kind {
				continue
			}
			noted := c.note == "" || slices.ContainsFunc(f.Notes, func(n mailcheck.Note) bool { return n.Key+" "+n.Value == c.note })
			if f.State != c.state || !noted || !strings.HasPrefix(f.Record, c.add) || c.add == "" && f.Record != "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}
