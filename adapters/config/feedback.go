package config

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// mailFeedbacks are the providers to which package smtp can pass a mail's reference.
var mailFeedbacks = []string{"directmail", "mailgun", "postmark", "sendgrid", "ses"}

// feedbackVariables are the variables for reports of mail providers.
func feedbackVariables() []Variable {
	return []Variable{
		{"SMTP_FEEDBACK", "", "the provider behind SMTP_URL, told with each mail what names it in reports: ses, sendgrid, mailgun, postmark or directmail; with LINK_SECRET; empty = none is told", smtpFeedback},
		{"SES_TOPICS", "", "reports of Amazon SES, called at /callbacks/ses: the ARNs of the SNS topics, separated by commas", sesTopics},
		{"SENDGRID_WEBHOOK_KEY", "", "reports of SendGrid, called at /callbacks/sendgrid: the verification key of the signed event webhook", sendGridKey},
		{"MAILGUN_WEBHOOK_KEY", "", "reports of Mailgun, called at /callbacks/mailgun: the HTTP webhook signing key", longEnough(func(c *Config) *string { return &c.MailgunKey }, 16)},
		{"POSTMARK_WEBHOOK_SECRET", "", "reports of Postmark, called at /callbacks/postmark: the password of basic authentication in the webhook's address, or its parameter token, at least 16 bytes", longEnough(func(c *Config) *string { return &c.PostmarkSecret }, 16)},
		{"DIRECTMAIL_TOKEN", "", "reports of Alibaba Cloud Direct Mail by EventBridge, called at /callbacks/directmail: the token of the rule's HTTP target, at least 16 bytes; with PUBLIC_URL, which EventBridge signs", longEnough(func(c *Config) *string { return &c.DirectMailToken }, 16)},
	}
}

// reported tells whether a mail provider is to report.
func (c Config) reported() bool {
	return c.SMTPFeedback != "" || len(c.SESTopics) > 0 || c.SendGridKey != "" || c.MailgunKey != "" || c.PostmarkSecret != "" || c.DirectMailToken != ""
}

func smtpFeedback(c *Config, v string) error {
	c.SMTPFeedback = v
	if v != "" && !slices.Contains(mailFeedbacks, v) {
		return errors.New("must be ses, sendgrid, mailgun, postmark, directmail or empty")
	}
	return nil
}

var snsTopic = regexp.MustCompile(`^arn:aws(-cn|-us-gov)?:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+$`)

func sesTopics(c *Config, v string) error {
	for topic := range strings.SplitSeq(v, ",") {
		if topic = strings.TrimSpace(topic); topic == "" {
			continue
		}
		if c.SESTopics = append(c.SESTopics, topic); !snsTopic.MatchString(topic) {
			return errors.New("must be ARNs of SNS topics, such as arn:aws:sns:eu-west-1:123456789012:mail")
		}
	}
	return nil
}

func sendGridKey(c *Config, v string) error {
	c.SendGridKey = v
	if v == "" {
		return nil
	}
	der, err := base64.StdEncoding.DecodeString(v)
	if err == nil {
		parsed, err := x509.ParsePKIXPublicKey(der)
		if _, ok := parsed.(*ecdsa.PublicKey); err == nil && ok {
			return nil
		}
	}
	return errors.New("must be the verification key as SendGrid shows it, a public key in base64 on one line")
}
