package catcher

import (
	"io"
	"testing"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/sms"
	"dropbell/adapters/sms/aliyun"
	"dropbell/adapters/sms/sns"
	"dropbell/adapters/sms/tencent"
	"dropbell/adapters/sms/twilio"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

// Each provider's sender, configured as `up` does, sends to the catcher.
func TestSMSByEachProvider(t *testing.T) {
	url := start(t, t.TempDir()).web
	for _, provider := range []string{"twilio", "aliyun", "tencent", "sns"} {
		v := SMSVariables(provider, url)
		texts, err := sms.ParseTemplates(v["SMS_TEMPLATES"])
		musttest.OK(t, err)
		var s delivery.Sender
		switch provider {
		case "twilio":
			s, err = twilio.New(twilio.Config{URL: v["SMS_URL"], Account: v["SMS_KEY_ID"], AuthToken: v["SMS_KEY_SECRET"], From: v["SMS_FROM"]})
		case "aliyun":
			s, err = aliyun.New(aliyun.Config{URL: v["SMS_URL"], KeyID: v["SMS_KEY_ID"], KeySecret: v["SMS_KEY_SECRET"], Signature: v["SMS_SIGNATURE"], Templates: texts})
		case "tencent":
			s, err = tencent.New(tencent.Config{URL: v["SMS_URL"], KeyID: v["SMS_KEY_ID"], KeySecret: v["SMS_KEY_SECRET"], App: v["SMS_APP_ID"], Signature: v["SMS_SIGNATURE"], Templates: texts})
		case "sns":
			s, err = sns.New(sns.Config{URL: v["SMS_URL"], KeyID: v["SMS_KEY_ID"], KeySecret: v["SMS_KEY_SECRET"], Region: v["SMS_REGION"]})
		}
		musttest.OK(t, err)
		for i, r := range s.Send(t.Context(), sendertest.Messages(delivery.SMS, 3)) {
			if r.Status != delivery.Delivered {
				t.Errorf("%s: message %d got %+v", provider, i, r)
			}
		}
		if err := s.(io.Closer).Close(); err != nil {
			t.Error(err)
		}
	}
	if SMSVariables("json", url) != nil {
		t.Error("the JSON interface has the catcher's usual address")
	}
}
