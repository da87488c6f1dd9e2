package config

import (
	"errors"
	"net/url"
	"strings"
)

// passVariables are about passes of protected drops.
func passVariables() []Variable {
	return []Variable{
		{"PASS_SECRET", "", "protected drops: signs passes and puzzles, and keys the hashes of the signs of claims, at least 32 bytes; several separated by commas: the first signs, all are accepted; empty = no drop can be protected",
			func(c *Config, v string) error { return longSecrets(&c.PassSecret, v) }},
		{"SITEVERIFY_URL", "", "protected drops: where tokens of a widget are checked, such as https://challenges.cloudflare.com/turnstile/v0/siteverify or https://api.hcaptcha.com/siteverify; empty = no tokens", siteVerifyURL},
		{"SITEVERIFY_SECRET", "", "protected drops: the secret of the site at the service behind SITEVERIFY_URL", text(func(c *Config) *string { return &c.SiteVerifySecret })},
	}
}

// siteVerifyURL reads an https address; http is for tests on this machine.
func siteVerifyURL(c *Config, v string) error {
	c.SiteVerifyURL = v
	if v == "" {
		return nil
	}
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return errors.New("must be an https address")
	}
	return nil
}

// linkSecret checks every one of the secrets.
func linkSecret(c *Config, v string) error { return longSecrets(&c.LinkSecret, v) }

// longSecrets reads secrets separated by commas.
func longSecrets(to *string, v string) error {
	*to = v
	if v == "" {
		return nil
	}
	for one := range strings.SplitSeq(v, ",") {
		if len(strings.TrimSpace(one)) < 32 {
			return errors.New("must have at least 32 bytes, each of several as well")
		}
	}
	return nil
}
