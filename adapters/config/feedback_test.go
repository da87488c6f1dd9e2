package config_test

import (
	"strings"
	"testing"

	"dropbell/adapters/config"
)

func TestMistakesOfReports(t *testing.T) {
	for name, values := range map[string][]string{
		"SMTP_FEEDBACK":           {"SES", "pigeon"},
		"SES_TOPICS":              {"mail", "arn:aws:sns:eu-west-1:123456789012:mail,x", "arn:aws:sns:eu-west-1:12:mail", "https://sns.eu-west-1.amazonaws.com"},
		"SENDGRID_WEBHOOK_KEY":    {"-----BEGIN PUBLIC KEY-----", public},
		"MAILGUN_WEBHOOK_KEY":     {"15 bytes of key"},
		"POSTMARK_WEBHOOK_SECRET": {"short"},
		"DIRECTMAIL_TOKEN":        {"short"},
	} {
		for _, v := range values {
			_, err := config.Load(least("LINK_SECRET", "0123456789abcdef0123456789abcdef", name, v))
			if err == nil || !strings.HasPrefix(err.Error(), name+" ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s=%q: %v", name, v, err)
			}
		}
	}
}
