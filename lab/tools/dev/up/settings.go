package main

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	webpush "github.com/SherClockHolmes/webpush-go"

	"dropbell/domain/staff"
	"dropbell/lab/tools/dev/demo"
	"dropbell/lab/tools/dev/demo/past"
)

// The credentials of the demo.
const (
	demoEmail    = "demo@dropbell.test"
	demoPassword = staff.DemoPassword
)

// settings are the environment of web and worker. Variables of the caller's own environment take
// precedence.
type settings struct {
	given   func(string) string
	chosen  map[string]string
	catcher string // base URL
	past    bool   // the demo data has a history
	shop    string // host:port of the demo shop; "" = there is none
}

func newSettings(given func(string) string) *settings {
	return &settings{given: given, chosen: map[string]string{}}
}

func (s *settings) get(name string) string {
	if v := s.given(name); v != "" {
		return v
	}
	return s.chosen[name]
}

func (s *settings) set(name, value string) { s.chosen[name] = value }

func (s *settings) setDefault(name, value string) {
	if s.get(name) == "" {
		s.chosen[name] = value
	}
}

// setDefaults sets variables that belong together, if the first of them is not set.
func (s *settings) setDefaults(names []string, values map[string]string) {
	if s.get(names[0]) != "" {
		return
	}
	for _, name := range names {
		s.set(name, values[name])
	}
}

// environment is this program's own environment plus the chosen variables. A variable that the
// caller has set is not chosen, except SHOP_ORIGINS, to which openTo adds.
func (s *settings) environment() []string {
	env := os.Environ()
	for name, value := range s.chosen {
		env = append(env, name+"="+value)
	}
	return env
}

// loadSecrets reads the secrets in the file, makes the missing secrets and writes the file back,
// so that tokens and keys of one start are valid at the next.
func (s *settings) loadSecrets(path string) error {
	kept, err := readEnv(path)
	if err != nil {
		return err
	}
	made := false
	for _, secret := range secrets {
		if kept[secret.names[0]] != "" {
			continue
		}
		values, err := secret.make()
		if err != nil {
			return fmt.Errorf("make %s: %w", secret.names[0], err)
		}
		for i, name := range secret.names {
			kept[name] = values[i]
		}
		made = true
	}
	if made {
		if err := writeEnv(path, kept); err != nil {
			return err
		}
	}
	for name, value := range kept {
		if name == "AUTH_JWT_SECRET" && s.get("AUTH_JWKS_URL") != "" {
			continue // another issuer is configured
		}
		s.setDefault(name, value)
	}
	s.setDefault("ADMIN_EMAIL", demoEmail)
	s.setDefault("ADMIN_PASSWORD", demoPassword)
	s.setDefault("CONSOLE_SECOND_FACTOR", "optional") // the demo's password is public anyway
	s.setDefault("VAPID_SUBJECT", "mailto:"+demoEmail)
	s.setDefault("SHUTDOWN_DELAY", "0s")     // there is no load balancer
	s.setDefault("DRAW_LOCAL_BEACON", "on")  // a draw can be tried without a network
	s.setDefault("REHEARSAL_QUIET", "0")     // the drop that opens in minutes can be rehearsed
	s.setDefault("EVENTS_INSECURE", "on")    // endpoints on this machine
	s.setDefault("PROVIDERS_PRIVATE", "yes") // providers on it
	s.setDefault("SECURITY_CONTACT", "mailto:"+demoEmail)
	s.setDefault("SMS_PRICES", past.SMSPrices)
	return nil
}

// secret is made once per checkout; its names belong together.
type secret struct {
	names []string
	make  func() ([]string, error)
}

var secrets = []secret{
	{[]string{"ADMIN_API_KEY"}, func() ([]string, error) { return []string{"dbk_" + strings.ToLower(rand.Text()+rand.Text()[:6])}, nil }},
	{[]string{"AUTH_JWT_SECRET"}, func() ([]string, error) { return []string{rand.Text() + rand.Text()}, nil }},
	{[]string{"PASS_SECRET"}, func() ([]string, error) { return []string{rand.Text() + rand.Text()}, nil }},
	{[]string{"LINK_SECRET"}, func() ([]string, error) { return []string{rand.Text() + rand.Text()}, nil }},
	{[]string{"SMS_TOKEN"}, func() ([]string, error) { return []string{rand.Text()}, nil }},
	{[]string{"WEBHOOK_SECRET"}, webhookSecret},
	{[]string{"CODE_KEYS"}, codeKeys},
	{[]string{"EVENTS_KEY"}, func() ([]string, error) { return []string{rand.Text() + rand.Text()}, nil }},
	{[]string{"DRAW_KEY"}, func() ([]string, error) { return []string{rand.Text() + rand.Text()}, nil }},
	{[]string{"PROVIDERS_KEY"}, func() ([]string, error) { return []string{rand.Text() + rand.Text()}, nil }},
	{[]string{"VAPID_PRIVATE_KEY", "VAPID_PUBLIC_KEY"}, vapidKeys},
}

func webhookSecret() ([]string, error) {
	var key [32]byte
	_, err := rand.Read(key[:])
	return []string{"whsec_" + base64.StdEncoding.EncodeToString(key[:])}, err
}

// codeKeys makes the first key of redeem codes.
func codeKeys() ([]string, error) {
	var key [32]byte
	_, err := rand.Read(key[:])
	return []string{"1:" + base64.StdEncoding.EncodeToString(key[:])}, err
}

func vapidKeys() ([]string, error) {
	private, public, err := webpush.GenerateVAPIDKeys()
	return []string{private, public}, err
}

// readEnv reads NAME=value lines; a file that is not there is empty.
func readEnv(path string) (map[string]string, error) {
	values := map[string]string{}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return values, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok {
			values[name] = value
		}
	}
	return values, lines.Err()
}

// writeEnv replaces the file as a whole, for its owner's eyes only.
func writeEnv(path string, values map[string]string) error {
	var lines []string
	for name, value := range values {
		lines = append(lines, name+"="+value+"\n")
	}
	slices.Sort(lines)
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(strings.Join(lines, "")), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// record stores the addresses and keys with which the other commands reach the running programs.
func (s *settings) record() error {
	state := map[string]string{"URL": s.url(), "PID": fmt.Sprint(os.Getpid())}
	for _, name := range []string{"DATABASE_URL", "ADMIN_API_KEY", "AUTH_JWT_SECRET", "AUTH_JWT_ISSUER", "AUTH_JWT_AUDIENCE"} {
		state[name] = s.get(name)
	}
	return writeEnv(stateFile(), state)
}

// issuer issues tokens that web accepts, unless another issuer is configured.
func (s *settings) issuer() demo.Issuer {
	return demo.Issuer{Secret: s.get("AUTH_JWT_SECRET"), Name: s.get("AUTH_JWT_ISSUER"), Audience: s.get("AUTH_JWT_AUDIENCE")}
}

func stateFile() string { return filepath.Join(local, "up.env") }

// url is where this machine reaches web, whatever name the public has for it.
func (s *settings) url() string { return "http://" + dialable(s.get("HTTP_ADDR")) }

// dialable turns a listening address into an address to connect to.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
