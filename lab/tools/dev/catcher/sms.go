package catcher

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// SMSVariables returns the environment with which worker sends text messages to the catcher at
// url through the interface of the provider. It is nil for an unknown provider.
func SMSVariables(provider, url string) map[string]string {
	const texts = `{"*":{"*":{"id":"SMS_1","params":["text"]}}}`
	return map[string]map[string]string{
		"twilio": {"SMS_URL": url + "/twilio", "SMS_KEY_ID": "AC00000000000000000000000000000000", "SMS_KEY_SECRET": "demo", "SMS_FROM": "MG00000000000000000000000000000000"},
		"aliyun": {"SMS_URL": url + "/aliyun", "SMS_KEY_ID": "demo", "SMS_KEY_SECRET": "demo", "SMS_SIGNATURE": "Dropbell", "SMS_TEMPLATES": texts},
		"tencent": {"SMS_URL": url + "/tencent", "SMS_KEY_ID": "demo", "SMS_KEY_SECRET": "demo", "SMS_APP_ID": "1400006666", "SMS_SIGNATURE": "Dropbell",
			"SMS_TEMPLATES": texts},
		"sns": {"SMS_URL": url + "/sns", "SMS_KEY_ID": "demo", "SMS_KEY_SECRET": "demo", "SMS_REGION": "us-east-1"},
	}[provider]
}

// receiveTwilio is Twilio's side of a text message. It takes every account.
func (c *Catcher) receiveTwilio(w http.ResponseWriter, r *http.Request) {
	if c.takeText(w, r.PostFormValue("To"), r.PostFormValue("Body")) {
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, `{"sid":"SM00000000000000000000000000000000","status":"queued"}`) // the sender is gone: it will ask again
	}
}

// receiveAliyun is Alibaba Cloud's side of a text message. It takes every signature.
func (c *Catcher) receiveAliyun(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if c.takeText(w, q.Get("PhoneNumbers"), filled(q.Get("TemplateCode"), q.Get("TemplateParam"))) {
		_, _ = fmt.Fprint(w, `{"Code":"OK","Message":"OK","BizId":"1^0","RequestId":"demo"}`) // likewise
	}
}

// filled shows a template with its values.
func filled(template, params string) string {
	var values map[string]string
	if json.Unmarshal([]byte(params), &values) == nil && len(values) == 1 && values["text"] != "" {
		return values["text"]
	}
	return template + " " + params
}

// receiveTencent is Tencent Cloud's side of text messages. It takes every signature.
func (c *Catcher) receiveTencent(w http.ResponseWriter, r *http.Request) {
	var request struct {
		PhoneNumberSet, TemplateParamSet []string
	}
	if !c.decode(w, r, &request) {
		return
	}
	statuses := []map[string]string{}
	for i, to := range request.PhoneNumberSet {
		if !c.takeText(w, to, strings.Join(request.TemplateParamSet, " ")) {
			return
		}
		statuses = append(statuses, map[string]string{"SerialNo": fmt.Sprint(i), "PhoneNumber": to, "Code": "Ok", "Message": "send success"})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"Response": map[string]any{"SendStatusSet": statuses, "RequestId": "demo"}}) // likewise
}

// receiveSNS is Amazon's side of a text message. It takes every signature.
func (c *Catcher) receiveSNS(w http.ResponseWriter, r *http.Request) {
	if c.takeText(w, r.PostFormValue("PhoneNumber"), r.PostFormValue("Message")) {
		_, _ = fmt.Fprint(w, `<PublishResponse><PublishResult><MessageId>demo</MessageId></PublishResult></PublishResponse>`) // likewise
	}
}

func (c *Catcher) takeText(w http.ResponseWriter, to, text string) bool {
	if err := c.take(SMS, smsMessage{To: to, Text: text, IdempotencyKey: to + " " + text}); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return false
	}
	return true
}
