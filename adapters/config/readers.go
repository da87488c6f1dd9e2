package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/domain/staff"
)

// A reader sets a variable's field, or returns an error that says what the variable must be. The
// error never repeats the value. A field is set even if its value is wrong, so that the variable
// is not also reported as missing.
type reader func(c *Config, value string) error

func text(field func(*Config) *string) reader {
	return func(c *Config, v string) error { *field(c) = v; return nil }
}

// required refuses the empty value.
func required(expected string, read reader) reader {
	return func(c *Config, v string) error {
		if v == "" {
			return fmt.Errorf("is required: %s", expected)
		}
		return read(c, v)
	}
}

// someOf reads a list of known words, separated by commas; empty = all of them.
func someOf(field func(*Config) *[]string, known ...string) reader {
	return func(c *Config, v string) error {
		var list []string
		for word := range strings.SplitSeq(v, ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			if !slices.Contains(known, word) {
				return fmt.Errorf("must be some of %s, separated by commas", strings.Join(known, ", "))
			}
			list = append(list, word)
		}
		*field(c) = list
		return nil
	}
}

// channels are the names of the channels, as domain/delivery spells them.
var channels = []string{"app", "email", "sms", "webpush", "webhook"}

// perChannel reads a number from 1 to most for each named channel, such as email=8,sms=2.
// Channels that v does not name, and all channels if v is empty, have their number of usual.
func perChannel(field func(*Config) *map[string]int, usual map[string]int, most int) reader {
	return func(c *Config, v string) error {
		of := maps.Clone(usual)
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			name, number, _ := strings.Cut(part, "=")
			n, err := strconv.Atoi(strings.TrimSpace(number))
			if name = strings.TrimSpace(name); err != nil || n < 1 || n > most || !slices.Contains(channels, name) {
				return fmt.Errorf("must be numbers from 1 to %d for some of %s, such as email=8,sms=2", most, strings.Join(channels, ", "))
			}
			of[name] = n
		}
		*field(c) = of
		return nil
	}
}

// webAddress reads one HTTP address; empty = no address.
func webAddress(field func(*Config) *string, example string) reader {
	return func(c *Config, v string) error {
		*field(c) = v
		if v == "" {
			return nil
		}
		if u, err := url.Parse(v); err != nil || u.Hostname() == "" || strings.Contains(u.Host, ",") ||
			u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("must be an address that begins with https:// or http://, such as %s", example)
		}
		return nil
	}
}

// bareAddress is a webAddress to which paths can be appended.
func bareAddress(field func(*Config) *string, example string) reader {
	read := webAddress(field, example)
	return func(c *Config, v string) error {
		if err := read(c, v); err != nil {
			return err
		}
		if u, err := url.Parse(v); err == nil && u.User != nil || strings.ContainsAny(v, "?#") {
			return fmt.Errorf("must be scheme, host and at most a path, such as %s, without user name, query (?…) and fragment (#…)", example)
		}
		return nil
	}
}

// guarded is for addresses whose answers decide about access: the address must be https unless
// it is on this machine.
func guarded(read func(func(*Config) *string, string) reader, field func(*Config) *string, example string) reader {
	then := read(field, example)
	return func(c *Config, v string) error {
		if err := then(c, v); err != nil || v == "" {
			return err
		}
		if u, err := url.Parse(v); err == nil && u.Scheme != "https" && !loopback(u.Hostname()) {
			return fmt.Errorf("must begin with https://, such as %s; http:// is for this machine alone (localhost, 127.0.0.1, [::1])", example)
		}
		return nil
	}
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// demoAtHome returns false if the demo's password is set and other machines can reach the
// address.
func (c Config) demoAtHome() bool {
	host, _, err := net.SplitHostPort(c.HTTPAddr)
	return c.AdminPassword != staff.DemoPassword || err == nil && loopback(host)
}

// orNone also takes the empty value.
func orNone(read reader) reader {
	return func(c *Config, v string) error {
		if v == "" {
			return nil
		}
		return read(c, v)
	}
}

// securityContact reads a contact of RFC 9116.
func securityContact(c *Config, v string) error {
	c.SecurityContact = v
	if v == "" {
		return nil
	}
	address, isMail := strings.CutPrefix(v, "mailto:")
	if u, err := url.Parse(v); err == nil && !strings.ContainsAny(v, " \t\r\n") &&
		(isMail && strings.Contains(address, "@") || u.Scheme == "https" && u.Host != "") {
		return nil
	}
	return errors.New("must be mailto:security@example.com, or an https:// address")
}

// origins reads origins as browsers send them, separated by commas.
func origins(c *Config, v string) error {
	for one := range strings.SplitSeq(v, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		u, err := url.Parse(one)
		if err != nil || u.Hostname() == "" || u.Scheme+"://"+u.Host != one || one != strings.ToLower(one) || strings.ContainsAny(u.Host, "*\"' ") ||
			u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
			return errors.New("must be origins such as https://shop.example.com, in lower case, without a path, separated by commas; http:// is for this machine alone (localhost, 127.0.0.1, [::1])")
		}
		c.ShopOrigins = append(c.ShopOrigins, one)
	}
	return nil
}

// listenAddress reads the address at which a program listens: host:port. Without a host the
// program listens on all addresses of the machine.
func listenAddress(field func(*Config) *string) reader {
	return func(c *Config, v string) error {
		*field(c) = v
		_, port, err := net.SplitHostPort(v)
		if _, unknown := net.LookupPort("tcp", port); err != nil || unknown != nil || port == "" {
			return errors.New("must be host:port, such as 127.0.0.1:8080, or 0.0.0.0:8080 for every network of the machine")
		}
		return nil
	}
}

const databaseForm = "postgres://user:password@host:port/database"

// database reads an address of PostgreSQL as its driver does.
func database(field func(*Config) *string) reader {
	return func(c *Config, v string) error {
		*field(c) = v
		if !strings.HasPrefix(v, "postgres://") && !strings.HasPrefix(v, "postgresql://") {
			return errors.New("must begin with postgres://, as in " + databaseForm)
		}
		_, rest, _ := strings.Cut(v, "://")
		if _, err := pgxpool.ParseConfig(v); err != nil || rest == "" {
			return errors.New("must have the form " + databaseForm + ", special characters percent-encoded, parameters that PostgreSQL knows, and files that can be read")
		}
		return nil
	}
}

// poolMode reads a mode of PgBouncer's pools. PgBouncer's third mode, statement, is refused: it
// has no transactions.
func poolMode(c *Config, v string) error {
	c.PoolMode = v
	if v != "session" && v != "transaction" {
		return errors.New("must be session or transaction")
	}
	return nil
}

const redisForm = "redis://user:password@host:port/0"

// redis reads the address of Redis, or the addresses of a Redis Cluster, as the client does.
func redis(c *Config, v string) error {
	c.RedisURL = v
	list := strings.Split(v, ",")
	for i, one := range list {
		one = strings.TrimSpace(one)
		if i > 0 && hostAndPort(one) {
			continue // user, password and TLS are taken from the first address
		}
		if !strings.HasPrefix(one, "redis://") && !strings.HasPrefix(one, "rediss://") {
			return errors.New("must begin with redis:// or rediss://; further addresses of a cluster may be host:port")
		}
		u, err := url.Parse(one)
		if err == nil && len(list) == 1 {
			_, err = goredis.ParseURL(one)
		} else if err == nil && i == 0 { // of later addresses only host and port are used
			_, err = goredis.ParseClusterURL(one)
		}
		if err != nil || u.Host == "" {
			return errors.New("must have the form " + redisForm + ", special characters percent-encoded")
		}
	}
	return nil
}

func hostAndPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	_, unknown := net.LookupPort("tcp", port)
	return err == nil && unknown == nil && host != "" && port != ""
}

func number(field func(*Config) *int, least, most int) reader {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("must be a whole number between %d and %d", least, most)
		}
		*field(c) = n
		return nil
	}
}

func days(field func(*Config) *time.Duration) reader {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 36500 {
			return errors.New("must be a number of days up to 36500, 0 = keep for ever")
		}
		*field(c) = time.Duration(n) * 24 * time.Hour
		return nil
	}
}

// optionalDays is [days] for a variable that may be empty.
func optionalDays(field func(*Config) **time.Duration) reader {
	return func(c *Config, v string) error {
		if v == "" {
			return nil
		}
		var d time.Duration
		*field(c) = &d
		return days(func(*Config) *time.Duration { return &d })(c, v)
	}
}

// RetainOperations returns how long steps of coupons and orders are kept, zero = for ever.
func (c Config) RetainOperations() time.Duration {
	if c.KeepOperations != nil {
		return *c.KeepOperations
	}
	return c.RetainAudit
}

func span(field func(*Config) *time.Duration, least, most time.Duration) reader {
	return func(c *Config, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < least || d > most {
			return fmt.Errorf("must be a duration between %s and %s, such as 15m", least, most)
		}
		*field(c) = d
		return nil
	}
}

// orZero also takes 0, for no bound at all.
func orZero(read reader) reader {
	return func(c *Config, v string) error {
		if v == "0" {
			return nil
		}
		if err := read(c, v); err != nil {
			return fmt.Errorf("%w, or 0", err)
		}
		return nil
	}
}

// longEnough reads a secret that has so many bytes, or none.
func longEnough(field func(*Config) *string, bytes int) reader {
	return func(c *Config, v string) error {
		*field(c) = v
		if v != "" && len(v) < bytes {
			return fmt.Errorf("must have at least %d bytes", bytes)
		}
		return nil
	}
}

func logLevel(c *Config, v string) error {
	c.LogLevel = v
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, v) {
		return errors.New("must be debug, info, warn or error")
	}
	return nil
}

func proxies(c *Config, v string) error {
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
}

// networkOf reads a network; a single address is a network of its own.
func networkOf(s string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(s); err == nil {
		return ip.Prefix(ip.BitLen())
	}
	return netip.ParsePrefix(s)
}

// secondFactorKeys reads the keys that are separated by commas.
func secondFactorKeys(c *Config, v string) error { return sealingKeys(&c.SecondFactorKeys, v) }

func providersKey(c *Config, v string) error { return sealingKeys(&c.ProvidersKeys, v) }
func eventsKey(c *Config, v string) error    { return sealingKeys(&c.EventsKeys, v) }

// sealingKeys reads keys separated by commas.
func sealingKeys(keys *[]string, v string) error {
	for one := range strings.SplitSeq(v, ",") {
		if one = strings.TrimSpace(one); one != "" {
			*keys = append(*keys, one)
		}
		if one != "" && len(one) < 32 {
			return errors.New("must have at least 32 bytes, each of several as well")
		}
	}
	return nil
}
