// Package googlewallet makes links that save a coupon to Google Wallet, and tells Google when
// the coupon was used or has expired. It uses the offers of the Google Wallet API (REST
// resources offerclass and offerobject, "Issuing passes with the web").
package googlewallet

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	oauthjwt "golang.org/x/oauth2/jwt"

	"dropbell/adapters/sender"
	"dropbell/adapters/sender/google"
	"dropbell/domain/coupon"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/delivery"
)

const (
	// DefaultURL is Google's service.
	DefaultURL = "https://walletobjects.googleapis.com"
	// scope is the permission that the service account needs.
	scope = "https://www.googleapis.com/auth/wallet_object.issuer"
	// timeout bounds one call.
	timeout = 10 * time.Second
	// maxAnswer is how much of an answer is read.
	maxAnswer = 16 << 10
	// tokenPause follows a refusal to issue an access token.
	tokenPause = time.Minute
)

// Config is the identity at Google.
type Config struct {
	// Account is the JSON file of the service account, Issuer the issuer's number.
	Account []byte
	Issuer  string
	// URL is the service; "" = [DefaultURL].
	URL string
	// Now is the clock of tokens and Retry-After; nil = [time.Now].
	Now func() time.Time
}

// An Issuer makes links and calls Google. It is safe for concurrent use.
type Issuer struct {
	cfg    Config
	email  string
	key    *rsa.PrivateKey
	client *http.Client
	tokens *sender.Tokens
}

// New returns the issuer. An error names the mistake in cfg and never contains the key.
func New(cfg Config) (*Issuer, error) {
	var account struct {
		KeyID string `json:"private_key_id"`
		Key   string `json:"private_key"`
		Email string `json:"client_email"`
		Token string `json:"token_uri"`
	}
	if json.Unmarshal(cfg.Account, &account) != nil || account.Email == "" || account.Token == "" {
		return nil, errors.New("the service account of Google Wallet must be the JSON file as Google issued it")
	}
	block, _ := pem.Decode([]byte(account.Key))
	if block == nil {
		return nil, errors.New("the private_key of the service account must be PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("the private_key of the service account must be an RSA key")
	}
	if cfg.Issuer == "" {
		return nil, errors.New("Google Wallet needs the number of the issuer")
	}
	if cfg.URL == "" {
		cfg.URL = DefaultURL
	}
	cfg.URL = strings.TrimRight(cfg.URL, "/")
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	client := sender.Options{}.Client(timeout)
	identity := &oauthjwt.Config{Email: account.Email, PrivateKey: []byte(account.Key), PrivateKeyID: account.KeyID, Scopes: []string{scope}, TokenURL: account.Token}
	return &Issuer{cfg, account.Email, key, client, google.Tokens(identity, client, cfg.Now)}, nil
}

// Close ends idle connections.
func (i *Issuer) Close() error {
	i.client.CloseIdleConnections()
	return nil
}

// state returns Google's state for a coupon's state. A coupon that an order holds still belongs
// to its owner.
func state(s coupon.State) string {
	switch s {
	case coupon.Used:
		return "COMPLETED"
	case coupon.Expired:
		return "EXPIRED"
	case coupon.Revoked:
		return "INACTIVE"
	}
	return "ACTIVE"
}

// Tell changes the state of the saved pass; see [wallet.Teller]. If no wallet followed the pass's
// link, Google does not know the pass, and there is nothing to tell.
func (i *Issuer) Tell(ctx context.Context, couponID int64, s coupon.State) wallet.Answer {
	return sender.WithToken(
		func(refused string) (string, error) { return i.tokens.Get(ctx, refused) },
		func(access string) (wallet.Answer, bool) { return i.patch(ctx, couponID, s, access) },
		noToken)
}

func (i *Issuer) patch(ctx context.Context, couponID int64, s coupon.State, access string) (a wallet.Answer, refused bool) {
	address := i.cfg.URL + "/walletobjects/v1/offerObject/" + url.PathEscape(i.objectID(couponID))
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, address, strings.NewReader(`{"state":"`+state(s)+`"}`))
	if err != nil {
		return wallet.Answer{Verdict: wallet.Refused, Detail: "the address of Google Wallet is not usable"}, false
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+access)
	got, err := sender.Call(i.client, request, maxAnswer)
	if err != nil {
		return wallet.Answer{Detail: delivery.CauseOf(err)}, false
	}
	var body struct {
		Error struct {
			Status string `json:"status"`
		} `json:"error"`
	}
	_ = json.Unmarshal(got.Body, &body) // an unreadable body is an unknown status
	after := delivery.RetryAfter(got.Header.Get("Retry-After"), i.cfg.Now())
	return judge(got.Status, body.Error.Status, after), got.Status == http.StatusUnauthorized
}

// judge sorts answers. 403 means that a quota is used up, or that the account lacks rights,
// which staff correct at Google.
func judge(status int, code string, after time.Duration) wallet.Answer {
	a := wallet.Answer{After: after, Detail: delivery.DetailOf("Google Wallet answered " + strconv.Itoa(status) + " " + code)}
	switch {
	case status >= 200 && status < 300, status == http.StatusNotFound:
		return wallet.Answer{Verdict: wallet.Told}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		a.Detail += ": check GOOGLE_WALLET_ACCOUNT and GOOGLE_WALLET_ISSUER"
	case status == http.StatusTooManyRequests, status == http.StatusConflict, status >= 500:
	default:
		a.Verdict = wallet.Refused
	}
	return a
}

func noToken(err error) wallet.Answer {
	if code, ok := google.Refused(err); ok {
		return wallet.Answer{After: tokenPause, Detail: delivery.DetailOf("Google issued no access token (" + code + "): check GOOGLE_WALLET_ACCOUNT")}
	}
	return wallet.Answer{After: tokenPause, Detail: "Google issued no access token: " + delivery.CauseOf(err)}
}
