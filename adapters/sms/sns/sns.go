// Package sns sends text messages by Amazon Simple Notification Service (the action
// Publish of 2010-03-31, signature version 4). SNS reports deliveries to CloudWatch
// alone, so there are no receipts.
package sns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"dropbell/adapters/sender"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
)

// Config is the account at Amazon.
type Config struct {
	// Region is the region of the service, such as us-east-1; required. URL is another address
	// of the service; empty = the region's address.
	Region, URL string
	// KeyID and KeySecret are the access key of a user that may sns:Publish. Required.
	KeyID, KeySecret string
	// From is the sender ID, or a number of the account that begins with "+"; empty = the
	// account's setting.
	From string
	// Entity is the registered principal. India requires it together with Templates. It may be
	// empty.
	Entity    string
	Templates sms.Templates
	sender.Options
}

// account is the part of the sender that is Amazon's.
type account struct {
	cfg    Config
	url    string
	keys   aws.Credentials
	signer *v4.Signer
}

var region = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-\d$`)

// New returns a sender. An error names the mistake in cfg and never contains the key.
// New does not connect.
func New(cfg Config) (*sms.Sender, error) {
	if !region.MatchString(cfg.Region) {
		return nil, errors.New("the region of Amazon SNS is missing, such as us-east-1")
	}
	base, err := sms.Endpoint(cfg.URL, "https://sns."+cfg.Region+".amazonaws.com")
	if err != nil {
		return nil, err
	}
	if cfg.KeyID == "" || cfg.KeySecret == "" || strings.ContainsAny(cfg.KeyID, ",=/ \r\n") {
		return nil, errors.New("the access key of Amazon is missing or not usable")
	}
	keys := aws.Credentials{AccessKeyID: cfg.KeyID, SecretAccessKey: cfg.KeySecret}
	return sms.NewSender(account{cfg, base.String() + "/", keys, v4.NewSigner()}, cfg.Options), nil
}

func (a account) Name() string { return "Amazon SNS" }

func (a account) Answered() string { return "Amazon SNS answered " }

func (a account) Secrets() []string { return []string{a.cfg.KeySecret, a.cfg.KeyID} }

func (a account) Request(ctx context.Context, to string, m delivery.Message) (*http.Request, error) {
	form := url.Values{"Action": {"Publish"}, "Version": {"2010-03-31"}, "PhoneNumber": {to}, "Message": {sms.Shorten(m.Content.Text)}}
	a.attributes(form, m)
	body := form.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	hash := sha256.Sum256([]byte(body))
	if a.signer.SignHTTP(ctx, a.keys, r, hex.EncodeToString(hash[:]), "sns", a.cfg.Region, a.cfg.Time()) != nil {
		return nil, &sms.Refusal{Unsent: true, Detail: "the call to Amazon SNS could not be signed"}
	}
	return r, nil
}

// attributes adds the attributes of the message. Reminders are transactional messages, which
// networks deliver first.
func (a account) attributes(form url.Values, m delivery.Message) {
	kind := "Transactional"
	if m.Subject.Kind == delivery.KindCampaign {
		kind = "Promotional"
	}
	list := [][2]string{{"AWS.SNS.SMS.SMSType", kind}}
	switch {
	case strings.HasPrefix(a.cfg.From, "+"):
		list = append(list, [2]string{"AWS.MM.SMS.OriginationNumber", a.cfg.From})
	case a.cfg.From != "":
		list = append(list, [2]string{"AWS.SNS.SMS.SenderID", a.cfg.From})
	}
	if text, found := a.cfg.Templates.For(m); found && a.cfg.Entity != "" {
		list = append(list, [2]string{"AWS.MM.SMS.EntityId", a.cfg.Entity}, [2]string{"AWS.MM.SMS.TemplateId", text.ID})
	}
	for i, attribute := range list {
		entry := "MessageAttributes.entry." + strconv.Itoa(i+1)
		form.Set(entry+".Name", attribute[0])
		form.Set(entry+".Value.DataType", "String")
		form.Set(entry+".Value.StringValue", attribute[1])
	}
}

func (a account) Read(answer sender.Answer, usual delivery.Result) sms.Said {
	var body struct {
		ID      string `xml:"PublishResult>MessageId"`
		Code    string `xml:"Error>Code"`
		Message string `xml:"Error>Message"`
	}
	if xml.Unmarshal(answer.Body, &body) != nil || usual.Status == delivery.Delivered {
		return sms.Said{Accepted: body.ID != ""}
	}
	return sms.Said{Code: body.Code, Words: body.Message, Result: delivery.Result{Status: classOf(body.Code), After: usual.After, Unsent: usual.Unsent}}
}

// classOf sorts the service's codes. Codes about the account or its key are transient, so they
// end no delivery.
func classOf(code string) delivery.Status {
	switch {
	case slices.Contains([]string{"InvalidParameter", "InvalidParameterValue", "ParameterValueInvalid", "ValidationException", "OptedOut"}, code):
		return delivery.Permanent
	case strings.HasPrefix(code, "Throttl"), code == "RequestThrottled", code == "TooManyRequestsException":
		return delivery.Throttled
	}
	return delivery.Transient
}
