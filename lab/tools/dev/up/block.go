package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"dropbell/lab/tools/dev/demo"
)

// printBlock prints addresses, credentials and examples.
func printBlock(s *settings, o offer) {
	url := s.url()
	var b strings.Builder
	fmt.Fprintf(&b, `
──────────────────────────────────────────────────────────────────────────────
Dropbell is running.

  Console          %s
                   %s   password: %s
  API reference    %s/docs
  Queue dashboard  %s/monitor/queues
  Mail, SMS, webhooks and pushes that were sent
                   %s
  Logs and data    %s
  Commands         %s --help
`, url, s.get("ADMIN_EMAIL"), password(s), url, url, s.catcher, local, binary(program))
	if s.shop != "" {
		fmt.Fprintf(&b, `  Demo shop        http://%s
                   what an end user sees, from a reminder to a paid coupon
`, s.shop)
	}
	printOffer(&b, url, o)
	b.WriteString(`
Ctrl-C stops everything and keeps the data.
──────────────────────────────────────────────────────────────────────────────
`)
	_, _ = io.WriteString(os.Stdout, b.String()) // nowhere to complain to
}

// password hides a password that is not the demo's.
func password(s *settings) string {
	if s.get("ADMIN_PASSWORD") != demoPassword {
		return "(the one in ADMIN_PASSWORD)"
	}
	return demoPassword
}

// printOffer explains how to reserve a reminder by hand and see it arrive.
func printOffer(w io.Writer, url string, o offer) {
	if o.drop.ID == "" || o.token == "" {
		return
	}
	due := o.drop.OpensAt.Add(-5 * time.Minute)
	fmt.Fprintf(w, `
%q opens at %s.
Be user %d for a while (the token is good for 24 hours):

  TOKEN=%s

Reserve two reminders, five minutes before (possible until %s):

  curl -sS %s/api/v1/reservations \
    -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
    -d '{"template_id":"%s","shop_number":"%s","reminders":[{"channel":"app","minutes":5},{"channel":"email","minutes":5}]}'

They arrive at %s. Then read the inbox (and see the mail page):

  curl -sS %s/api/v1/inbox -H "Authorization: Bearer $TOKEN"
`, o.drop.Name, o.drop.OpensAt.Local().Format("15:04:05"), demo.FirstUser, o.token,
		due.Local().Format("15:04:05"), url, o.drop.ID, o.drop.Shop, due.Local().Format("15:04:05"), url)
}
