package config_test

import (
	"bytes"
	"encoding/base64"
	"reflect"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/config"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

func env(pairs ...string) func(string) string {
	set := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return set[name] }
}

// least returns an environment with only the variables that the programs cannot start without,
// and the variables in more.
func least(more ...string) func(string) string {
	return env(append([]string{"DATABASE_URL", "postgres://u:p@db:5432/dropbell", "REDIS_URL", "redis://cache:6379/0"}, more...)...)
}

func TestDefaults(t *testing.T) {
	got, err := config.Load(least())
	musttest.OK(t, err)
	want := config.Config{DatabaseURL: "postgres://u:p@db:5432/dropbell", RedisURL: "redis://cache:6379/0", HTTPAddr: "127.0.0.1:8080",
		PoolMode:       "session",
		ReplicaMaxLag:  10 * time.Second,
		WorkerHTTPAddr: "127.0.0.1:8081", PublicURL: "http://127.0.0.1:8080", LogLevel: "info", SMS: config.SMS{Provider: "json"}, SMTPTLS: "opportunistic", APNSURL: "https://api.push.apple.com", FCMURL: "https://fcm.googleapis.com", FCMPerMinute: 600_000, Wallet: config.Wallet{PushURL: "https://api.push.apple.com", GoogleURL: "https://walletobjects.googleapis.com"}, RatePerUser: 600, RatePerKey: 300_000, WorkerBatches: map[string]int{"app": 16, "email": 4, "sms": 8, "webpush": 8, "webhook": 4},
		WorkerCalls: map[string]int{"app": 1, "email": 4, "sms": 4, "webpush": 4, "webhook": 10}, DBConns: 16, RequestTimeout: 2 * time.Second, ShutdownDelay: 5 * time.Second,
		JWTMaxAge: 24 * time.Hour, RehearsalQuiet: time.Hour, RehearsalOpensIn: 3 * time.Minute, RetainFor: 90 * 24 * time.Hour, RetainAudit: 1095 * 24 * time.Hour, RetainCoupons: 400 * 24 * time.Hour, RetainHooks: 7 * 24 * time.Hour, TraceRatio: 1, LockFor: 15 * time.Minute}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
}

func TestEveryVariableIsRead(t *testing.T) {
	key := dkimKey(t)
	pass := passIdentity(t)
	got, err := config.Load(least("HTTP_ADDR", " :80 ", "WORKER_HTTP_ADDR", ":81", "PUBLIC_URL", "https://drops.example",
		"SHOP_ORIGINS", "https://shop.example, http://localhost:3000,", "TRUSTED_PROXIES", "10.0.0.0/8, ,192.168.0.7,", "LOG_LEVEL", "debug", "AUTH_JWT_SECRET", "0123456789abcdef0123456789abcdef",
		"AUTH_JWT_ISSUER", "iss", "AUTH_JWT_AUDIENCE", "aud", "AUTH_JWT_MAX_AGE", "90m", "ADMIN_EMAIL", "a@example.com", "ADMIN_PASSWORD", "correct horse",
		"ADMIN_API_KEY", "dbk_abcdefghijklmnopqrst", "SMTP_URL", "smtps://u:p@mail:465?from=a@example.com", "SMS_URL", "https://sms.example/v1",
		"SMS_TOKEN", "tok", "SMS_VERIFIED_ONLY", "true", "SMS_PRICES", "86=0.045 CNY", "SMS_BUDGET_MONEY_PER_DAY", "250.5", "WEBHOOK_URL", "http://hook.example/", "WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "VAPID_PUBLIC_KEY", public,
		"VAPID_PRIVATE_KEY", private, "VAPID_SUBJECT", "mailto:a@example.com", "PUSH_PRIVATE", "yes",
		"APNS_KEY", base64.StdEncoding.EncodeToString([]byte(appleKey)), "APNS_KEY_ID", "ABC123DEFG", "APNS_TEAM_ID", "DEF123GHIJ", "APNS_TOPIC", "com.example.shop",
		"APNS_URL", "https://api.sandbox.push.apple.com", "APNS_LIVE", "on", "FCM_SERVICE_ACCOUNT", googleAccount, "FCM_URL", "http://127.0.0.1:9", "FCM_PER_MINUTE", "90000",
		"LINK_SECRET", "0123456789abcdef0123456789abcdef,another0123456789abcdef0123456789", "RATE_LIMIT_PER_MINUTE", "0", "RATE_LIMIT_KEY_PER_MINUTE", "1",
		"DATABASE_POOL_MODE", "transaction", "DATABASE_SESSION_URL", "postgres://u:p@primary:5432/dropbell",
		"CELLS", "main=postgres://u:p@db:5432/dropbell", "MOVE_DATABASE_URL", "postgres://u:p@other:5432/dropbell", "DATABASE_REPLICA_URL", "postgres://u:p@standby:5432/dropbell", "DATABASE_REPLICA_MAX_LAG", "2s",
		"DATABASE_MAX_CONNS", "1000", "RETENTION_DAYS", "0", "AUDIT_RETENTION_DAYS", "36500", "COUPON_RETENTION_DAYS", "800", "OPERATION_RETENTION_DAYS", "30",
		"COUPON_LOCK_TIMEOUT", "90s", "GATE_SHARDS", "8", "REQUEST_TIMEOUT", "900ms", "SHUTDOWN_DELAY", "20s", "MAX_IN_FLIGHT", "77",
		"OIDC_ISSUER", "https://id.example/realm", "OIDC_CLIENT_ID", "console", "OIDC_CLIENT_SECRET", "shh", "CONSOLE_PASSWORDS", "off", "WORKER_ROLES", "timers, house", "WORKER_CHANNELS", "sms", "WORKER_BATCHES", "email=9, sms = 1,", "WORKER_CALLS", "webhook=256",
		"OTEL_EXPORTER_OTLP_ENDPOINT", "http://traces:4318", "OTEL_TRACES_SAMPLER_ARG", "0.25",
		"CODE_KEYS", "1:"+strings.Repeat("QUJD", 8), "METRICS_TOKEN", "a token of 16 by..",
		"EVENTS_KEY", "a key with at least thirty-two bytes,another key of thirty-two bytes!", "PROVIDERS_KEY", "a third key with thirty-two bytes!", "EVENTS_INSECURE", "on", "EVENTS_RETENTION_DAYS", "30",
		"DRAW_KEY", "a fourth key with thirty-two bytes", "DRAND_URLS", "https://api.drand.sh, http://127.0.0.1:9,", "DRAW_LOCAL_BEACON", "on", "REHEARSAL_QUIET", "30m", "REHEARSAL_OPENS_IN", "1m",
		"METRICS_ADDR", "127.0.0.1:9090", "SECURITY_CONTACT", "mailto:security@example.com", "SMTP_TLS", "required",
		"SMTP_FEEDBACK", "ses", "SES_TOPICS", "arn:aws:sns:eu-west-1:123456789012:mail, arn:aws-cn:sns:cn-north-1:123456789012:mail.fifo,", "SENDGRID_WEBHOOK_KEY", sendGridKey,
		"MAILGUN_WEBHOOK_KEY", "a key of 16 bytes", "POSTMARK_WEBHOOK_SECRET", "a word of 16 bytes", "DIRECTMAIL_TOKEN", "a token of 16 bytes",
		"BOUNCE_ADDRESS", "bounces@mail.example.com", "BOUNCE_IMAP_URL", "imaps://bounces:word@mail.example.com/INBOX", "DKIM_DOMAIN", "Example.com", "DKIM_SELECTOR", "drop", "DKIM_KEY", key, "MAIL_DOMAIN_RATES", "Gmail.com=20, qq.com=10,", "MAIL_WARMUP", "2026-12-01:200x1.5",
		"PASS_TYPE_ID", pass.TypeID, "PASS_TEAM_ID", pass.TeamID, "PASS_CERTIFICATE", base64.StdEncoding.EncodeToString(pass.Certificate), "PASS_KEY", string(pass.Key),
		"PASS_WWDR", string(pass.WWDR), "PASS_PUSH_URL", "http://127.0.0.1:8", "GOOGLE_WALLET_ACCOUNT", googleAccount, "GOOGLE_WALLET_ISSUER", "3388000000012345678",
		"GOOGLE_WALLET_URL", "http://127.0.0.1:7", "PASS_SECRET", "0123456789abcdef0123456789abcdef", "SITEVERIFY_URL", "http://127.0.0.1:6", "SITEVERIFY_SECRET", "shh"))
	musttest.OK(t, err)
	prices, err := delivery.ParseSMSPrices("86=0.045 CNY")
	musttest.OK(t, err)
	want := config.Config{DatabaseURL: "postgres://u:p@db:5432/dropbell", Cells: []config.Cell{{Name: "main", URL: "postgres://u:p@db:5432/dropbell"}}, RedisURL: "redis://cache:6379/0", HTTPAddr: ":80",
		PoolMode: "transaction", SessionURL: "postgres://u:p@primary:5432/dropbell", MoveURL: "postgres://u:p@other:5432/dropbell", ReplicaURL: "postgres://u:p@standby:5432/dropbell", ReplicaMaxLag: 2 * time.Second,
		WorkerHTTPAddr: ":81", PublicURL: "https://drops.example", ShopOrigins: []string{"https://shop.example", "http://localhost:3000"}, TrustedProxies: []string{"10.0.0.0/8", "192.168.0.7/32"}, LogLevel: "debug",
		JWTSecret: "0123456789abcdef0123456789abcdef", JWTIssuer: "iss", JWTAud: "aud", JWTMaxAge: 90 * time.Minute, AdminEmail: "a@example.com", AdminPassword: "correct horse",
		AdminAPIKey: "dbk_abcdefghijklmnopqrst", SMTPURL: "smtps://u:p@mail:465?from=a@example.com", SMS: config.SMS{Provider: "json", URL: "https://sms.example/v1", Token: "tok", VerifiedOnly: true, Prices: prices, MicrosPerDay: 250_500_000},
		WebhookURL: "http://hook.example/", WebhookSecret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", VAPIDPublicKey: public, VAPIDPrivateKey: private,
		VAPIDSubject: "mailto:a@example.com",
		APNSKey:      appleKey, APNSKeyID: "ABC123DEFG", APNSTeamID: "DEF123GHIJ", APNSTopic: "com.example.shop", APNSURL: "https://api.sandbox.push.apple.com",
		APNSLive: true, FCMAccount: googleAccount, FCMURL: "http://127.0.0.1:9", FCMPerMinute: 90_000,
		LinkSecret: "0123456789abcdef0123456789abcdef,another0123456789abcdef0123456789", RatePerKey: 1, DBConns: 1000, RetainAudit: 36500 * 24 * time.Hour, RetainCoupons: 800 * 24 * time.Hour, KeepOperations: new(30 * 24 * time.Hour),
		LockFor: 90 * time.Second, GateShards: 8, RequestTimeout: 900 * time.Millisecond, ShutdownDelay: 20 * time.Second, MaxInFlight: 77,
		OIDCIssuer: "https://id.example/realm", OIDCClientID: "console", OIDCClientSecret: "shh", PasswordsOff: true, WorkerRoles: []string{"timers", "house"}, WorkerChannels: []string{"sms"},
		WorkerBatches: map[string]int{"app": 16, "email": 9, "sms": 1, "webpush": 8, "webhook": 4}, WorkerCalls: map[string]int{"app": 1, "email": 4, "sms": 4, "webpush": 4, "webhook": 256},
		TraceEndpoint: "http://traces:4318", TraceRatio: 0.25,
		CodeKeys: "1:" + strings.Repeat("QUJD", 8), MetricsToken: "a token of 16 by..",
		EventsKeys: []string{"a key with at least thirty-two bytes", "another key of thirty-two bytes!"}, ProvidersKeys: []string{"a third key with thirty-two bytes!"}, EventsInsecure: true, PushPrivate: true, RetainHooks: 30 * 24 * time.Hour,
		DrawKeys: "a fourth key with thirty-two bytes", DrandURLs: []string{"https://api.drand.sh", "http://127.0.0.1:9"}, LocalBeacon: true, RehearsalQuiet: 30 * time.Minute, RehearsalOpensIn: time.Minute,
		MetricsAddr: "127.0.0.1:9090", SecurityContact: "mailto:security@example.com", SMTPTLS: "required",
		SMTPFeedback: "ses", SESTopics: []string{"arn:aws:sns:eu-west-1:123456789012:mail", "arn:aws-cn:sns:cn-north-1:123456789012:mail.fifo"}, SendGridKey: sendGridKey,
		MailgunKey: "a key of 16 bytes", PostmarkSecret: "a word of 16 bytes", DirectMailToken: "a token of 16 bytes",
		Mail: config.Mail{BounceAddress: "bounces@mail.example.com", BounceMailbox: "imaps://bounces:word@mail.example.com/INBOX", DKIMDomain: "example.com", DKIMSelector: "drop", DKIMKey: strings.TrimSpace(key),
			DomainRates: map[string]int{"gmail.com": 20, "qq.com": 10}, WarmUp: delivery.WarmUp{Start: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), First: 200, Factor: 1.5}},
		PassSecret: "0123456789abcdef0123456789abcdef", SiteVerifyURL: "http://127.0.0.1:6", SiteVerifySecret: "shh",
		Wallet: config.Wallet{TypeID: pass.TypeID, TeamID: pass.TeamID, Certificate: strings.TrimSpace(string(pass.Certificate)), Key: strings.TrimSpace(string(pass.Key)),
			WWDR: strings.TrimSpace(string(pass.WWDR)), PushURL: "http://127.0.0.1:8", GoogleAccount: googleAccount, GoogleIssuer: "3388000000012345678", GoogleURL: "http://127.0.0.1:7"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	for _, addresses := range []string{"redis://a:1,rediss://b:2, redis://c:3", "redis://u:p@a:1,b:2, [::1]:3"} {
		cluster, err := config.Load(least("REDIS_URL", addresses, "AUTH_JWKS_URL", "https://id.example/keys"))
		if err != nil || cluster.RedisURL != addresses || cluster.JWKSURL != "https://id.example/keys" {
			t.Errorf("%+v %v", cluster, err)
		}
	}
}

// public and private are a pair of VAPID keys; another belongs to neither.
const (
	public  = "BHZgwOGn-tNyw7BHNLw_Lh0q1B0T0Y9iSoh1agFvQXcXfkEaHEp5h8hQuSqSgPt8u5Mzj4BSgxxAJy7hembuO6M"
	private = "dpLDrTVAu4A8Ags67mbNiIcSMjTqDG5xQ8Ct1z_0Me0"
	another = "P8TM_nRYcOLA2Z9x8w_wZWyN7dQcwdfT03aw2-aF4vM"
)

// appleKey is a P-256 key in the form in which Apple issues keys. googleAccount is a service
// account with the same key. Both were made for this test.
const (
	appleKey = "-----BEGIN PRIVATE KEY-----\n" +
		"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgzsfiAq5HzcNyQ37t\n" +
		"HcbAwE1rmaekO5eOj9DO27Y3XdOhRANCAAQW/b59NLDd/xsdDGiPupX5V0TeWvIe\n" +
		"Z56X05w2MvxBnX4n0bpu9NM7BDEAB6lYOeZjweJLDGQv0Kwe5KACTCQU\n" +
		"-----END PRIVATE KEY-----"
	googleAccount = `{"type":"service_account","project_id":"p","private_key":"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n","client_email":"a@p.example","token_uri":"https://oauth2.example/token"}`
)

// sendGridKey is a public key in the form in which SendGrid shows keys; it was made for this
// test.
const sendGridKey = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEgyan75tlZBNetHMvOzMk7NjJxtaFeswkmwOPZOH7v49rkImD2ZterdVvMr3uIakJSJLsO7x8DlHU30cDlZ8JZA=="

// secret is in every wrong value; no message may show it.
const secret = "hunter2"

// mistakes has a wrong value for each variable that can have a wrong value.
var mistakes = map[string]string{
	"DATABASE_URL": "mysql://u:" + secret + "@db/x", "REDIS_URL": "http://:" + secret + "@cache", "PUBLIC_URL": "ftp://" + secret,
	"LOG_LEVEL": secret, "METRICS_TOKEN": secret, "AUTH_JWT_SECRET": secret, "AUTH_JWKS_URL": "file:///" + secret, "ADMIN_PASSWORD": secret,
	"TRUSTED_PROXIES": "10.0.0.0/8," + secret, "ADMIN_EMAIL": secret,
	"ADMIN_API_KEY": secret + "-long-enough-but-not-dbk", "SMTP_URL": "mail://u:" + secret + "@mail", "SMS_URL": secret,
	"WEBHOOK_URL": "gopher://" + secret, "WEBHOOK_SECRET": secret, "SMS_TOKEN": secret + "\n" + secret,
	"VAPID_PUBLIC_KEY": secret, "VAPID_PRIVATE_KEY": secret, "VAPID_SUBJECT": secret, "PUSH_PRIVATE": secret, "APNS_KEY": "-----BEGIN PRIVATE KEY-----" + secret, "APNS_KEY_ID": secret, "APNS_TEAM_ID": secret, "APNS_TOPIC": secret,
	"APNS_URL": "http://" + secret + ".example", "APNS_LIVE": secret, "FCM_SERVICE_ACCOUNT": `{"private_key":"` + secret + `"}`, "FCM_URL": secret, "FCM_PER_MINUTE": "59", "HTTP_ADDR": secret, "WORKER_HTTP_ADDR": secret + ":x", "RATE_LIMIT_PER_MINUTE": secret, "RATE_LIMIT_KEY_PER_MINUTE": "-1",
	"CELLS": "a=mysql://u:" + secret + "@db/x", "DATABASE_POOL_MODE": secret, "DATABASE_SESSION_URL": "mysql://u:" + secret + "@db/x", "MOVE_DATABASE_URL": "mysql://u:" + secret + "@db/x", "DATABASE_REPLICA_URL": "mysql://u:" + secret + "@db/x", "DATABASE_REPLICA_MAX_LAG": secret,
	"DATABASE_MAX_CONNS": "3", "RETENTION_DAYS": "-1", "OPERATION_RETENTION_DAYS": "-1", "AUDIT_RETENTION_DAYS": secret,
	"CONSOLE_PASSWORDS": secret, "WORKER_ROLES": secret, "WORKER_CHANNELS": "app," + secret, "WORKER_BATCHES": "app=" + secret, "WORKER_CALLS": secret + "=1",
	"DRAW_KEY": secret, "DRAND_URLS": "ftp://" + secret, "DRAW_LOCAL_BEACON": secret, "REHEARSAL_QUIET": secret, "REHEARSAL_OPENS_IN": secret,
	"PROVIDERS_KEY": secret, "EVENTS_KEY": secret, "EVENTS_INSECURE": secret, "EVENTS_RETENTION_DAYS": secret,
	"OIDC_ISSUER":          "ldap://" + secret,
	"PICTURES_S3_ENDPOINT": secret, "EXPORTS_S3_ENDPOINT": "https://" + secret + "/path", "EXPORTS_S3_BUCKET": secret + "_",
	"PASS_SECRET": secret, "SITEVERIFY_URL": "http://" + secret + ".example",
	"SMTP_FEEDBACK": secret, "SES_TOPICS": "arn:aws:sqs:" + secret, "SENDGRID_WEBHOOK_KEY": secret, "MAILGUN_WEBHOOK_KEY": secret, "POSTMARK_WEBHOOK_SECRET": secret, "DIRECTMAIL_TOKEN": secret,
	"BOUNCE_ADDRESS": secret, "BOUNCE_IMAP_URL": "pop3://" + secret, "DKIM_DOMAIN": secret + "_", "DKIM_SELECTOR": secret + "_", "DKIM_KEY": secret, "MAIL_DOMAIN_RATES": secret + "=x", "MAIL_WARMUP": secret,
	"PASS_TYPE_ID": secret, "PASS_TEAM_ID": secret, "PASS_CERTIFICATE": "-----BEGIN CERTIFICATE-----" + secret, "PASS_KEY": "-----BEGIN RSA PRIVATE KEY-----" + secret, "PASS_WWDR": "-----BEGIN CERTIFICATE-----" + secret,
	"PASS_PUSH_URL": "http://" + secret + ".example", "GOOGLE_WALLET_ACCOUNT": `{"private_key":"` + secret + `"}`, "GOOGLE_WALLET_ISSUER": secret, "GOOGLE_WALLET_URL": secret,
	"OTEL_EXPORTER_OTLP_ENDPOINT": secret, "OTEL_TRACES_SAMPLER_ARG": secret,
}

func TestEveryMistakeIsNamedAtOnce(t *testing.T) {
	_, err := config.Load(func(name string) string { return mistakes[name] })
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for name := range mistakes {
		if !strings.Contains(err.Error(), name+" ") {
			t.Errorf("%s is not named", name)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n > len(mistakes)+7 { // and seven that stand alone
		t.Errorf("%d lines for %d mistakes: %v", n, len(mistakes), err)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("a value is shown: %v", err)
	}
}

func TestEachMistakeAlone(t *testing.T) {
	for name, value := range map[string][]string{
		"DATABASE_URL":              {"", "postgres://", "host=db user=u", "postgres://u:" + secret + "@%zz/x", "://" + secret, "postgres://u:" + secret + "@db/x?sslmode=perhaps"},
		"REDIS_URL":                 {"", "redis://a,b", "redis://a,", "cache:6379", "redis://", "redis://:12/" + secret + "@cache", "redis://a/0?colour=red", "redis://a?colour=red,redis://b", "redis://a:1,b:x", "redis://a:1,:2", "a:1,redis://b:2"},
		"PUBLIC_URL":                {"drops.example", "//drops.example", "https://a.example,https://b.example", "https://:443", "https://drops.example/?shop=1", "https://drops.example?", "https://drops.example/#" + secret, "https://ada:" + secret + "@drops.example"},
		"SHOP_ORIGINS":              {"*", "shop.example", "https://shop.example/", "https://Shop.example", "https://*.shop.example", "http://shop.example", "https://ada:" + secret + "@shop.example", "https://a.example;https://b.example", "null"},
		"HTTP_ADDR":                 {"8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:web-of-nobody"},
		"WORKER_HTTP_ADDR":          {"::1:8081"},
		"AUTH_JWKS_URL":             {"https://", "id.example/keys"},
		"ADMIN_API_KEY":             {"dbk_short" + "4567890123", "DBK_abcdefghijklmnopqrst"},
		"AUTH_JWT_SECRET":           {"fifteen bytes.."},
		"RATE_LIMIT_PER_MINUTE":     {"1.5", "1e3", "ten", "10000001", "99999999999999999999"},
		"RATE_LIMIT_KEY_PER_MINUTE": {"100000001"},
		"DATABASE_MAX_CONNS":        {"0", "1001"},
		"WORKER_BATCHES":            {"8", "email", "email=0", "email=257", "post=1", "email=1;sms=2"},
		"WORKER_CALLS":              {"=", "sms=-1"},
		"DATABASE_POOL_MODE":        {"statement", "Transaction"},
		"DATABASE_SESSION_URL":      {"postgres://", "postgres://u:" + secret + "@%zz/x"},
		"CELLS":                     {"postgres://u:" + secret + "@db/x", "A=postgres://u:p@db:5432/dropbell", "a=postgres://u:p@db:5432/dropbell,b=mysql://" + secret, "a=postgres://u:p@db:5432/dropbell,a=postgres://b/x", "a=postgres://u:" + secret + "@other/x"},
		"MOVE_DATABASE_URL":         {"other", "postgres://u:" + secret + "@%zz/x"},
		"RETENTION_DAYS":            {"36501", "90d"},
		"REQUEST_TIMEOUT":           {"99ms", "16s", "2"},
		"SHUTDOWN_DELAY":            {"-1s", "121s", "5"},
		"MAX_IN_FLIGHT":             {"-1", "100001", "many"},
		"GATE_SHARDS":               {"-1", "65", "all"},
		"OTEL_TRACES_SAMPLER_ARG":   {"1.01", "-0.1", "NaN", "Inf"},
		"LOG_LEVEL":                 {"INFO", "trace"},
		"LINK_SECRET":               {"31 bytes are one byte too few..", "0123456789abcdef0123456789abcdef,short", ","},
	} {
		for _, v := range value {
			_, err := config.Load(least(name, v))
			if err == nil || !strings.HasPrefix(err.Error(), name+" ") || strings.Contains(err.Error(), secret) {
				t.Errorf("%s=%q: %v", name, v, err)
			} else if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s=%q is one mistake: %v", name, v, err)
			}
		}
	}
}

func signOn(issuer string) []string {
	return []string{"OIDC_ISSUER", issuer, "OIDC_CLIENT_ID", "console", "OIDC_CLIENT_SECRET", "shh"}
}

func TestWhatBelongsTogether(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
		want string // "" = fine
	}{
		{"both ways to verify tokens", []string{"AUTH_JWT_SECRET", "0123456789abcdef0123456789abcdef", "AUTH_JWKS_URL", "https://x.example"}, "not both"},
		{"an admin without a password", []string{"ADMIN_EMAIL", "a@example.com"}, "ADMIN_EMAIL and ADMIN_PASSWORD"},
		{"a password for nobody", []string{"ADMIN_PASSWORD", "correct horse"}, "ADMIN_EMAIL and ADMIN_PASSWORD"},
		{"a common password", []string{"ADMIN_EMAIL", "a@example.com", "ADMIN_PASSWORD", "Passw0rd2024!"}, "ADMIN_PASSWORD is one of the commonest"},
		{"a sequence for a password", []string{"ADMIN_EMAIL", "a@example.com", "ADMIN_PASSWORD", "qwertyuiop123456"}, "ADMIN_PASSWORD must not be a repetition"},
		{"the own address for a password", []string{"ADMIN_EMAIL", "grace@example.com", "ADMIN_PASSWORD", "grace@example.com!"}, "ADMIN_PASSWORD must not be made of"},
		{"too short a password", []string{"ADMIN_EMAIL", "a@example.com", "ADMIN_PASSWORD", "grey herons"}, "ADMIN_PASSWORD must have between 12"},
		{"the demo's password", []string{"ADMIN_EMAIL", "demo@dropbell.test", "ADMIN_PASSWORD", "ring-the-bell"}, ""},
		{"the demo's password on this machine", []string{"ADMIN_EMAIL", "demo@dropbell.test", "ADMIN_PASSWORD", "ring-the-bell", "HTTP_ADDR", "[::1]:8080"}, ""},
		{"the demo's password for everybody", []string{"ADMIN_EMAIL", "demo@dropbell.test", "ADMIN_PASSWORD", "ring-the-bell", "HTTP_ADDR", "0.0.0.0:8080"}, "ADMIN_PASSWORD is the demo's well-known one"},
		{"the demo's password on any address", []string{"ADMIN_EMAIL", "demo@dropbell.test", "ADMIN_PASSWORD", "ring-the-bell", "HTTP_ADDR", ":8080"}, "ADMIN_PASSWORD is the demo's well-known one"},
		{"the demo's password in a network", []string{"ADMIN_EMAIL", "demo@dropbell.test", "ADMIN_PASSWORD", "ring-the-bell", "HTTP_ADDR", "10.0.0.7:8080"}, "ADMIN_PASSWORD is the demo's well-known one"},
		{"a webhook without a secret", []string{"WEBHOOK_URL", "https://x.example"}, "WEBHOOK_URL and WEBHOOK_SECRET"},
		{"a secret without a webhook", []string{"WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, "WEBHOOK_URL and WEBHOOK_SECRET belong together; not set: WEBHOOK_URL"},
		{"keys of two pairs", []string{"VAPID_PUBLIC_KEY", public, "VAPID_PRIVATE_KEY", another, "VAPID_SUBJECT", "mailto:a@example.com"}, "does not belong to VAPID_PRIVATE_KEY"},
		{"reports of mails that nothing names", []string{"MAILGUN_WEBHOOK_KEY", "a key of 16 bytes"}, "LINK_SECRET is missing"},
		{"sms without a token", []string{"SMS_URL", "https://x.example"}, "SMS_TOKEN"},
		{"an unknown provider of sms", []string{"SMS_PROVIDER", "carrier-pigeon"}, "SMS_PROVIDER"},
		{"twilio without an account", []string{"SMS_PROVIDER", "twilio", "SMS_KEY_SECRET", "x", "SMS_FROM", "MG1"}, "SMS_KEY_ID"},
		{"aliyun without texts", []string{"SMS_PROVIDER", "aliyun", "SMS_KEY_ID", "x", "SMS_KEY_SECRET", "x", "SMS_SIGNATURE", "x"}, "SMS_TEMPLATES"},
		{"tencent without an application", []string{"SMS_PROVIDER", "tencent", "SMS_KEY_ID", "x", "SMS_KEY_SECRET", "x", "SMS_TEMPLATES", "{}"}, "SMS_APP_ID"},
		{"aliyun with a secret that can be guessed", []string{"SMS_PROVIDER", "aliyun", "SMS_KEY_ID", "x", "SMS_KEY_SECRET", "x", "SMS_SIGNATURE", "x", "SMS_TEMPLATES", "{}", "SMS_TOKEN", "fifteen bytes.."}, "SMS_TOKEN"},
		{"sns without a region", []string{"SMS_PROVIDER", "sns", "SMS_KEY_ID", "x", "SMS_KEY_SECRET", "x"}, "SMS_REGION"},
		{"no country", []string{"SMS_COUNTRIES", "China"}, "SMS_COUNTRIES"},
		{"codes without a key", []string{"SMS_VERIFIED_ONLY", "true"}, "LINK_SECRET is missing"},
		{"money without prices", []string{"SMS_BUDGET_MONEY_PER_DAY", "1"}, "SMS_PRICES is missing"},
		{"prices in two currencies", []string{"SMS_PRICES", "86=1 CNY,852=1 HKD"}, "SMS_PRICES all prices must be in the same currency"},
		{"no amount", []string{"SMS_BUDGET_MONEY_PER_DAY", "1,5"}, "SMS_BUDGET_MONEY_PER_DAY must be an amount"},
		{"neither true nor false", []string{"SMS_VERIFIED_ONLY", "yes"}, "SMS_VERIFIED_ONLY must be true or false"},
		{"no number", []string{"SMS_BUDGET_PER_DAY", "-1"}, "SMS_BUDGET_PER_DAY"},
		{"one VAPID key", []string{"VAPID_PUBLIC_KEY", public}, "not set: VAPID_PRIVATE_KEY, VAPID_SUBJECT"},
		{"VAPID without a subject", []string{"VAPID_PUBLIC_KEY", public, "VAPID_PRIVATE_KEY", private}, "not set: VAPID_SUBJECT"},
		{"all of VAPID", []string{"VAPID_PUBLIC_KEY", public, "VAPID_PRIVATE_KEY", private, "VAPID_SUBJECT", "mailto:a@example.com"}, ""},
		{"Live Activities without a key", []string{"APNS_LIVE", "on"}, "APNS_LIVE=on needs APNS_KEY"},
		{"a key of Apple alone", []string{"APNS_KEY", appleKey}, "not set: APNS_KEY_ID, APNS_TEAM_ID, APNS_TOPIC"},
		{"no passwords and no other way in", []string{"CONSOLE_PASSWORDS", "off"}, "CONSOLE_PASSWORDS=off needs single sign-on"},
		{"no passwords and an admin without one", append(signOn("https://id.example"), "CONSOLE_PASSWORDS", "off", "ADMIN_EMAIL", "a@example.com"), ""},
		{"a service for tokens without a secret", []string{"SITEVERIFY_URL", "https://x.example"}, "SITEVERIFY_URL and SITEVERIFY_SECRET"},
		{"tokens without passes", []string{"SITEVERIFY_URL", "https://x.example", "SITEVERIFY_SECRET", "x"}, "PASS_SECRET is missing"},
		{"an issuer alone", []string{"OIDC_ISSUER", "https://id.example"}, "OIDC_CLIENT_SECRET belong together"},
		{"single sign-on without a secret", []string{"OIDC_ISSUER", "https://id.example", "OIDC_CLIENT_ID", "x"}, "OIDC_CLIENT_SECRET belong together"},
		{"a client without an issuer", []string{"OIDC_CLIENT_SECRET", "x", "OIDC_CLIENT_ID", "x"}, "OIDC_CLIENT_SECRET belong together"},
		{"all of single sign-on", signOn("https://id.example/realm"), ""},
		{"an issuer without a scheme", signOn("id.example"), "OIDC_ISSUER "},
		{"an issuer without a host", signOn("https://"), "OIDC_ISSUER "},
		{"an issuer with a password", signOn("https://u:p@id.example"), "OIDC_ISSUER "},
		{"an issuer with a query", signOn("https://id.example?x=1"), "OIDC_ISSUER "},
		{"an issuer that is no web address", signOn("ldap://id.example"), "OIDC_ISSUER "},
		{"only space", []string{"WEBHOOK_URL", "  ", "ADMIN_EMAIL", "\t"}, ""},
	} {
		_, err := config.Load(least(c.env...))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestHelpListsEveryVariable(t *testing.T) {
	var out bytes.Buffer
	config.Help(&out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(config.Variables())+1 {
		t.Fatalf("%d lines for %d variables", len(lines), len(config.Variables()))
	}
	seen := map[string]bool{}
	for i, v := range config.Variables() {
		fields := strings.Fields(lines[i+1])
		if fields[0] != v.Name || v.Default != "" && fields[1] != v.Default || !strings.HasSuffix(lines[i+1], v.Meaning) || v.Meaning == "" {
			t.Errorf("%s: %q", v.Name, lines[i+1])
		}
		if seen[v.Name] {
			t.Errorf("%s stands twice", v.Name)
		}
		seen[v.Name] = true
	}
	for _, promised := range []string{"DATABASE_URL", "REDIS_URL", "HTTP_ADDR", "AUTH_JWT_SECRET", "AUTH_JWKS_URL", "ADMIN_EMAIL", "ADMIN_PASSWORD",
		"ADMIN_API_KEY", "SMTP_URL", "SMS_URL", "SMS_TOKEN", "WEBHOOK_URL", "WEBHOOK_SECRET", "VAPID_PUBLIC_KEY", "VAPID_PRIVATE_KEY", "VAPID_SUBJECT"} {
		if !seen[promised] {
			t.Errorf("%s is promised and not read", promised)
		}
	}
}

// TestWeakSettings: a weak setting is refused with a message that says what is required and does
// not repeat the value.
func TestWeakSettings(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"AUTH_JWT_SECRET", "0123456789abcdef0123456789abcde", "must have at least 32 bytes"},
		{"WEBHOOK_SECRET", "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM=", "at least 24 bytes in base64"},
		{"AUTH_JWKS_URL", "http://id.example/keys", "must begin with https://"},
		{"AUTH_JWKS_URL", "http://127.0.0.1.id.example/keys", "must begin with https://"},
		{"OIDC_ISSUER", "http://10.0.0.7:8080/realm", "must begin with https://"},
		{"SMTP_TLS", "yes", "required or opportunistic"},
		{"ALERTS_PRIVATE", "1", "yes or no"},
		{"METRICS_ADDR", "9090", "host:port"},
		{"SECURITY_CONTACT", "ada@shop.example", "mailto:"},
		{"AUTH_JWT_MAX_AGE", "1s", "must be a duration between 1m0s and 8760h0m0s"},
	} {
		_, err := config.Load(least(c.name, c.value))
		if err == nil || !strings.HasPrefix(err.Error(), c.name+" ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.value) {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
	}
	for name, values := range map[string][]string{
		"AUTH_JWT_SECRET":  {"0123456789abcdef0123456789abcdef"},
		"AUTH_JWKS_URL":    {"http://localhost:9/keys", "http://127.8.0.1/keys", "http://[::1]:9/keys", "https://id.example/keys"},
		"AUTH_JWT_MAX_AGE": {"0", "1m"},
	} {
		for _, v := range values {
			if _, err := config.Load(least(name, v)); err != nil {
				t.Errorf("%s=%s: %v", name, v, err)
			}
		}
	}
}
