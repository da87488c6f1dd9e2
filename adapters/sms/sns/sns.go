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
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
)

// Config is the account at Amazon.
type Config struct {
	// Region is such as us-east-1; required. URL is another address of the service;
	// empty = that of the region.
	Region, URL string
	// KeyID and KeySecret are the access key of a user that may sns:Publish. Required.
	KeyID, KeySecret string
	// From is the sender ID, or a number of the account that begins with "+"; empty =
	// as the account says.
	From string
	// Entity is the registered principal, which India demands together with Templates;
	// may be empty.
	Entity    string
	Templates sms.Templates
	// Timeout bounds one call; 0 = 15 s.
	Timeout time.Duration
	// Control judges every address before it is connected to; nil = all are connected to.
	Control sms.Control
	// Now is the clock of signatures; nil = [time.Now].
	Now func() time.Time
}

// A Sender sends by SNS. It is safe for concurrent use.
type Sender struct {
	cfg    Config
	url    string
	keys   aws.Credentials
	signer *v4.Signer
	client *http.Client
}

var region = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-\d$`)

// New returns a sender, or an error that says what is wrong with cfg, without the key.
// It does not connect.
func New(cfg Config) (*Sender, error) {
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
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Sender{cfg, base.String() + "/", aws.Credentials{AccessKeyID: cfg.KeyID, SecretAccessKey: cfg.KeySecret}, v4.NewSigner(), sms.NewClient(cfg.Timeout, cfg.Control)}, nil
}

// Channel returns [delivery.SMS].
func (s *Sender) Channel() delivery.Channel { return delivery.SMS }

// ChunkSize is small because every message is a call of its own.
func (s *Sender) ChunkSize() int { return sms.EachAtOnce }

// Close ends idle connections.
func (s *Sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Send sends every message in a call of its own; see [sms.Each].
func (s *Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	return sms.Each(ctx, messages, s.one)
}

func (s *Sender) one(ctx context.Context, m delivery.Message) delivery.Result {
	to, err := sms.Number(m.To.Phone)
	if err != nil {
		return delivery.Result{Status: delivery.Permanent, Detail: err.Error()}
	}
	form := url.Values{"Action": {"Publish"}, "Version": {"2010-03-31"}, "PhoneNumber": {to}, "Message": {sms.Shorten(m.Content.Text)}}
	s.attributes(form, m)
	body := form.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return delivery.Result{Unsent: true, Detail: "the address of Amazon SNS is not usable"}
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	hash := sha256.Sum256([]byte(body))
	if err := s.signer.SignHTTP(ctx, s.keys, r, hex.EncodeToString(hash[:]), "sns", s.cfg.Region, s.cfg.Now()); err != nil {
		return delivery.Result{Unsent: true, Detail: "the call to Amazon SNS could not be signed"}
	}
	answer, failed := sms.Call(s.client, r)
	if failed != nil {
		return *failed
	}
	return s.result(answer)
}

// attributes adds what goes with the text: reminders are transactional, which networks
// deliver first.
func (s *Sender) attributes(form url.Values, m delivery.Message) {
	kind := "Transactional"
	if m.Subject.Kind == delivery.KindCampaign {
		kind = "Promotional"
	}
	list := [][2]string{{"AWS.SNS.SMS.SMSType", kind}}
	switch {
	case strings.HasPrefix(s.cfg.From, "+"):
		list = append(list, [2]string{"AWS.MM.SMS.OriginationNumber", s.cfg.From})
	case s.cfg.From != "":
		list = append(list, [2]string{"AWS.SNS.SMS.SenderID", s.cfg.From})
	}
	if text, found := s.cfg.Templates.For(m); found && s.cfg.Entity != "" {
		list = append(list, [2]string{"AWS.MM.SMS.EntityId", s.cfg.Entity}, [2]string{"AWS.MM.SMS.TemplateId", text.ID})
	}
	for i, a := range list {
		entry := "MessageAttributes.entry." + strconv.Itoa(i+1)
		form.Set(entry+".Name", a[0])
		form.Set(entry+".Value.DataType", "String")
		form.Set(entry+".Value.StringValue", a[1])
	}
}

func (s *Sender) result(a sms.Answer) delivery.Result {
	whole := delivery.HTTPResult(a.Status, a.RetryAfter, s.cfg.Now())
	whole.Whole = false
	if whole.Status == delivery.Delivered {
		var body struct {
			ID string `xml:"PublishResult>MessageId"`
		}
		if xml.Unmarshal(a.Body, &body) != nil || body.ID == "" {
			return sms.NotAgreed()
		}
		return whole
	}
	var body struct {
		Code    string `xml:"Error>Code"`
		Message string `xml:"Error>Message"`
	}
	if xml.Unmarshal(a.Body, &body) != nil || body.Code == "" {
		return whole
	}
	return delivery.Result{Status: classOf(body.Code), After: whole.After, Unsent: whole.Unsent,
		Detail: delivery.DetailOf(sms.Without("Amazon SNS answered "+body.Code+": "+body.Message, s.cfg.KeySecret, s.cfg.KeyID))}
}

// classOf sorts the service's codes. Those about the account or its key are transient:
// they end no delivery.
func classOf(code string) delivery.Status {
	switch {
	case slices.Contains([]string{"InvalidParameter", "InvalidParameterValue", "ParameterValueInvalid", "ValidationException", "OptedOut"}, code):
		return delivery.Permanent
	case strings.HasPrefix(code, "Throttl"), code == "RequestThrottled", code == "TooManyRequestsException":
		return delivery.Throttled
	}
	return delivery.Transient
}
