package chaos_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"dropbell/adapters/sms/smstest"
	"dropbell/domain/delivery/feedback"
)

const (
	// callbackKey is in the address of callbacks that are not signed.
	callbackKey = "chaos-callback-key"
	// americanPrefix and chinesePrefix begin the numbers of users, which end with their ids.
	americanPrefix, chinesePrefix = "+1415", "+861380"
	// smsTemplates are templates in the users' two languages. Messages with the same template
	// are equal.
	smsTemplates = `{"reminder":{"en":{"id":"SMS_1","params":["drop"]},"zh-CN":{"id":"SMS_2","params":["drop"]}}}`
)

// smsReporters are the providers of SMS that can be configured, by their names in SMS_PROVIDER.
var smsReporters = map[string]func(*testing.T) *smsReporter{
	"twilio": reportingTwilio, "aliyun": reportingAliyun, "tencent": reportingTencent, "json": reportingJSON, "sns": unreportedSNS,
}

// provided is a provider with the variables of an account of an imitation.
func provided(provider, keyID, secret string, more ...string) reporter {
	return reporter{env: append([]string{"SMS_PROVIDER=" + provider, "SMS_KEY_ID=" + keyID, "SMS_KEY_SECRET=" + secret}, more...), foreignKey: "0123456789abcdef"}
}

// reportingTwilio reports at the address that each message gives, and signs.
func reportingTwilio(t *testing.T) *smsReporter {
	p := smstest.NewTwilio()
	t.Cleanup(p.Close)
	s := &smsReporter{reporter: provided("twilio", smstest.TwilioAccount, smstest.TwilioToken, "SMS_FROM=+15005550006"), Handler: p, prefix: americanPrefix}
	s.foreignKey = publicURL + "/callbacks/twilio?ref=0123456789abcdef"
	s.taken = func(_ *http.Request, body, _ []byte) []*arrival {
		form, _ := url.ParseQuery(string(body))
		return []*arrival{{user: s.user(form.Get("To")), key: form.Get("StatusCallback")}}
	}
	s.report = func(a arrival, is feedback.Status, forged bool) *http.Request {
		status, code := "delivered", ""
		switch is {
		case feedback.Bounced:
			status, code = "failed", "30005"
		case feedback.SoftBounced:
			status, code = "undelivered", "30003"
		}
		q := p.Receipt(smstest.Sent{To: s.number(a.user), ID: "SM1", Callback: a.key}, status, code)
		if forged {
			q.Header.Set("X-Twilio-Signature", "Zm9yZ2Vk")
		}
		return q
	}
	return s
}

// keyed is the address of callbacks that are proved by a secret in it.
func keyed(provider string, forged bool) string {
	if forged {
		return publicURL + "/callbacks/" + provider + "?key=a-guess-of-the-secret"
	}
	return publicURL + "/callbacks/" + provider + "?key=" + callbackKey
}

// chineseCode is the code of a status in reports of networks in China.
func chineseCode(s feedback.Status) string {
	return map[feedback.Status]string{feedback.Delivered: "DELIVRD", feedback.Bounced: "MK:0012", feedback.SoftBounced: "UNDELIV"}[s]
}

// reportingAliyun takes one message a call; its reports have the OutId of the message.
func reportingAliyun(t *testing.T) *smsReporter {
	p := smstest.NewAliyun()
	t.Cleanup(p.Close)
	s := &smsReporter{reporter: provided("aliyun", smstest.KeyID, smstest.KeySecret, "SMS_SIGNATURE=Shop", "SMS_TEMPLATES="+smsTemplates, "SMS_TOKEN="+callbackKey), Handler: p, prefix: chinesePrefix}
	s.taken = func(q *http.Request, _, answer []byte) []*arrival {
		var is struct{ Code string }
		if json.Unmarshal(answer, &is) != nil || is.Code != "OK" {
			return nil
		}
		return []*arrival{{user: s.user("+86" + q.URL.Query().Get("PhoneNumbers")), key: q.URL.Query().Get("OutId")}}
	}
	s.report = func(a arrival, is feedback.Status, forged bool) *http.Request {
		sent := smstest.Sent{To: strings.TrimPrefix(s.number(a.user), "+86"), ID: "98001239^1", Reference: a.key}
		return smstest.Posted(keyed("aliyun", forged), []any{p.Receipt(sent, is == feedback.Delivered, chineseCode(is))})
	}
	return s
}

// reportingTencent takes equal messages in one call. Its reports have the serial from its
// answer.
func reportingTencent(t *testing.T) *smsReporter {
	p := smstest.NewTencent()
	t.Cleanup(p.Close)
	s := &smsReporter{reporter: provided("tencent", smstest.KeyID, smstest.KeySecret, "SMS_APP_ID="+smstest.TencentApp, "SMS_SIGNATURE=Shop", "SMS_TEMPLATES="+smsTemplates, "SMS_TOKEN="+callbackKey),
		Handler: p, prefix: chinesePrefix, answerNames: true}
	s.taken = func(_ *http.Request, _, answer []byte) (list []*arrival) {
		var is struct {
			Response struct {
				SendStatusSet []struct{ SerialNo, PhoneNumber, Code string }
			}
		}
		if json.Unmarshal(answer, &is) != nil {
			return nil
		}
		for _, m := range is.Response.SendStatusSet {
			if m.Code == "Ok" {
				list = append(list, &arrival{user: s.user(m.PhoneNumber), key: m.SerialNo})
			}
		}
		return list
	}
	s.report = func(a arrival, is feedback.Status, forged bool) *http.Request {
		return smstest.Posted(keyed("tencent", forged), []any{p.Receipt(smstest.Sent{To: s.number(a.user), ID: a.key}, is == feedback.Delivered, chineseCode(is))})
	}
	return s
}

// reportingJSON takes up to 100 messages in one call, each with an idempotency key.
func reportingJSON(t *testing.T) *smsReporter {
	p := smstest.NewJSON()
	t.Cleanup(p.Close)
	s := &smsReporter{reporter: provided("json", "", "", "SMS_TOKEN="+smstest.JSONToken), Handler: p, prefix: americanPrefix}
	s.taken = func(_ *http.Request, body, _ []byte) (list []*arrival) {
		var in struct {
			Messages []struct {
				To, Reference  string
				IdempotencyKey string `json:"idempotency_key"`
			}
		}
		if json.Unmarshal(body, &in) != nil {
			return nil
		}
		for _, m := range in.Messages {
			list = append(list, &arrival{user: s.user(m.To), key: m.Reference, call: m.IdempotencyKey})
		}
		return list
	}
	s.report = func(a arrival, is feedback.Status, forged bool) *http.Request {
		status := map[feedback.Status]string{feedback.Delivered: "delivered", feedback.Bounced: "failed", feedback.SoftBounced: "undelivered"}[is]
		q := p.Receipt(publicURL+"/callbacks/sms", smstest.Sent{To: s.number(a.user), Reference: a.key}, status, "")
		if forged {
			q.Header.Set("Webhook-Signature", "v1,Zm9yZ2Vk")
		}
		return q
	}
	return s
}

// unreportedSNS takes one message a call and reports nothing.
func unreportedSNS(t *testing.T) *smsReporter {
	p := smstest.NewSNS()
	t.Cleanup(p.Close)
	s := &smsReporter{reporter: provided("sns", smstest.KeyID, smstest.KeySecret, "SMS_REGION=us-east-1"), Handler: p, prefix: americanPrefix}
	s.taken = func(_ *http.Request, body, _ []byte) []*arrival {
		form, _ := url.ParseQuery(string(body))
		return []*arrival{{user: s.user(form.Get("PhoneNumber"))}}
	}
	return s
}
