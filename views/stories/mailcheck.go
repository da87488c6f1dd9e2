package stories

import (
	"strings"

	"dropbell/domain/mailcheck"
	deliverypages "dropbell/views/pages/delivery"
)

// mailChecks have a finding in each state.
func mailChecks() []Story {
	s := mailcheck.Sender{From: "shop.example", ReturnPath: "mail.shop.example", Server: "relay.shop.example", Selector: "drop2026", Signer: "shop.example", Record: "v=DKIM1; k=rsa; p=" + strings.Repeat("MIIBIjANBgkq", 32)}
	note := func(key, value string) []mailcheck.Note { return []mailcheck.Note{{Key: key, Value: value}} }
	good := []mailcheck.Finding{
		{Kind: mailcheck.SPF, State: mailcheck.OK, Name: s.ReturnPath, Found: []string{"v=spf1 a:relay.shop.example include:spf.provider.example -all"}, Notes: append(note("spf_lookups", "4"), note("spf_servers", s.Server)...)},
		{Kind: mailcheck.DKIM, State: mailcheck.OK, Name: "drop2026._domainkey.shop.example", Found: []string{s.Record}, Notes: note("dkim_ok", "")},
		{Kind: mailcheck.DMARC, State: mailcheck.OK, Name: "_dmarc.shop.example", Found: []string{"v=DMARC1; p=quarantine"}, Notes: append(note("dmarc_policy", "quarantine"), note("aligned_both", "")...)}}
	bad := []mailcheck.Finding{
		{Kind: mailcheck.SPF, State: mailcheck.Wrong, Name: s.ReturnPath, Found: []string{"v=spf1 include:a.example +all"}, Notes: append(note("spf_include", "a.example"), note("spf_all", "")...)},
		{Kind: mailcheck.DKIM, State: mailcheck.Missing, Name: "drop2026._domainkey.shop.example", Record: s.Record},
		{Kind: mailcheck.DMARC, State: mailcheck.Missing, Name: "_dmarc.shop.example", Record: "v=DMARC1; p=none; rua=mailto:dmarc@shop.example"}}
	away := []mailcheck.Finding{
		{Kind: mailcheck.SPF, State: mailcheck.Unknown, Name: s.ReturnPath, Notes: note("timeout", "")},
		{Kind: mailcheck.DKIM, State: mailcheck.Off, Notes: note("dkim_off", "")},
		{Kind: mailcheck.DMARC, State: mailcheck.Unknown, Name: "_dmarc.shop.example", Notes: note("dns", "")}}
	unsigned := s
	unsigned.Signer = ""
	return []Story{
		{Name: "mailcheck/good", Page: deliverypages.MailCheck{Sender: s, Findings: good}.Page()},
		{Name: "mailcheck/wrong", Page: deliverypages.MailCheck{Sender: s, Findings: bad}.Page()},
		{Name: "mailcheck/away", Page: deliverypages.MailCheck{Sender: unsigned, Findings: away}.Page()},
		{Name: "mailcheck/off", Page: deliverypages.MailCheck{}.Page()},
	}
}
