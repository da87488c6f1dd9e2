package config

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"regexp"
	"strings"
)

var (
	tenCharacters = regexp.MustCompile(`^[A-Z0-9]{10}$`)
	bundleID      = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$`)
)

// fileOf returns the file that a variable holds, as it is or in base64.
func fileOf(v, beginning string) string {
	if strings.HasPrefix(v, beginning) {
		return v
	}
	raw, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

func apnsKey(c *Config, v string) error {
	if v == "" {
		return nil
	}
	c.APNSKey = fileOf(v, "-----BEGIN")
	block, _ := pem.Decode([]byte(c.APNSKey))
	if block != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if key, ok := parsed.(*ecdsa.PrivateKey); err == nil && ok && key.Curve.Params().BitSize == 256 {
			return nil
		}
	}
	return errors.New("must be the .p8 file as Apple issued it, with its lines -----BEGIN PRIVATE KEY-----, or the same in base64 (base64 -w0 AuthKey.p8)")
}

func appleID(field func(*Config) *string) reader {
	return func(c *Config, v string) error {
		*field(c) = v
		if v != "" && !tenCharacters.MatchString(v) {
			return errors.New("must be ten capital letters and digits, as Apple's developer account shows it")
		}
		return nil
	}
}

func apnsTopic(c *Config, v string) error {
	c.APNSTopic = v
	if v != "" && !bundleID.MatchString(v) {
		return errors.New("must be the bundle id of the app, such as com.example.shop")
	}
	return nil
}

// pushAddress is the base address of a push service. It must be https, since device tokens and
// the identity are sent to it, or http on this machine.
func pushAddress(field func(*Config) *string, example string) reader {
	return guarded(bareAddress, field, example)
}

func fcmAccount(c *Config, v string) error {
	if v == "" {
		return nil
	}
	var err error
	c.FCMAccount, err = accountFile(v)
	return err
}

// accountFile returns the file of a service account that a variable holds.
func accountFile(v string) (string, error) {
	file := fileOf(v, "{")
	var account struct {
		Project string `json:"project_id"`
		Key     string `json:"private_key"`
		Email   string `json:"client_email"`
		Token   string `json:"token_uri"`
	}
	err := json.Unmarshal([]byte(file), &account)
	if block, _ := pem.Decode([]byte(account.Key)); err != nil || block == nil || account.Project == "" || account.Email == "" || account.Token == "" {
		return file, errors.New("must be the JSON file of a service account as Google issued it, with project_id, private_key, client_email and token_uri, or the same in base64 (base64 -w0 account.json)")
	}
	return file, nil
}

// FCMProject is the id of the environment's Firebase project; empty = none.
func (c Config) FCMProject() string {
	var account struct {
		Project string `json:"project_id"`
	}
	_ = json.Unmarshal([]byte(c.FCMAccount), &account) // it was read before
	return account.Project
}

// AndroidPerSecond is how many messages a second the push service of Android phones accepts; 0 =
// no such service is configured.
func (c Config) AndroidPerSecond() float64 {
	if c.FCMAccount == "" {
		return 0
	}
	return float64(c.FCMPerMinute) / 60
}
