package pushtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"dropbell/adapters/sender/providertest"
)

// FCM imitates Firebase Cloud Messaging and the address that issues its access
// tokens.
type FCM struct {
	pushes
	providertest.ServiceAccount
	Project string

	serial atomic.Int64
}

// NewFCM starts an imitation; close it with Close.
func NewFCM() (*FCM, error) {
	f := &FCM{Project: "shop-example"}
	f.Start(f)
	return f, f.Make("dropbell@shop-example.iam.gserviceaccount.com", f.Project, "https://www.googleapis.com/auth/firebase.messaging", f.URL+"/token")
}

// ServeHTTP issues an access token or answers one push.
func (f *FCM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/token" {
		f.Issue(w, r)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/projects/"+f.Project+"/messages:send" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if !f.Authorized(r) {
		f.refuse(w, 401, "UNAUTHENTICATED", "", "Request had invalid authentication credentials.", "")
		return
	}
	f.send(w, r)
}

var duration = regexp.MustCompile(`^\d+(\.\d{1,9})?s$`)

func (f *FCM) send(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Message struct {
			Token        string `json:"token"`
			Notification struct {
				Title string `json:"title"`
				Body  string `json:"body"`
			} `json:"notification"`
			Data    map[string]string `json:"data"`
			Android struct {
				Priority     string         `json:"priority"`
				TTL          string         `json:"ttl"`
				CollapseKey  string         `json:"collapse_key"`
				Notification map[string]any `json:"notification"`
			} `json:"android"`
		} `json:"message"`
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		f.refuse(w, 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "Invalid JSON payload received.", "")
		return
	}
	m := in.Message
	size := len(m.Notification.Title) + len(m.Notification.Body)
	for k, v := range m.Data {
		size += len(k) + len(v)
	}
	switch {
	case len(m.Token) < 20 || strings.Contains(m.Token, " "):
		f.refuse(w, 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token", "")
		return
	case size > 4096:
		f.refuse(w, 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "Android message is too big", "")
		return
	case m.Android.TTL != "" && !duration.MatchString(m.Android.TTL), m.Android.Priority != "HIGH" && m.Android.Priority != "NORMAL":
		f.refuse(w, 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "Invalid value at 'message.android'", "")
		return
	}
	if fault, found := f.Fault(m.Token); found {
		status := map[string]string{"UNREGISTERED": "NOT_FOUND", "QUOTA_EXCEEDED": "RESOURCE_EXHAUSTED", "SENDER_ID_MISMATCH": "PERMISSION_DENIED",
			"THIRD_PARTY_AUTH_ERROR": "UNAUTHENTICATED", "UNAVAILABLE": "UNAVAILABLE", "INTERNAL": "INTERNAL"}[fault.Reason]
		f.refuse(w, fault.Status, status, fault.Reason, "Requested entity was not found.", fault.RetryAfter)
		return
	}
	body, _ := json.Marshal(in)
	f.accept(Push{Token: m.Token, Header: r.Header.Clone(), Body: body})
	_, _ = fmt.Fprintf(w, `{"name":"projects/%s/messages/0:%d%%%d"}`, f.Project, time.Now().UnixMicro(), f.serial.Add(1))
}

// refuse answers in the form of google.rpc.Status. own is FCM's own error code; "" = none.
func (f *FCM) refuse(w http.ResponseWriter, code int, status, own, message, retryAfter string) {
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(code)
	details := []map[string]string{}
	if own != "" {
		details = append(details, map[string]string{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": own})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": code, "message": message, "status": status, "details": details}})
}
