// Package config reads the environment, names every mistake at once and
// describes the variables for --help. Both programs share it.
package config

import (
	"errors"
	"fmt"
	"io"
	"net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"dropbell/domain/redeemcode"
)

// Config is the environment of both programs. Durations and counts are as
// their variables say; see [Variables].
type Config struct {
	DatabaseURL string
	RedisURL    string

	HTTPAddr       string
	WorkerHTTPAddr string
	PublicURL      string
	TrustedProxies []string
	LogLevel       string
	MetricsToken   string

	JWTSecret string
	JWKSURL   string
	JWTIssuer string
	JWTAud    string

	AdminEmail    string
	AdminPassword string
	AdminAPIKey   string

	SMTPURL         string
	SMSURL          string
	SMSToken        string
	WebhookURL      string
	WebhookSecret   string
	VAPIDPublicKey  string
	VAPIDPrivateKey string
	VAPIDSubject    string

	// OIDCIssuer is empty if nobody signs in with single sign-on.
	OIDCIssuer       string
	OIDCClientID     string
	OIDCClientSecret string

	LinkSecret string

	// CodeKeys are the keys of redeem codes, in the form that
	// [redeemcode.ParseKeys] reads; checked.
	CodeKeys string

	RatePerUser int
	RatePerKey  int
	DBConns     int
	RetainFor   time.Duration
	// LockFor is how long a coupon's lock lasts.
	LockFor     time.Duration
	RetainAudit time.Duration
	// GateShelves is into how many shelves a stock behind the claim gate is
	// divided; 0 = as many as its size and the machines of Redis call for.
	GateShelves int

	TraceEndpoint string
	TraceRatio    float64
}

// A Variable describes one environment variable.
type Variable struct {
	Name, Default, Meaning string
	read                   func(*Config, string) error
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error { *field(c) = v; return nil }
}

func address(field func(*Config) *string, schemes ...string) func(*Config, string) error {
	return func(c *Config, v string) error {
		*field(c) = v // even if wrong: what is there is not also missing
		if v == "" {
			return nil
		}
		for one := range strings.SplitSeq(v, ",") {
			u, err := url.Parse(strings.TrimSpace(one))
			if err != nil || u.Host == "" && u.Path == "" {
				return errors.New("is not a valid address")
			}
			if !contains(schemes, u.Scheme) {
				return fmt.Errorf("must begin with %s://", strings.Join(schemes, ":// or "))
			}
		}
		return nil
	}
}

func number(field func(*Config) *int, least, most int) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("must be a whole number between %d and %d", least, most)
		}
		*field(c) = n
		return nil
	}
}

func days(field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 36500 {
			return errors.New("must be a number of days, 0 = keep for ever")
		}
		*field(c) = time.Duration(n) * 24 * time.Hour
		return nil
	}
}

func span(field func(*Config) *time.Duration, least, most time.Duration) func(*Config, string) error {
	return func(c *Config, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < least || d > most {
			return fmt.Errorf("must be a duration between %s and %s, such as 15m", least, most)
		}
		*field(c) = d
		return nil
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// networkOf reads a network; an address is one of its own.
func networkOf(s string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(s); err == nil {
		return ip.Prefix(ip.BitLen())
	}
	return netip.ParsePrefix(s)
}

// Variables returns every variable with its meaning and default.
func Variables() []Variable {
	return []Variable{
		{"DATABASE_URL", "", "PostgreSQL, required: postgres://user:password@host:port/database", address(func(c *Config) *string { return &c.DatabaseURL }, "postgres", "postgresql")},
		{"REDIS_URL", "", "Redis, required: redis://host:port/0; several addresses separated by commas = Redis Cluster", address(func(c *Config) *string { return &c.RedisURL }, "redis", "rediss")},
		{"HTTP_ADDR", "127.0.0.1:8080", "where web serves console and API", text(func(c *Config) *string { return &c.HTTPAddr })},
		{"WORKER_HTTP_ADDR", "127.0.0.1:8081", "where worker serves /livez, /readyz and /metrics", text(func(c *Config) *string { return &c.WorkerHTTPAddr })},
		{"PUBLIC_URL", "http://127.0.0.1:8080", "how browsers reach web; https makes cookies Secure", address(func(c *Config) *string { return &c.PublicURL }, "http", "https")},
		{"TRUSTED_PROXIES", "", "networks or addresses whose X-Forwarded-For is believed, e.g. 10.0.0.0/8, separated by commas", func(c *Config, v string) error {
			for p := range strings.SplitSeq(v, ",") {
				if p = strings.TrimSpace(p); p == "" {
					continue
				}
				network, err := networkOf(p)
				if err != nil {
					return errors.New("must be networks such as 10.0.0.0/8, or addresses, separated by commas")
				}
				c.TrustedProxies = append(c.TrustedProxies, network.String())
			}
			return nil
		}},
		{"LOG_LEVEL", "info", "debug, info, warn or error", func(c *Config, v string) error {
			if !contains([]string{"debug", "info", "warn", "error"}, v) {
				return errors.New("must be debug, info, warn or error")
			}
			c.LogLevel = v
			return nil
		}},
		{"METRICS_TOKEN", "", "bearer token without which web and worker do not serve /metrics, at least 16 bytes; empty = everybody may read it", func(c *Config, v string) error {
			c.MetricsToken = v
			if v != "" && len(v) < 16 {
				return errors.New("must have at least 16 bytes")
			}
			return nil
		}},
		{"AUTH_JWT_SECRET", "", "shared secret of end users' tokens (HS256), at least 16 bytes", func(c *Config, v string) error {
			c.JWTSecret = v
			if v != "" && len(v) < 16 {
				return errors.New("must have at least 16 bytes")
			}
			return nil
		}},
		{"AUTH_JWKS_URL", "", "or: where the public keys of end users' tokens are published", address(func(c *Config) *string { return &c.JWKSURL }, "http", "https")},
		{"AUTH_JWT_ISSUER", "", "required issuer of end users' tokens; empty = any", text(func(c *Config) *string { return &c.JWTIssuer })},
		{"AUTH_JWT_AUDIENCE", "", "required audience of end users' tokens; empty = any", text(func(c *Config) *string { return &c.JWTAud })},
		{"ADMIN_EMAIL", "", "the first admin, created when there is none", func(c *Config, v string) error {
			c.AdminEmail = v
			if a, err := mail.ParseAddress(v); v != "" && (err != nil || a.Address != v) {
				return errors.New("must be an e-mail address, such as ada@example.com")
			}
			return nil
		}},
		{"ADMIN_PASSWORD", "", "the first admin's password, at least 12 characters", func(c *Config, v string) error {
			c.AdminPassword = v
			if v != "" && len([]rune(v)) < 12 {
				return errors.New("must have at least 12 characters")
			}
			return nil
		}},
		{"ADMIN_API_KEY", "", "a service key with every scope, dbk_ followed by at least 20 characters", func(c *Config, v string) error {
			if v != "" && (!strings.HasPrefix(v, "dbk_") || len(v) < 24) {
				return errors.New("must be dbk_ followed by at least 20 characters")
			}
			c.AdminAPIKey = v
			return nil
		}},
		{"OIDC_ISSUER", "", "single sign-on for the console: the identity provider (OpenID Connect), exactly as it names itself, e.g. https://id.example.com/realm", issuer},
		{"OIDC_CLIENT_ID", "", "single sign-on: what the provider calls this console", text(func(c *Config) *string { return &c.OIDCClientID })},
		{"OIDC_CLIENT_SECRET", "", "single sign-on: the console's secret at the provider; the redirect URI to register is PUBLIC_URL/signin/oidc/callback", text(func(c *Config) *string { return &c.OIDCClientSecret })},
		{"SMTP_URL", "", "channel email: smtp://user:password@host:port?from=… (smtps://; STARTTLS when offered)", address(func(c *Config) *string { return &c.SMTPURL }, "smtp", "smtps")},
		{"SMS_URL", "", "channel sms: the provider's address", address(func(c *Config) *string { return &c.SMSURL }, "http", "https")},
		{"SMS_TOKEN", "", "channel sms: bearer token", text(func(c *Config) *string { return &c.SMSToken })},
		{"WEBHOOK_URL", "", "channel webhook: where messages are posted", address(func(c *Config) *string { return &c.WebhookURL }, "http", "https")},
		{"WEBHOOK_SECRET", "", "channel webhook: whsec_… (Standard Webhooks)", func(c *Config, v string) error {
			c.WebhookSecret = v
			if v != "" && !strings.HasPrefix(v, "whsec_") {
				return errors.New("must begin with whsec_")
			}
			return nil
		}},
		{"VAPID_PUBLIC_KEY", "", "channel webpush: public key, base64url", text(func(c *Config) *string { return &c.VAPIDPublicKey })},
		{"VAPID_PRIVATE_KEY", "", "channel webpush: private key, base64url", text(func(c *Config) *string { return &c.VAPIDPrivateKey })},
		{"VAPID_SUBJECT", "", "channel webpush: mailto: or https: address of the sender", text(func(c *Config) *string { return &c.VAPIDSubject })},
		{"LINK_SECRET", "", "signs the links with which users turn off a channel, at least 32 bytes; several separated by commas: the first signs, all are accepted; empty = no links", linkSecret},
		{"CODE_KEYS", "", "redeem codes: keys as number:base64, separated by commas, e.g. 1:…,2:…; the greatest number (1 to 31) makes new codes, the others keep theirs valid; web and worker need the same; without it there are no codes", func(c *Config, v string) error {
			c.CodeKeys = v
			_, err := redeemcode.ParseKeys(v)
			return err
		}},
		{"RATE_LIMIT_PER_MINUTE", "600", "requests per user and minute on one web process, 0 = unlimited", number(func(c *Config) *int { return &c.RatePerUser }, 0, 10_000_000)},
		{"RATE_LIMIT_KEY_PER_MINUTE", "0", "requests per service key and minute on one web process, 0 = unlimited", number(func(c *Config) *int { return &c.RatePerKey }, 0, 100_000_000)},
		{"DATABASE_MAX_CONNS", "16", "connections one process opens to PostgreSQL at most", number(func(c *Config) *int { return &c.DBConns }, 4, 1000)},
		{"RETENTION_DAYS", "90", "days after its opening that a drop's reservations and deliveries are kept, 0 = for ever", days(func(c *Config) *time.Duration { return &c.RetainFor })},
		{"COUPON_LOCK_TIMEOUT", "15m", "how long payment may hold a coupon before the lock ends by itself, between 1s and 24h", span(func(c *Config) *time.Duration { return &c.LockFor }, time.Second, 24*time.Hour)},
		{"GATE_SHELVES", "0", "claim gate: into how many parts the stock of a drop is divided when it is published, 0 = by its size and the number of Redis masters; web and worker need the same", number(func(c *Config) *int { return &c.GateShelves }, 0, 64)},
		{"AUDIT_RETENTION_DAYS", "1095", "days that the audit log is kept, 0 = for ever", days(func(c *Config) *time.Duration { return &c.RetainAudit })},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "", "OpenTelemetry collector that traces are sent to over HTTP, e.g. http://localhost:4318; empty = none", address(func(c *Config) *string { return &c.TraceEndpoint }, "http", "https")},
		{"OTEL_TRACES_SAMPLER_ARG", "1", "share of requests that are traced, 0 to 1; timers and deliveries always are", func(c *Config, v string) error {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil || !(n >= 0 && n <= 1) {
				return errors.New("must be a number between 0 and 1")
			}
			c.TraceRatio = n
			return nil
		}},
	}
}

// linkSecret checks every one of the secrets.
func linkSecret(c *Config, v string) error {
	c.LinkSecret = v
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

// issuer checks the address that discovery starts from: one address, with no
// more than a path.
func issuer(c *Config, v string) error {
	c.OIDCIssuer = v
	if v == "" {
		return nil
	}
	u, err := url.Parse(v)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("is not a valid address of an issuer")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("must begin with https:// or http://")
	}
	return nil
}

// Load reads every variable. The error names all mistakes and holds no values.
func Load(getenv func(string) string) (Config, error) {
	var c Config
	var wrong []error
	for _, v := range Variables() {
		value := strings.TrimSpace(getenv(v.Name))
		if value == "" {
			value = v.Default
		}
		if err := v.read(&c, value); err != nil {
			wrong = append(wrong, fmt.Errorf("%s %w", v.Name, err))
		}
	}
	wrong = append(wrong, c.together()...)
	return c, errors.Join(wrong...)
}

// together checks what several variables must agree on.
func (c Config) together() (wrong []error) {
	need := func(ok bool, msg string) {
		if !ok {
			wrong = append(wrong, errors.New(msg))
		}
	}
	need(c.DatabaseURL != "", "DATABASE_URL is required")
	need(c.RedisURL != "", "REDIS_URL is required")
	need(c.JWTSecret == "" || c.JWKSURL == "", "give AUTH_JWT_SECRET or AUTH_JWKS_URL, not both")
	need((c.AdminEmail == "") == (c.AdminPassword == ""), "ADMIN_EMAIL and ADMIN_PASSWORD belong together")
	need((c.OIDCIssuer == "") == (c.OIDCClientID == "") && (c.OIDCIssuer == "") == (c.OIDCClientSecret == ""),
		"OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET belong together")
	need((c.WebhookURL == "") == (c.WebhookSecret == ""), "WEBHOOK_URL and WEBHOOK_SECRET belong together")
	need(c.SMSURL == "" || c.SMSToken != "", "SMS_TOKEN is missing for SMS_URL")
	need((c.VAPIDPublicKey == "") == (c.VAPIDPrivateKey == "") && (c.VAPIDPublicKey == "") == (c.VAPIDSubject == ""),
		"VAPID_PUBLIC_KEY, VAPID_PRIVATE_KEY and VAPID_SUBJECT belong together")
	return wrong
}

// Help writes the description of every variable.
func Help(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "VARIABLE\tDEFAULT\tMEANING")
	for _, v := range Variables() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", v.Name, v.Default, v.Meaning)
	}
	_ = t.Flush()
}
