package senders

import (
	"strings"
	"testing"

	"dropbell/adapters/config"
)

// TestTheEnvironmentJudgesAsTheSendersDo: the check of the environment and the senders refuse
// the same settings.
func TestTheEnvironmentJudgesAsTheSendersDo(t *testing.T) {
	const public, private = "BHZgwOGn-tNyw7BHNLw_Lh0q1B0T0Y9iSoh1agFvQXcXfkEaHEp5h8hQuSqSgPt8u5Mzj4BSgxxAJy7hembuO6M", "dpLDrTVAu4A8Ags67mbNiIcSMjTqDG5xQ8Ct1z_0Me0"
	mail := func(address string) []string { return []string{"SMTP_URL", address} }
	hook := func(secret string) []string {
		return []string{"WEBHOOK_URL", "https://hooks.example/", "WEBHOOK_SECRET", secret}
	}
	push := func(public, private, subject string) []string {
		return []string{"VAPID_PUBLIC_KEY", public, "VAPID_PRIVATE_KEY", private, "VAPID_SUBJECT", subject}
	}
	for _, c := range []struct {
		right bool
		env   []string
	}{
		{true, mail("smtp://u:p@mail.example:587?from=Drop%20Bell%20%3Ca@b.example%3E&starttls=required&auth=plaintext&conns=3")},
		{true, mail("smtps://mail.example/?from=a@b.example")},
		{false, mail("smtp://mail.example")},
		{false, mail("smtp://mail.example?from=b.example")},
		{false, mail("smtp://mail.example?from=%22a%20b%22@b.example")},
		{false, mail("smtp://mail.example?from=a@b.example.")},
		{false, mail("smtp://mail.example:70000?from=a@b.example")},
		{false, mail("smtp://mail.example/x?from=a@b.example")},
		{false, mail("smtp://mail.example?from=a@b.example&conns=0")},
		{false, mail("smtp://mail.example?from=a@b.example&conns=")},
		{false, mail("smtp://mail.example?from=a@b.example&starttls=no")},
		{false, mail("smtp://mail.example?from=a@b.example&auth=")},
		{false, mail("smtp://mail.example?from=a@b.example&tls=1")},
		{false, mail("smtp://mail.example?from=%zz")},
		{false, mail("smtp://:p@mail.example?from=a@b.example")},
		{false, mail("smtp://?from=a@b.example")},
		{true, hook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")},
		{false, hook("whsec_YW-j")},
		{false, hook("whsec_")},
		{true, []string{"SMS_URL", "https://sms.example/v1", "SMS_TOKEN", "t"}},
		{false, []string{"SMS_URL", "https://sms.example/v1", "SMS_TOKEN", "t\nt"}},
		{false, []string{"SMS_URL", "https:///v1", "SMS_TOKEN", "t"}},
		{true, push(public, private, "mailto:a@b.example")},
		{true, push(public+"=", private, "https://b.example")},
		{false, push(public[1:], private, "mailto:a@b.example")},
		{false, push(public, private[1:], "mailto:a@b.example")},
		{false, push(private, public, "mailto:a@b.example")},
		{false, push(public, private, "a@b.example")},
	} {
		cfg, err := config.Load(variables(append(c.env, "DATABASE_URL", "postgres://db/x", "REDIS_URL", "redis://cache")...))
		if (err == nil) != c.right {
			t.Errorf("%v: the environment says %v", c.env, err)
		}
		_, closers, err := environment(cfg, pushEvents{}, guards{})
		for _, end := range closers {
			_ = end()
		}
		if (err == nil) != c.right {
			t.Errorf("%v: the senders say %v", c.env, err)
		}
		if err != nil && (config.ExitCode(err) != 2 || !strings.Contains(err.Error(), c.env[0])) {
			t.Errorf("%v: %v", c.env, err)
		}
	}
}

// variables is a getenv of pairs.
func variables(pairs ...string) func(string) string {
	set := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return set[name] }
}
