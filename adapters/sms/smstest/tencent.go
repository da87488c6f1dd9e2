package smstest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Tencent imitates Tencent Cloud's SendSms.
type Tencent struct{ Provider }

// TencentApp is the application of the imitation.
const TencentApp = "1400006666"

// NewTencent starts an imitation; close it with Close.
func NewTencent() *Tencent {
	t := &Tencent{}
	t.start(t.call)
	return t
}

var tc3 = regexp.MustCompile(`^TC3-HMAC-SHA256 Credential=([^/]+)/(\d{4}-\d\d-\d\d)/([a-z]+)/tc3_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$`)

// TencentSigned reports whether the request is signed with the key, as the service checks it.
// The body can be read again afterwards.
func TencentSigned(r *http.Request, keyID, secret string) bool {
	body := bodyOf(r)
	parts := tc3.FindStringSubmatch(r.Header.Get("Authorization"))
	seconds, err := strconv.ParseInt(r.Header.Get("X-TC-Timestamp"), 10, 64)
	if parts == nil || parts[1] != keyID || err != nil || time.Unix(seconds, 0).UTC().Format(time.DateOnly) != parts[2] {
		return false
	}
	if !strings.Contains(parts[4], "content-type") || !strings.Contains(parts[4], "host") {
		return false
	}
	request := canonical(r, parts[4], hexHash(string(body)), func(_, v string) string { return strings.ToLower(v) })
	text := "TC3-HMAC-SHA256\n" + r.Header.Get("X-TC-Timestamp") + "\n" + parts[2] + "/" + parts[3] + "/tc3_request\n" + hexHash(request)
	return matches(parts[5], derived("TC3"+secret, parts[2], parts[3], "tc3_request"), text)
}

type tencentStatus struct {
	SerialNo, PhoneNumber string
	Fee                   int
	SessionContext        string
	Code, Message         string
	IsoCode               string
}

func (t *Tencent) call(w http.ResponseWriter, r *http.Request) {
	refuse := func(code, words string) {
		_ = json.NewEncoder(w).Encode(map[string]any{"Response": map[string]any{"Error": map[string]string{"Code": code, "Message": words}, "RequestId": "a0aabda6"}})
	}
	w.Header().Set("Content-Type", "application/json")
	seconds, _ := strconv.ParseInt(r.Header.Get("X-TC-Timestamp"), 10, 64)
	switch {
	case !TencentSigned(r, KeyID, KeySecret):
		refuse("AuthFailure.SignatureFailure", "The provided credentials could not be validated.")
		return
	case time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute:
		refuse("AuthFailure.SignatureExpire", "Signature expired")
		return
	case r.Header.Get("X-TC-Action") != "SendSms" || r.Header.Get("X-TC-Version") != "2021-01-11" || r.Header.Get("X-TC-Region") == "":
		refuse("InvalidAction", "InvalidAction")
		return
	}
	var in struct {
		PhoneNumberSet                       []string
		SmsSdkAppId, SignName, TemplateId    string
		TemplateParamSet                     []string
		ExtendCode, SessionContext, SenderId string
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		refuse("UnknownParameter", err.Error())
		return
	}
	china := 0
	for _, n := range in.PhoneNumberSet {
		if strings.HasPrefix(n, "+86") {
			china++
		}
	}
	switch {
	case len(in.PhoneNumberSet) == 0 || len(in.PhoneNumberSet) > 200:
		refuse("LimitExceeded.PhoneNumberCountLimit", "too many numbers")
		return
	case china != 0 && china != len(in.PhoneNumberSet):
		refuse("UnsupportedOperation.ContainDomesticAndInternationalPhoneNumber", "both")
		return
	case in.SmsSdkAppId != TencentApp:
		refuse("UnauthorizedOperation.SmsSdkAppIdVerifyFail", "SmsSdkAppId")
		return
	case china > 0 && in.SignName == "":
		refuse("FailedOperation.SignatureIncorrectOrUnapproved", "sign")
		return
	case in.TemplateId == "":
		refuse("FailedOperation.TemplateIncorrectOrUnapproved", "template")
		return
	}
	var list []tencentStatus
	for _, n := range in.PhoneNumberSet {
		params := map[string]string{}
		for i, p := range in.TemplateParamSet {
			params[strconv.Itoa(i+1)] = p
		}
		id, code := t.take(Sent{To: n, Text: in.TemplateId, Params: params, Reference: in.SessionContext}, "5000:1045710669157053657849499")
		if code == "InvalidParameterValue.MobileNumberFormatError" { // is about the whole call
			refuse(code, "number")
			return
		}
		if code == "" {
			list = append(list, tencentStatus{SerialNo: id, PhoneNumber: n, Fee: 1, Code: "Ok", Message: "send success", IsoCode: "CN"})
			continue
		}
		list = append(list, tencentStatus{PhoneNumber: n, Code: code, Message: "refused " + n})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"Response": map[string]any{"SendStatusSet": list, "RequestId": "a0aabda6"}})
}

// Receipt is one entry of a callback with receipts.
func (t *Tencent) Receipt(s Sent, ok bool, code string) map[string]any {
	status := map[bool]string{true: "SUCCESS", false: "FAIL"}[ok]
	country, national := s.To[1:3], s.To[3:]
	return map[string]any{"user_receive_time": time.Now().In(time.FixedZone("", 8*3600)).Format(time.DateTime), "nationcode": country, "mobile": national,
		"report_status": status, "errmsg": code, "description": "", "sid": s.ID}
}

// Inbound is the body of a callback with a message that a person sent.
func (t *Tencent) Inbound(from, text string) map[string]any {
	return map[string]any{"extend": "", "mobile": from[3:], "nationcode": from[1:3], "sign": "Shop", "text": text, "time": 1457336869}
}
