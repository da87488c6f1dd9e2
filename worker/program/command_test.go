package program

import (
	"io"
	"strings"
	"testing"

	"dropbell/adapters/config"
)

// environment is a getenv of pairs.
func environment(pairs ...string) func(string) string {
	set := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return set[name] }
}

// TestEveryMistakeBeforeTheStart: all of them at once, whatever sender they are of.
func TestEveryMistakeBeforeTheStart(t *testing.T) {
	err := run(t.Context(), environment("SMTP_URL", "smtp://mail.example", "WEBHOOK_URL", "https://hooks.example/", "WEBHOOK_SECRET", "whsec_?",
		"SMS_URL", "sms.example", "VAPID_PUBLIC_KEY", "x"), io.Discard)
	for _, name := range []string{"DATABASE_URL ", "REDIS_URL ", "SMTP_URL ", "WEBHOOK_SECRET ", "SMS_URL ", "VAPID_PUBLIC_KEY "} {
		if err == nil || !strings.Contains(err.Error(), "\n"+name) {
			t.Errorf("%sis not named: %v", name, err)
		}
	}
	if !strings.Contains(err.Error(), "DATABASE_URL is required: postgres://") {
		t.Error(err)
	}
	if code := config.ExitCode(err); code != 2 {
		t.Errorf("exit code %d", code)
	}
}
