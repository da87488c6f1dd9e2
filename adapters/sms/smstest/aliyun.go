package smstest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"sort"
	"strings"
	"time"
)

// Aliyun imitates Alibaba Cloud's SendSms.
type Aliyun struct{ Provider }

// NewAliyun starts an imitation; close it with Close.
func NewAliyun() *Aliyun {
	a := &Aliyun{}
	a.start(a.call)
	return a
}

var acs = regexp.MustCompile(`^ACS3-HMAC-SHA256 Credential=([^,]+),SignedHeaders=([^,]+),Signature=([0-9a-f]{64})$`)

// AliyunSigned reports whether the request is signed with the key, as the service
// checks it.
func AliyunSigned(r *http.Request, keyID, secret string) bool {
	parts := acs.FindStringSubmatch(r.Header.Get("Authorization"))
	if parts == nil || parts[1] != keyID {
		return false
	}
	if !sort.StringsAreSorted(strings.Split(parts[2], ";")) {
		return false
	}
	text := canonical(r, parts[2], r.Header.Get("x-acs-content-sha256"), nil)
	return matches(parts[3], secret, "ACS3-HMAC-SHA256\n"+hexHash(text))
}

func (a *Aliyun) call(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query().Get
	at, err := time.Parse(time.RFC3339, r.Header.Get("x-acs-date"))
	answer := func(status int, code, words, id string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"Code": code, "Message": words, "BizId": id, "RequestId": "F655A8D5-B967-440B-8683-DAD6FF8DE990"})
	}
	var params map[string]string
	switch {
	case !AliyunSigned(r, KeyID, KeySecret):
		answer(400, "SignatureDoesNotMatch", "Specified signature is not matched with our calculation.", "")
		return
	case err != nil || time.Since(at).Abs() > 15*time.Minute:
		answer(400, "InvalidTimeStamp.Expired", "Specified time stamp or date value is expired.", "")
		return
	case r.Header.Get("x-acs-action") != "SendSms" || r.Header.Get("x-acs-version") != "2017-05-25" || r.Header.Get("x-acs-signature-nonce") == "":
		answer(400, "InvalidAction.NotFound", "Specified api is not found.", "")
		return
	case q("SignName") == "":
		answer(200, "isv.SMS_SIGNATURE_ILLEGAL", "该账号下找不到对应签名", "")
		return
	case !strings.HasPrefix(q("TemplateCode"), "SMS_"):
		answer(200, "isv.SMS_TEMPLATE_ILLEGAL", "模板不合法(不存在或被拉黑)", "")
		return
	case json.Unmarshal([]byte(q("TemplateParam")), &params) != nil:
		answer(200, "isv.INVALID_JSON_PARAM", "JSON参数不合法", "")
		return
	case len(q("OutId")) >= 256:
		answer(200, "isv.OUT_ID_ILLEGAL", "OutId", "")
		return
	}
	id, code := a.take(Sent{To: q("PhoneNumbers"), Text: q("TemplateCode"), Params: params, Reference: q("OutId")}, "98001239^")
	if code != "" {
		answer(200, code, "refused: "+q("PhoneNumbers"), "")
		return
	}
	answer(200, "OK", "OK", id)
}

// Receipt is one entry of SmsReport.
func (a *Aliyun) Receipt(s Sent, ok bool, code string) map[string]any {
	now := time.Now().In(time.FixedZone("", 8*3600)).Format(time.DateTime)
	return map[string]any{"phone_number": s.To, "send_time": now, "report_time": now, "success": ok, "err_code": code, "err_msg": "", "sms_size": "1", "biz_id": s.ID, "out_id": s.Reference}
}

// Inbound is one entry of SmsUp.
func (a *Aliyun) Inbound(from, text, id string) map[string]any {
	return map[string]any{"phone_number": from, "content": text, "send_time": "2026-11-26 20:00:00", "dest_code": "1234", "sequence_id": id}
}

// Posted returns a call with JSON to the address.
func Posted(address string, body any) *http.Request {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // of a test's own values
	}
	r, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}
