package stories

import (
	"strings"
	"time"

	"dropbell/domain/delivery"
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
	unknown := delivery.MailPace{Unknown: true, Domains: []delivery.DomainPace{{Domain: "qq.com", PerSecond: 50}}}
	senders := func(s mailcheck.Sender, f []mailcheck.Finding) []deliverypages.MailSender {
		return []deliverypages.MailSender{{Sender: s, Findings: f}}
	}
	other := unsigned
	other.From, other.ReturnPath = "tea.example", "tea.example"
	return []Story{
		{Name: "mailcheck/several", Page: deliverypages.MailCheck{Senders: append(senders(s, good), senders(other, away)...), All: 12}.Page()},
		{Name: "mailcheck/good", Page: deliverypages.MailCheck{Senders: senders(s, good), Pace: mailPace()}.Page()},
		{Name: "mailcheck/wrong", Page: deliverypages.MailCheck{Senders: senders(s, bad)}.Page()},
		{Name: "mailcheck/away", Page: deliverypages.MailCheck{Senders: senders(unsigned, away), Pace: unknown}.Page()},
		{Name: "mailcheck/off", Page: deliverypages.MailCheck{}.Page()},
	}
}

// mailPace has domains in each state, and a plan on its sixth day.
func mailPace() delivery.MailPace {
	plan := delivery.WarmUp{Start: Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -5), First: 200, Factor: 1.5}
	days := plan.Days(Now(), 6, 7)
	for i := range days {
		if days[i].Day.Before(Now()) {
			days[i].Sent = days[i].Most
		}
		if days[i].Today {
			days[i].Sent = 1_240
		}
	}
	return delivery.MailPace{Plan: days, Domains: []delivery.DomainPace{{Domain: "163.com", PausedUntil: Now().Add(40 * time.Second)},
		{Domain: "gmail.com", PerSecond: 20, Today: 18_204}, {Domain: "qq.com", PerSecond: 50, Today: 121_950, Waiting: 31_022, PausedUntil: Now().Add(15 * time.Second)}}}
}
