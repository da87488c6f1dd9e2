package jsonapi_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/adapters/sms/jsonapi"
	"dropbell/adapters/sms/smstest"
	"dropbell/domain/delivery/feedback"
	"dropbell/musttest"
)

// signed returns the headers of a callback.
func signed(t *testing.T, key, body string) http.Header {
	t.Helper()
	signer, err := standardwebhooks.NewWebhookRaw([]byte(key))
	musttest.OK(t, err)
	now := time.Now()
	signature, err := signer.Sign("msg_1", now, []byte(body))
	musttest.OK(t, err)
	h := http.Header{}
	h.Set("webhook-id", "msg_1")
	h.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
	h.Set("webhook-signature", signature)
	return h
}

func TestReceiptsOfTheJSONInterface(t *testing.T) {
	refs := feedback.NewRefs("a secret of this test")
	ref := feedback.Ref{Batch: 7, User: 1}
	source := jsonapi.Source{Token: token, Refs: refs}
	body := fmt.Sprintf(`{"receipts":[{"reference":%q,"status":"delivered","to":"+8613800000001","price":"0.0075","currency":"USD","at":"2026-11-26T12:00:00Z"},`+
		`{"reference":%[1]q,"status":"failed","cause":"no such number +8613800000001"},{"reference":%[1]q,"status":"undelivered"}],"replies":[{"id":"m1","from":"+14155552671","text":"STOP"}]}`, refs.Text(ref))
	call, err := source.Read(signed(t, token, body), nil, []byte(body))
	if err != nil || len(call.Reports) != 3 || len(call.Replies) != 1 {
		t.Fatalf("got %+v, %v", call, err)
	}
	first := feedback.Report{Ref: ref, Status: feedback.Delivered, Provider: "sms", Address: "+8613800000001", PriceMicros: 7500, Currency: "USD", At: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)}
	if got := call.Reports[0]; got != first {
		t.Errorf("got %+v", got)
	}
	if got := call.Reports[1]; got.Status != feedback.Bounced || got.Cause != "no such number …" || got.Ref != ref {
		t.Errorf("got %+v", got)
	}
	if got := call.Reports[2].Status; got != feedback.SoftBounced {
		t.Errorf("got %v", got)
	}
	if got := call.Replies[0]; got != (feedback.Reply{Provider: "sms", From: "+14155552671", Text: "STOP", ID: "m1"}) {
		t.Errorf("got %+v", got)
	}
}

// The imitation signs and reports as [jsonapi.Source] demands.
func TestTheImitationReportsByTheJSONInterface(t *testing.T) {
	refs := feedback.NewRefs("a secret of this test")
	ref := feedback.Ref{Batch: 7, User: 1}
	q := (*smstest.JSON)(nil).Receipt("https://drops.example/callbacks/sms", smstest.Sent{To: "+8613800000001", Reference: refs.Text(ref)}, "failed", "no such number")
	body, err := io.ReadAll(q.Body)
	musttest.OK(t, err)
	call, err := jsonapi.Source{Token: smstest.JSONToken, Refs: refs}.Read(q.Header, q.URL, body)
	if err != nil || len(call.Reports) != 1 || call.Reports[0].Ref != ref || call.Reports[0].Status != feedback.Bounced || call.Reports[0].Address != "+8613800000001" {
		t.Errorf("got %+v, %v", call, err)
	}
}

func TestHostileCallbacksOfTheJSONInterface(t *testing.T) {
	refs := feedback.NewRefs("a secret of this test")
	source := jsonapi.Source{Token: token, Refs: refs}
	body := `{"replies":[{"id":"m1","from":"+14155552671","text":"STOP"}]}`
	for name, h := range map[string]http.Header{"no signature": {}, "of another key": signed(t, "another", body), "of another body": signed(t, token, body+" ")} {
		if _, err := source.Read(h, nil, []byte(body)); !errors.Is(err, feedback.ErrUnverified) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := (jsonapi.Source{}).Read(signed(t, "", body), nil, []byte(body)); !errors.Is(err, feedback.ErrUnverified) {
		t.Errorf("without a key: got %v", err)
	}
	for _, body := range []string{"", "x", `[]`, `{"receipts":[{}]}`, `{"receipts":1}`, `{"replies":[{"id":"","from":"+14155552671"}]}`,
		fmt.Sprintf(`{"receipts":[{"status":"delivered","reference":%q,"price":"-1"}]}`, refs.Text(feedback.Ref{Batch: 1, User: 1}))} {
		if call, err := source.Read(signed(t, token, body), nil, []byte(body)); !errors.Is(err, feedback.ErrUnreadable) || len(call.Reports)+len(call.Replies) > 0 {
			t.Errorf("%s: got %+v, %v", body, call, err)
		}
	}
}

// A foreign or malformed entry does not discard a STOP in the same call.
func TestForeignEntriesOfTheJSONInterface(t *testing.T) {
	source := jsonapi.Source{Token: token, Refs: feedback.NewRefs("a secret of this test")}
	body := `{"receipts":[{"status":"delivered","reference":""},{"status":"failed","reference":"0123456789"},{"status":"queued"}],` +
		`"replies":[{"id":"m1","from":"12345","text":"STOP"},{"id":"","from":"+14155552672","text":"STOP"},{"id":"m2","from":"+14155552671","text":"STOP"}]}`
	call, err := source.Read(signed(t, token, body), nil, []byte(body))
	if err != nil || len(call.Reports) != 2 || call.Reports[0].Ref != (feedback.Ref{}) || call.Reports[1].Ref != (feedback.Ref{}) {
		t.Errorf("got %+v, %v", call.Reports, err)
	}
	if len(call.Replies) != 1 || call.Replies[0].From != "+14155552671" {
		t.Errorf("got %+v", call.Replies)
	}
	body = `{"replies":[{"id":"m1","from":"12345","text":"STOP"}]}`
	if call, err := source.Read(signed(t, token, body), nil, []byte(body)); err != nil || len(call.Replies) > 0 {
		t.Errorf("of a short code alone: got %+v, %v", call, err)
	}
}
