package config

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"dropbell/domain/delivery"
)

// The providers of SMS.
const (
	SMSJSON    = "json"
	SMSTwilio  = "twilio"
	SMSAliyun  = "aliyun"
	SMSTencent = "tencent"
	SMSSNS     = "sns"
)

var smsProviders = []string{SMSJSON, SMSTwilio, SMSAliyun, SMSTencent, SMSSNS}

// SMS holds the provider of the channel sms and the limits of its costs.
type SMS struct {
	Provider string
	// URL is the address of the provider's interface; empty = the provider's usual address.
	URL string
	// Token is the bearer token of the JSON interface. Token is also the secret of callbacks
	// that are not signed with another key.
	Token string
	// KeyID and KeySecret are the account at a provider.
	KeyID, KeySecret string
	Region           string
	// From is the sender, App the application at Tencent Cloud or the entity at Amazon.
	From, App string
	Signature string
	// Templates are in the form that sms.ParseTemplates reads.
	Templates string
	// Countries are allowed, by ISO 3166 codes; none = all.
	Countries []string
	// VerifiedOnly sends to numbers alone that their users have proved.
	VerifiedOnly bool
	// BudgetPerDay is how many parts may be sent a day; 0 = any number.
	BudgetPerDay int
	// BudgetPerDrop is how many message parts may be sent about one drop; 0 = no limit.
	BudgetPerDrop int
	// Prices are the prices of a message part. MicrosPerDay is how much may be spent a day, in
	// millionths of a unit of the prices' currency; 0 = no limit.
	Prices       delivery.SMSPrices
	MicrosPerDay int64
}

// minCallbackKey is the length in bytes of a secret that stands in an address.
const minCallbackKey = 16

// keyed reports whether callbacks are proved by the secret in their address alone.
func (s SMS) keyed() bool { return s.Provider == SMSAliyun || s.Provider == SMSTencent }

// Configured reports whether the channel has a sender.
func (s SMS) Configured() bool { return s.URL != "" || s.Provider != SMSJSON && s.KeyID != "" }

func smsVariables() []Variable {
	field := func(f func(*SMS) *string) func(*Config) *string {
		return func(c *Config) *string { return f(&c.SMS) }
	}
	return []Variable{
		{"SMS_PROVIDER", SMSJSON, "channel sms: json (the JSON interface at SMS_URL), twilio, aliyun (Alibaba Cloud), tencent (Tencent Cloud) or sns (Amazon SNS)", func(c *Config, v string) error {
			c.SMS.Provider = v
			if !slices.Contains(smsProviders, v) {
				return errors.New("must be one of " + strings.Join(smsProviders, ", "))
			}
			return nil
		}},
		{"SMS_URL", "", "channel sms: the provider's address; empty = the usual one of SMS_PROVIDER", webAddress(field(func(s *SMS) *string { return &s.URL }), "https://sms.example.com/v1/messages")},
		{"SMS_TOKEN", "", "channel sms: bearer token of the JSON interface, which also signs its callbacks; with aliyun and tencent the secret in the address of their callbacks, 16 bytes or more, empty = no callbacks", oneLine(field(func(s *SMS) *string { return &s.Token }))},
		{"SMS_KEY_ID", "", "channel sms: Account SID (twilio), AccessKey ID (aliyun), SecretId (tencent) or access key ID (sns)", oneLine(field(func(s *SMS) *string { return &s.KeyID }))},
		{"SMS_KEY_SECRET", "", "channel sms: auth token (twilio), AccessKey secret (aliyun), SecretKey (tencent) or secret access key (sns)", oneLine(field(func(s *SMS) *string { return &s.KeySecret }))},
		{"SMS_REGION", "", "channel sms: region of sns, such as us-east-1, or of the application at tencent, empty = ap-guangzhou", oneLine(field(func(s *SMS) *string { return &s.Region }))},
		{"SMS_FROM", "", "channel sms: the sender: Messaging Service SID or number (twilio), sender ID or number (sns)", oneLine(field(func(s *SMS) *string { return &s.From }))},
		{"SMS_APP_ID", "", "channel sms: SmsSdkAppId (tencent), or the registered entity that India demands (sns)", oneLine(field(func(s *SMS) *string { return &s.App }))},
		{"SMS_SIGNATURE", "", "channel sms: the approved signature, SignName (aliyun, tencent)", oneLine(field(func(s *SMS) *string { return &s.Signature }))},
		{"SMS_TEMPLATES", "", `channel sms: the texts that are registered at the provider (aliyun, tencent, sns for India), JSON: {"reminder":{"zh-CN":{"id":"SMS_154950909","params":["drop","in","link"]}}}`, func(c *Config, v string) error {
			c.SMS.Templates = v
			if v != "" && !json.Valid([]byte(v)) {
				return errors.New("must be JSON")
			}
			return nil
		}},
		{"SMS_COUNTRIES", "", "channel sms: countries whose numbers are sent to, ISO 3166 codes separated by commas, such as CN,HK; empty = all", smsCountries},
		{"SMS_VERIFIED_ONLY", "false", "channel sms: true = only phone numbers that their users have proved by a code, or that the shop declares verified, are sent to; needs LINK_SECRET", func(c *Config, v string) error {
			c.SMS.VerifiedOnly = v == "true"
			if v != "true" && v != "false" {
				return errors.New("must be true or false")
			}
			return nil
		}},
		{"SMS_BUDGET_PER_DAY", "0", "channel sms: parts of text messages that all workers together send a day (UTC); what is beyond is skipped and staff are told; 0 = any number", number(func(c *Config) *int { return &c.SMS.BudgetPerDay }, 0, 1_000_000_000)},
		{"SMS_BUDGET_PER_DROP", "0", "channel sms: parts of text messages about one drop; what is beyond is skipped and staff are told; 0 = any number", number(func(c *Config) *int { return &c.SMS.BudgetPerDrop }, 0, 1_000_000_000)},
		{"SMS_PRICES", "", "channel sms: what a part costs, by the first digits of numbers, all in one currency, such as 86=0.045 CNY,852=0.3 CNY,*=0.5 CNY; * = all other numbers; empty = not known", func(c *Config, v string) (err error) {
			c.SMS.Prices, err = delivery.ParseSMSPrices(v)
			return err
		}},
		{"SMS_BUDGET_MONEY_PER_DAY", "0", "channel sms: what text messages may cost a day (UTC) by SMS_PRICES, in their currency, such as 250.00; what is beyond is skipped and staff are told; 0 = any amount", func(c *Config, v string) (err error) {
			micros, ok := delivery.ParseMicros(v)
			if c.SMS.MicrosPerDay = micros; !ok {
				err = errors.New("must be an amount such as 250.00")
			}
			return err
		}},
	}
}

func oneLine(field func(*Config) *string) reader {
	return func(c *Config, v string) error {
		*field(c) = v
		if strings.ContainsAny(v, "\r\n") {
			return errors.New("must be one line")
		}
		return nil
	}
}

var isoCountry = regexp.MustCompile(`^[A-Z]{2}$`)

func smsCountries(c *Config, v string) error {
	c.SMS.Countries = nil
	for code := range strings.SplitSeq(v, ",") {
		code = strings.ToUpper(strings.TrimSpace(code))
		if code == "" && v == "" {
			return nil
		}
		if !isoCountry.MatchString(code) {
			return errors.New("must be ISO 3166 codes of two letters separated by commas, such as CN,HK")
		}
		c.SMS.Countries = append(c.SMS.Countries, code)
	}
	return nil
}

// smsTogether reports settings that the provider needs and that are missing.
func (c Config) smsTogether(need func(bool, string)) {
	s := c.SMS
	need(!s.VerifiedOnly || c.LinkSecret != "", "LINK_SECRET is missing: with SMS_VERIFIED_ONLY it keys the codes that prove phone numbers")
	need(s.MicrosPerDay == 0 || !s.Prices.Empty(), "SMS_PRICES is missing for SMS_BUDGET_MONEY_PER_DAY")
	if s.Provider == SMSJSON || !slices.Contains(smsProviders, s.Provider) {
		need(s.URL == "" || s.Token != "", "SMS_TOKEN is missing for SMS_URL")
		return
	}
	need(!s.keyed() || s.Token == "" || len(s.Token) >= minCallbackKey, "SMS_TOKEN is the only proof of a callback with SMS_PROVIDER="+s.Provider+" and must have 16 bytes or more")
	for name, v := range map[string]string{"SMS_KEY_ID": s.KeyID, "SMS_KEY_SECRET": s.KeySecret} {
		need(v != "", name+" is missing for SMS_PROVIDER="+s.Provider)
	}
	demanded := map[string]map[string]string{
		SMSTwilio:  {"SMS_FROM": s.From},
		SMSAliyun:  {"SMS_SIGNATURE": s.Signature, "SMS_TEMPLATES": s.Templates},
		SMSTencent: {"SMS_APP_ID": s.App, "SMS_TEMPLATES": s.Templates},
		SMSSNS:     {"SMS_REGION": s.Region},
	}
	for name, v := range demanded[s.Provider] {
		need(v != "", name+" is missing for SMS_PROVIDER="+s.Provider)
	}
}
