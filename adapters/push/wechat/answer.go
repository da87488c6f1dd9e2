package wechat

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
)

// The codes of WeChat's answers that are acted upon.
const (
	codeBusy         = -1
	codeOK           = 0
	codeBadToken     = 40001
	codeBadOpenID    = 40003
	codeInvalidToken = 40014
	codeNoToken      = 41001
	codeExpired      = 42001
	codeRefused      = 43101
	codeDayQuota     = 45009
	codeMinuteQuota  = 45011
	codeBadData      = 47003
)

const (
	// dayPause and minutePause are how long a mini program sends nothing after it has used up
	// its quota. WeChat names no time.
	dayPause, minutePause = 10 * time.Minute, time.Minute
	// busyPause follows an answer by which WeChat says that it is busy.
	busyPause = time.Second
	// tokenPause follows an access token that was not issued.
	tokenPause = 10 * time.Second
)

// An answer is the body of WeChat's answers. Message ends with the id of the request.
type answer struct {
	Code    *int   `json:"errcode"`
	Message string `json:"errmsg"`
}

// aboutToken reports whether the access token was refused.
func (a answer) aboutToken() bool {
	switch *a.Code {
	case codeBadToken, codeInvalidToken, codeNoToken, codeExpired:
		return true
	}
	return false
}

// result sorts WeChat's codes into four groups: the user, the message, the configuration, and
// WeChat itself. Codes about the configuration end no delivery. A code other than 0 means that
// no message was delivered, except the code for busy, after which the outcome is unknown.
func (a answer) result() delivery.Result {
	detail := a.detail()
	switch *a.Code {
	case codeOK:
		return delivery.Result{Status: delivery.Delivered, ConsentUsed: true}
	case codeRefused:
		// The same answer is given after the message was sent, such as before a crash.
		return delivery.Result{Status: delivery.Permanent, Skip: true, Unsent: true, ConsentUsed: true, Reason: delivery.ReasonNoConsent,
			Detail: detail + ": the recipient has refused the message, or the consent was used before"}
	case codeBadOpenID:
		return delivery.Result{Status: delivery.Permanent, Unsent: true, Detail: detail + ": the openid is not of this mini program"}
	case codeBadData:
		return delivery.Result{Status: delivery.Permanent, Unsent: true, Detail: detail + ": check the fields of the message"}
	case codeDayQuota:
		return delivery.Result{Status: delivery.Throttled, Unsent: true, After: dayPause, Detail: detail + ": the quota of the day is used up"}
	case codeMinuteQuota:
		return delivery.Result{Status: delivery.Throttled, Unsent: true, After: minutePause, Detail: detail + ": the quota of the minute is used up"}
	case codeBusy:
		return delivery.Result{After: busyPause, Detail: detail}
	}
	return delivery.Result{Unsent: true, Detail: detail + ": check the provider's settings"}
}

// detail is the answer without the id of the request, so that equal answers have equal texts.
func (a answer) detail() string {
	text, _, _ := strings.Cut(a.Message, " rid: ")
	text, _, _ = strings.Cut(text, " hint: ")
	return delivery.DetailOf("WeChat answered " + strconv.Itoa(*a.Code) + " " + text)
}

// A tokenRefusal is an access token that WeChat did not issue.
type tokenRefusal struct{ answer }

func (e *tokenRefusal) Error() string { return e.detail() }

var errNoToken = errors.New("the answer holds no access token")

// noToken is the answer while WeChat issues no access token.
func noToken(err error) delivery.Result {
	r := delivery.Result{Unsent: true, After: tokenPause, Detail: "WeChat issued no access token: "}
	refused, ok := errors.AsType[*tokenRefusal](err)
	if !ok {
		r.Detail += delivery.CauseOf(err)
		return r
	}
	r.Detail = delivery.DetailOf(fmt.Sprintf("WeChat issued no access token (%d): check AppID, AppSecret and the addresses that the mini program permits", *refused.Code))
	return r
}
