package jsonapi

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// A Source reads callbacks of a provider with the JSON interface. They are signed according to
// the Standard Webhooks specification:
//
//	{"receipts":[{"reference","status","to","cause","price","currency","at"}],
//	 "replies":[{"id","from","text"}]}
//
// The status of a receipt is delivered, failed (for good) or undelivered (this time).
type Source struct {
	// Token is the key of the signature, without decoding: the bearer token of calls to the
	// provider. An empty Token refuses every call.
	Token string
	// Refs reads references.
	Refs feedback.Refs
}

// providerName is the provider's in reports and in the address of its callbacks.
const providerName = "sms"

// Name returns "sms".
func (s Source) Name() string { return providerName }

type jsonReceipt struct {
	Reference string      `json:"reference"`
	Status    string      `json:"status"`
	To        string      `json:"to"`
	Cause     string      `json:"cause"`
	Price     json.Number `json:"price"`
	Currency  string      `json:"currency"`
	At        *time.Time  `json:"at"`
}

// Read checks the signature and reads one callback.
func (s Source) Read(header http.Header, _ *url.URL, body []byte) (c feedback.Call, err error) {
	if s.Token == "" {
		return c, feedback.ErrUnverified
	}
	verifier, err := standardwebhooks.NewWebhookRaw([]byte(s.Token))
	if err != nil || verifier.Verify(body, header) != nil {
		return c, feedback.ErrUnverified
	}
	var in struct {
		Receipts []jsonReceipt `json:"receipts"`
		Replies  []struct {
			ID   string `json:"id"`
			From string `json:"from"`
			Text string `json:"text"`
		} `json:"replies"`
	}
	if json.Unmarshal(body, &in) != nil {
		return c, feedback.ErrUnreadable
	}
	var odd bool
	for _, r := range in.Receipts {
		report, ok := s.report(r)
		if !ok {
			odd = true
			continue
		}
		c.Reports = append(c.Reports, report)
	}
	for _, r := range in.Replies {
		switch from := sms.NumberOf(r.From); {
		case r.ID == "":
			odd = true
		case from != "": // a short code or a name is the number of no user
			c.Replies = append(c.Replies, feedback.Reply{Provider: providerName, From: from, Text: r.Text, ID: r.ID})
		}
	}
	return sms.Readable(c, odd)
}

func (s Source) report(in jsonReceipt) (r feedback.Report, ok bool) {
	r = feedback.Report{Provider: providerName, Cause: delivery.DetailOf(in.Cause)}
	switch in.Status {
	case "delivered":
		r.Status = feedback.Delivered
	case "failed":
		r.Status = feedback.Bounced
	case "undelivered":
		r.Status = feedback.SoftBounced
	default:
		return r, false
	}
	r.Ref, _ = s.Refs.Parse(in.Reference) // the zero Ref: a message of another program
	r.Address = sms.NumberOf(in.To)
	if in.At != nil {
		r.At = *in.At
	}
	if r.PriceMicros, ok = micros(in.Price.String()); !ok {
		return r, false
	}
	if r.PriceMicros > 0 {
		r.Currency = in.Currency
	}
	return r, true
}

// micros reads a price in units of a currency as millionths; "" is none.
func micros(price string) (int64, bool) {
	if price == "" {
		return 0, true
	}
	v, err := strconv.ParseFloat(price, 64)
	if err != nil || v < 0 || v > 1e6 {
		return 0, false
	}
	return int64(math.Round(v * 1e6)), true
}
