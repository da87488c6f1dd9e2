// Package config reads the environment, reports all mistakes together and describes the
// variables for --help. It also runs a program's command and turns the result into an exit code.
// All programs share it.
package config

import (
	"errors"
	"fmt"
	"io"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
)

// Config is the environment of both programs. The units of durations and counts are described by
// their variables; see [Variables].
type Config struct {
	DatabaseURL string
	// Cells are the databases of the installation, home first; empty = DatabaseURL alone. Cell is the
	// number of the cell that this configuration is for, see [Config.OfCell].
	Cells []Cell
	Cell  int
	// SessionURL is the address of the database without a transaction pool in between; empty =
	// DatabaseURL is such an address.
	SessionURL string
	MoveURL    string // the database to which worker move takes a shop
	PoolMode   string // session or transaction
	// ReplicaURL leads to a standby that reports are read from; empty = none.
	ReplicaURL string
	// ReplicaMaxLag is how far behind the standby may be.
	ReplicaMaxLag time.Duration
	RedisURL      string
	// SharedRedisURL is the Redis of limits that all cells share; empty = RedisURL.
	SharedRedisURL string

	HTTPAddr       string
	WorkerHTTPAddr string
	PublicURL      string
	TrustedProxies []string
	LogLevel       string
	MetricsToken   string
	// ShopOrigins are the origins whose pages may call the API of end users.
	ShopOrigins []string
	// MetricsAddr is where web serves /metrics; empty = on HTTPAddr.
	MetricsAddr string
	// SecurityContact is where weaknesses are reported; empty = no security.txt.
	SecurityContact string

	JWTSecret string
	JWKSURL   string
	JWTIssuer string
	JWTAud    string
	// JWTMaxAge is how long after its iat an end user's token is accepted; 0 =
	// until its exp.
	JWTMaxAge time.Duration

	AdminEmail    string
	AdminPassword string
	AdminAPIKey   string

	SMTPURL string
	SMTPTLS string // required or opportunistic
	// SMTPFeedback is the mail provider that gets each mail's reference; empty = no provider
	// gets it.
	SMTPFeedback string
	// SESTopics, SendGridKey, MailgunKey, PostmarkSecret and DirectMailToken verify the reports
	// of these providers.
	SESTopics       []string
	SendGridKey     string
	MailgunKey      string
	PostmarkSecret  string
	DirectMailToken string
	SMS             SMS
	Mail            Mail
	WebhookURL      string
	WebhookSecret   string
	VAPIDPublicKey  string
	VAPIDPrivateKey string
	VAPIDSubject    string
	// APNSKey is the .p8 file of Apple, FCMAccount the JSON file of Google.
	APNSKey    string
	APNSKeyID  string
	APNSTeamID string
	APNSTopic  string
	APNSURL    string
	// APNSLive is whether Live Activities follow drops.
	APNSLive     bool
	FCMAccount   string
	FCMURL       string
	FCMPerMinute int
	Wallet       Wallet
	Pictures     ObjectStore // without it the database keeps pictures
	Exports      ObjectStore // without it nothing is exported

	// OIDCIssuer is empty if single sign-on is off.
	OIDCIssuer       string
	OIDCClientID     string
	OIDCClientSecret string

	// WorkerRoles and WorkerChannels restrict what a worker does; empty = no restriction.
	WorkerRoles, WorkerChannels []string
	// WorkerBatches is how many batches of each channel a worker delivers at a time. WorkerCalls
	// is how many calls of its provider each of these batches makes at a time. The keys are the
	// names of channels.
	WorkerBatches, WorkerCalls map[string]int
	// PasswordsOff is whether console staff sign in with single sign-on only.
	PasswordsOff bool
	// SecondFactor is required, optional, or empty where admins decide.
	SecondFactor string
	// SecondFactorKeys encrypt the secrets of authenticator apps. The first key encrypts new
	// secrets; no keys = secrets are stored unencrypted.
	SecondFactorKeys []string
	// DrawKeys sign draws, separated by commas. The first key signs new draws. Empty = there are no draws.
	DrawKeys string
	// DrandURLs are relays of drand; LocalBeacon adds a beacon of the installation's own.
	DrandURLs   []string
	LocalBeacon bool
	// EventsKeys encrypt the secrets of webhook endpoints. The first key encrypts new secrets;
	// empty = secrets are stored unencrypted.
	EventsKeys []string
	// ProvidersKeys encrypt the secrets of providers that staff configure. The first key
	// encrypts new secrets.
	ProvidersKeys []string
	// EventsInsecure allows webhook endpoints to use http and private addresses.
	// ProvidersPrivate allows private addresses to providers that staff configure.
	// PushPrivate allows push services of browsers on this machine, without TLS.
	EventsInsecure, ProvidersPrivate, PushPrivate bool
	// RehearsalQuiet is how long before the opening of a drop no rehearsal begins; 0 = rehearsals begin at any time.
	RehearsalQuiet time.Duration
	// RehearsalOpensIn is the time from the preparation of a rehearsal to the opening of its copy.
	RehearsalOpensIn time.Duration
	// RetainHooks is how long sent events are kept.
	RetainHooks time.Duration

	LinkSecret string
	// PassSecret signs passes of protected drops. SiteVerifyURL and SiteVerifySecret name the service
	// that checks tokens.
	PassSecret, SiteVerifyURL, SiteVerifySecret string
	// AlertsPrivate permits chat groups for staff at private addresses and in plain http.
	AlertsPrivate bool

	// CodeKeys are the keys of redeem codes, in the form that
	// [redeemcode.ParseKeys] reads; checked.
	CodeKeys string

	RatePerUser int
	RatePerKey  int
	// RequestTimeout is how long an end user waits for an answer.
	RequestTimeout time.Duration
	// ShutdownDelay is how long web goes on serving after SIGTERM.
	ShutdownDelay time.Duration
	// MaxInFlight is how many requests of end users web serves at a time; 0 = derived from the
	// memory, see [Config.InFlight].
	MaxInFlight int
	DBConns     int
	RetainFor   time.Duration
	// LockFor is how long a coupon's lock lasts.
	LockFor     time.Duration
	RetainAudit time.Duration
	// GateShards is the number of shards into which a stock behind the claim gate
	// is divided; 0 = derived from its size and the number of Redis masters.
	GateShards int
	// RetainCoupons is how long the coupons of a drop are kept after the drop's last coupon
	// expired; 0 = for ever.
	RetainCoupons time.Duration
	// KeepOperations is how long steps of coupons and orders are kept, zero = for ever; nil = as
	// the audit log. See [Config.RetainOperations].
	KeepOperations *time.Duration

	TraceEndpoint string
	TraceRatio    float64
}

// TransactionPool reports whether a pooler may run each transaction in another
// session of the server.
func (c Config) TransactionPool() bool { return c.PoolMode == "transaction" }

// A Variable describes one environment variable.
type Variable struct {
	Name, Default, Meaning string
	read                   reader
}

// Defaults of WORKER_BATCHES and WORKER_CALLS for channels that these variables do not name. The
// app channel is bound by the database, which stores many batches at once as easily as one
// batch. The other channels are bound by their providers.
var (
	usualBatches = map[string]int{"app": 16, "email": 4, "sms": 8, "webpush": 8, "webhook": 4}
	usualCalls   = map[string]int{"app": 1, "email": 4, "sms": 4, "webpush": 4, "webhook": 10}
)

// Variables returns every variable with its meaning and default.
func Variables() []Variable {
	list := variables()
	at := slices.IndexFunc(list, func(v Variable) bool { return v.Name == "WEBHOOK_URL" })
	return slices.Insert(list, at, append(mailVariables(), smsVariables()...)...)
}

func variables() []Variable {
	return append([]Variable{
		{"DATABASE_URL", "", "PostgreSQL, required: postgres://user:password@host:port/database", required(databaseForm, database(func(c *Config) *string { return &c.DatabaseURL }))},
		{"CELLS", "", "the databases of an installation that has several, home first, each with a name: a=postgres://…,b=postgres://… (docs/cells.md); empty = DATABASE_URL alone, which may be left out otherwise", cells},
		{"DATABASE_POOL_MODE", "session", "transaction: DATABASE_URL leads to a connection pooler, such as PgBouncer, in transaction mode; session: to the server itself, or to a pool in session mode", poolMode},
		{"DATABASE_SESSION_URL", "", "with DATABASE_POOL_MODE=transaction: the server itself, or a pool in session mode, for worker migrate; empty = DATABASE_URL", orNone(database(func(c *Config) *string { return &c.SessionURL }))},
		{"MOVE_DATABASE_URL", "", "the database of another installation, to which worker move takes a shop; no other command reads it", orNone(database(func(c *Config) *string { return &c.MoveURL }))},
		{"DATABASE_REPLICA_URL", "", "a streaming standby of DATABASE_URL, from which web reads lists, exports, estimates and receipts of the console; empty = they are read from DATABASE_URL", orNone(database(func(c *Config) *string { return &c.ReplicaURL }))},
		{"DATABASE_REPLICA_MAX_LAG", "10s", "how far behind the standby may be; beyond it reports are read from DATABASE_URL, between 1s and 1h", span(func(c *Config) *time.Duration { return &c.ReplicaMaxLag }, time.Second, time.Hour)},
		{"REDIS_URL", "", "Redis, required: redis://host:port/0; several addresses separated by commas = Redis Cluster", required(redisForm, redis)},
		{"HTTP_ADDR", "127.0.0.1:8080", "where web serves console and API", listenAddress(func(c *Config) *string { return &c.HTTPAddr })},
		{"WORKER_ROLES", "", "what this worker does, separated by commas: timers (fires slots, starts campaigns), delivery (sends what is due, with sms codes for phone numbers), events (relays the outbox, handles events, sends webhooks), jobs (imports, replays, codes), gate (keeps the claim gate), house (expires coupons, notices, counts, cleans up); empty = everything. Together the workers need every role", someOf(func(c *Config) *[]string { return &c.WorkerRoles }, "timers", "delivery", "events", "jobs", "gate", "house")},
		{"WORKER_CHANNELS", "", "the channels that this worker delivers, separated by commas: app, email, sms, webpush, webhook; empty = all. Together the workers need every channel", someOf(func(c *Config) *[]string { return &c.WorkerChannels }, channels...)},
		{"WORKER_BATCHES", "app=16,email=4,sms=8,webpush=8,webhook=4", "how many batches of each channel this worker delivers at a time, from 1 to 256; channels not named keep their default", perChannel(func(c *Config) *map[string]int { return &c.WorkerBatches }, usualBatches, 256)},
		{"WORKER_CALLS", "app=1,email=4,sms=4,webpush=4,webhook=10", "how many calls of its provider each batch of a channel makes at a time (app: batches recorded side by side in each place), from 1 to 256; channels not named keep their default", perChannel(func(c *Config) *map[string]int { return &c.WorkerCalls }, usualCalls, 256)},
		{"WORKER_HTTP_ADDR", "127.0.0.1:8081", "where worker serves /livez, /readyz and /metrics", listenAddress(func(c *Config) *string { return &c.WorkerHTTPAddr })},
		{"PUBLIC_URL", "http://127.0.0.1:8080", "how browsers reach web, without query, fragment and user name; https makes cookies Secure", bareAddress(func(c *Config) *string { return &c.PublicURL }, "https://drops.example.com")},
		{"SHOP_ORIGINS", "", "origins of shops whose pages may call the API with their users' tokens (CORS), separated by commas: https://shop.example.com; empty = none", origins},
		{"TRUSTED_PROXIES", "", "networks or addresses whose X-Forwarded-For is believed, e.g. 10.0.0.0/8, separated by commas", proxies},
		{"LOG_LEVEL", "info", "debug, info, warn or error", logLevel},
		{"METRICS_TOKEN", "", "bearer token without which web and worker do not serve /metrics, at least 16 bytes; empty = everybody may read it", longEnough(func(c *Config) *string { return &c.MetricsToken }, 16)},
		{"METRICS_ADDR", "", "address of its own on which web serves /metrics, e.g. 127.0.0.1:9090, and then nowhere else; empty = on HTTP_ADDR, and without METRICS_TOKEN only to clients of private networks", orNone(listenAddress(func(c *Config) *string { return &c.MetricsAddr }))},
		{"SECURITY_CONTACT", "", "where weaknesses are reported, for /.well-known/security.txt: mailto:security@example.com or an https:// address; empty = there is no such file", securityContact},
		{"AUTH_JWT_SECRET", "", "shared secret of end users' tokens (HS256), at least 32 bytes; without it and AUTH_JWKS_URL no end user can sign in", longEnough(func(c *Config) *string { return &c.JWTSecret }, 32)},
		{"AUTH_JWKS_URL", "", "instead of AUTH_JWT_SECRET: where the public keys of end users' tokens are published, https:// but on this machine", guarded(webAddress, func(c *Config) *string { return &c.JWKSURL }, "https://id.example.com/.well-known/jwks.json")},
		{"AUTH_JWT_ISSUER", "", "required issuer of end users' tokens; empty = any. With this or AUTH_JWT_AUDIENCE ID tokens are refused", text(func(c *Config) *string { return &c.JWTIssuer })},
		{"AUTH_JWT_AUDIENCE", "", "required audience of end users' tokens; empty = any", text(func(c *Config) *string { return &c.JWTAud })},
		{"AUTH_JWT_MAX_AGE", "24h", "how long after its iat an end user's token is accepted, whatever its exp says, between 1m and 8760h; 0 = until exp. Of tokens without iat those of AUTH_JWKS_URL may last no longer than this, those of AUTH_JWT_SECRET last until exp", orZero(span(func(c *Config) *time.Duration { return &c.JWTMaxAge }, time.Minute, 365*24*time.Hour))},
		{"ADMIN_EMAIL", "", "the first admin, created when there is none", func(c *Config, v string) error {
			c.AdminEmail = v
			if a, err := mail.ParseAddress(v); v != "" && (err != nil || a.Address != v) {
				return errors.New("must be an e-mail address, such as ada@example.com")
			}
			return nil
		}},
		{"ADMIN_PASSWORD", "", "the first admin's password: at least 12 characters, none of the commonest, not made of ADMIN_EMAIL", func(c *Config, v string) error {
			c.AdminPassword = v
			if n := len([]rune(v)); v != "" && (n < staff.MinPassword || n > staff.MaxPassword) {
				return fmt.Errorf("must have between %d and %d characters", staff.MinPassword, staff.MaxPassword)
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
		{"OIDC_ISSUER", "", "single sign-on for the console: the identity provider (OpenID Connect), exactly as it names itself, e.g. https://id.example.com/realm; https:// but on this machine", guarded(bareAddress, func(c *Config) *string { return &c.OIDCIssuer }, "https://id.example.com/realm")},
		{"OIDC_CLIENT_ID", "", "single sign-on: what the provider calls this console", text(func(c *Config) *string { return &c.OIDCClientID })},
		{"OIDC_CLIENT_SECRET", "", "single sign-on: the console's secret at the provider; the redirect URI to register is PUBLIC_URL/signin/oidc/callback", text(func(c *Config) *string { return &c.OIDCClientSecret })},
		{"CONSOLE_PASSWORDS", "on", "on: console staff sign in with a password, or with single sign-on where OIDC_ISSUER is set; off: with single sign-on only, ADMIN_PASSWORD is not used, and sign-ins made with a password end", func(c *Config, v string) error {
			c.PasswordsOff = v == "off"
			if v != "on" && v != "off" {
				return errors.New("must be on or off")
			}
			return nil
		}},
		{"CONSOLE_SECOND_FACTOR", "", "required: operators and admins who sign in with a password need a second factor; optional: nobody does; empty = as set on the console's page Staff, at first required, and optional in an installation that had staff before there were second factors", func(c *Config, v string) error {
			c.SecondFactor = v
			if v != "" && v != "required" && v != "optional" {
				return errors.New("must be required, optional or empty")
			}
			return nil
		}},
		{"SECOND_FACTOR_KEY", "", "encrypts the secrets of authenticator apps in the database, at least 32 bytes; several separated by commas: the first encrypts, all are read; empty = they are stored as they are", secondFactorKeys},
		{"SMTP_URL", "", "channel email: smtp://user:password@host:port?from=… (smtps:// = TLS from the start; else STARTTLS when offered); also starttls=required, auth=plaintext, conns=8", smtpAddress},
		{"SMTP_TLS", "opportunistic", "channel email: required = no mail is sent without TLS (smtps:// or STARTTLS with a certificate that holds); opportunistic = STARTTLS when offered", smtpTLS},
		{"WEBHOOK_URL", "", "channel webhook: where messages are posted", webAddress(func(c *Config) *string { return &c.WebhookURL }, "https://hooks.example.com/dropbell")},
		{"WEBHOOK_SECRET", "", "channel webhook: signs what is posted, whsec_ followed by at least 24 bytes in base64 (Standard Webhooks)", webhookSecret},
		{"VAPID_PUBLIC_KEY", "", "channel webpush: public key, base64url", vapidPublicKey},
		{"VAPID_PRIVATE_KEY", "", "channel webpush: private key, base64url", vapidPrivateKey},
		{"VAPID_SUBJECT", "", "channel webpush: mailto: or https: address of the sender", vapidSubject},
		{"PUSH_PRIVATE", "no", "channel webpush: yes = browsers may have push services on this machine, without TLS, for tests; no = only https to public addresses", pushPrivate},
		{"APNS_KEY", "", "channel webpush, iPhones: the .p8 file as Apple issued it, or the same in base64 on one line", apnsKey},
		{"APNS_KEY_ID", "", "channel webpush, iPhones: id of the key, ten characters", appleID(func(c *Config) *string { return &c.APNSKeyID })},
		{"APNS_TEAM_ID", "", "channel webpush, iPhones: id of the developer team, ten characters", appleID(func(c *Config) *string { return &c.APNSTeamID })},
		{"APNS_TOPIC", "", "channel webpush, iPhones: bundle id of the app, such as com.example.shop", apnsTopic},
		{"APNS_URL", "https://api.push.apple.com", "channel webpush, iPhones: Apple's service; https://api.sandbox.push.apple.com for apps in development", pushAddress(func(c *Config) *string { return &c.APNSURL }, "https://api.push.apple.com")},
		{"APNS_LIVE", "off", "iPhones: on = Live Activities follow drops by Apple's broadcast channels, with APNS_KEY; the app's id needs Broadcast at Apple; off = not", func(c *Config, v string) error {
			c.APNSLive = v == "on"
			if v != "on" && v != "off" {
				return errors.New("must be on or off")
			}
			return nil
		}},
		{"FCM_SERVICE_ACCOUNT", "", "channel webpush, Android phones: the service account's JSON file as Google issued it, or the same in base64 on one line", fcmAccount},
		{"FCM_URL", "https://fcm.googleapis.com", "channel webpush, Android phones: Google's service", pushAddress(func(c *Config) *string { return &c.FCMURL }, "https://fcm.googleapis.com")},
		{"FCM_PER_MINUTE", "600000", "channel webpush, Android phones: messages that all workers together send a minute, the quota of the Firebase project; reminders beyond it go out later, and forecasts say so", number(func(c *Config) *int { return &c.FCMPerMinute }, 60, 100_000_000)},
		{"LINK_SECRET", "", "signs the links with which users turn off a channel, at least 32 bytes; several separated by commas: the first signs, all are accepted; empty = no links", linkSecret},
		{"ALERTS_PRIVATE", "no", "chat groups for notifications of staff: yes = private addresses and plain http are called too; no = only https to public addresses", alertsPrivate},
		{"CODE_KEYS", "", "redeem codes: keys as number:base64, separated by commas, e.g. 1:…,2:…; the greatest number (1 to 31) makes new codes, the others keep theirs valid; web and worker need the same; without it there are no codes", func(c *Config, v string) error {
			c.CodeKeys = v
			_, err := redeemcode.ParseKeys(v)
			return err
		}},
		{"PROVIDERS_KEY", "", "encrypts the secrets of providers that staff configure in the console, at least 32 bytes; several separated by commas: the first encrypts, all are read; web and worker need the same; empty = no secret can be stored", providersKey},
		{"PROVIDERS_PRIVATE", "no", "providers that staff configure in the console: yes = private addresses are called too, and through proxies; no = only public addresses, without proxy. Providers of the environment are called wherever they are", providersPrivate},
		{"DRAW_KEY", "", "draws: signs cards, seals, results and receipts, at least 32 bytes; several separated by commas: the first signs new draws, the others finish those that they began; web and worker need the same; empty = there are no draws", drawKey},
		{"DRAND_URLS", "", "draws: HTTP relays of drand's chain quicknet, such as https://api.drand.sh,https://drand.cloudflare.com; worker asks them for the rounds that decide; empty = other sources of randomness", drandURLs},
		{"REHEARSAL_QUIET", "1h", "rehearsals: how long before the opening of any drop none begins, and at most ten minutes of it after the opening, between 1m and 24h; 0 = at any time, for development", orZero(span(func(c *Config) *time.Duration { return &c.RehearsalQuiet }, time.Minute, 24*time.Hour))},
		{"REHEARSAL_OPENS_IN", "3m", "rehearsals: the time from the preparation to the opening of the copy, between 10s and 15m; its reminders are an eighteenth of it apart", span(func(c *Config) *time.Duration { return &c.RehearsalOpensIn }, 10*time.Second, 15*time.Minute)},
		{"DRAW_LOCAL_BEACON", "off", "draws: on = a beacon of this installation, whose values DRAW_KEY determines, for development and tests; off = none", func(c *Config, v string) error {
			c.LocalBeacon = v == "on"
			if v != "on" && v != "off" {
				return errors.New("must be on or off")
			}
			return nil
		}},
		{"EVENTS_KEY", "", "webhooks: encrypts the secrets of endpoints in the database, at least 32 bytes; several separated by commas: the first encrypts, all are read; web and worker need the same; empty = they are stored as they are", eventsKey},
		{"EVENTS_INSECURE", "off", "webhooks: on = endpoints may have http:// and private addresses, for development; off = https:// and public addresses only", func(c *Config, v string) error {
			c.EventsInsecure = v == "on"
			if v != "on" && v != "off" {
				return errors.New("must be on or off")
			}
			return nil
		}},
		{"EVENTS_RETENTION_DAYS", "7", "webhooks: days that sent events, their deliveries and answers are kept and can be replayed, 1 to 90", func(c *Config, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > 90 {
				return errors.New("must be between 1 and 90")
			}
			c.RetainHooks = time.Duration(n) * 24 * time.Hour
			return nil
		}},
		{"RATE_LIMIT_PER_MINUTE", "600", "requests per user and minute, 0 = unlimited", number(func(c *Config) *int { return &c.RatePerUser }, 0, 10_000_000)},
		{"RATE_LIMIT_KEY_PER_MINUTE", "300000", "requests per service key and minute, 0 = unlimited", number(func(c *Config) *int { return &c.RatePerKey }, 0, 100_000_000)},
		{"REQUEST_TIMEOUT", "2s", "how long a request of an end user or the payment service waits for its answer before it gets 503, between 100ms and 15s", span(func(c *Config) *time.Duration { return &c.RequestTimeout }, 100*time.Millisecond, 15*time.Second)},
		{"SHUTDOWN_DELAY", "5s", "how long web goes on serving after SIGTERM while /readyz fails, so that load balancers send nothing more to it before its port closes, between 0s and 2m", span(func(c *Config) *time.Duration { return &c.ShutdownDelay }, 0, 2*time.Minute)},
		{"MAX_IN_FLIGHT", "0", "requests of end users and the payment service that one web process serves at a time, others get 503 at once; 0 = by the memory, 256 to 4096", number(func(c *Config) *int { return &c.MaxInFlight }, 0, 100_000)},
		{"DATABASE_MAX_CONNS", "16", "connections one process opens to PostgreSQL at most", number(func(c *Config) *int { return &c.DBConns }, 4, 1000)},
		{"RETENTION_DAYS", "90", "days after its opening that a drop's reservations and deliveries are kept, 0 = for ever", days(func(c *Config) *time.Duration { return &c.RetainFor })},
		{"COUPON_LOCK_TIMEOUT", "15m", "how long payment may hold a coupon before the lock ends by itself, between 1s and 24h", span(func(c *Config) *time.Duration { return &c.LockFor }, time.Second, 24*time.Hour)},
		{"GATE_SHARDS", "0", "claim gate: into how many parts the stock of a drop is divided when it is published, 0 = by its size and the number of Redis masters; web and worker need the same", number(func(c *Config) *int { return &c.GateShards }, 0, 64)},
		{"COUPON_RETENTION_DAYS", "400", "days that the coupons of a drop, who claimed them and its sell-out curve are kept after the last of them expired, 0 = for ever; totals stay", days(func(c *Config) *time.Duration { return &c.RetainCoupons })},
		{"OPERATION_RETENTION_DAYS", "", "days that the steps of coupons and the orders of shops are kept, 0 = for ever; empty = as AUDIT_RETENTION_DAYS, which is three years", optionalDays(func(c *Config) **time.Duration { return &c.KeepOperations })},
		{"AUDIT_RETENTION_DAYS", "1095", "days that the audit log is kept, 0 = for ever", days(func(c *Config) *time.Duration { return &c.RetainAudit })},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "", "OpenTelemetry collector that traces are sent to over HTTP, e.g. http://localhost:4318; empty = none", webAddress(func(c *Config) *string { return &c.TraceEndpoint }, "http://localhost:4318")},
		{"OTEL_TRACES_SAMPLER_ARG", "1", "share of requests that are traced, 0 to 1; timers and deliveries always are", func(c *Config, v string) error {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil || !(n >= 0 && n <= 1) {
				return errors.New("must be a number between 0 and 1")
			}
			c.TraceRatio = n
			return nil
		}},
	}, slices.Concat(feedbackVariables(), walletVariables(), pictureVariables(), exportVariables(), passVariables())...)
}

// Load reads every variable. The error names all mistakes: one line per mistake with the
// variable and the expected form, never with the value.
func Load(getenv func(string) string) (Config, error) {
	c, wrong := load(getenv, Variables())
	return c, errors.Join(append(wrong, c.together()...)...)
}

// LoadOnly reads only the named variables, for commands that need no others. The error has the
// form of [Load]'s error.
func LoadOnly(getenv func(string) string, names ...string) (Config, error) {
	c, wrong := load(getenv, slices.DeleteFunc(Variables(), func(v Variable) bool { return !slices.Contains(names, v.Name) }))
	return c, errors.Join(wrong...)
}

func load(getenv func(string) string, variables []Variable) (c Config, wrong []error) {
	for _, v := range variables {
		value := strings.TrimSpace(getenv(v.Name))
		if value == "" && v.Name == "DATABASE_URL" {
			value = homeURL(getenv("CELLS"))
		}
		if value == "" {
			value = v.Default
		}
		if err := v.read(&c, value); err != nil {
			wrong = append(wrong, fmt.Errorf("%s %w", v.Name, err))
		}
	}
	return c, wrong
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
