package smstest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// JSON imitates a provider with the JSON interface that package sms describes.
type JSON struct{ Provider }

// JSONToken is the bearer token of the imitation, with which it also signs callbacks.
const JSONToken = "bearer/EXAMPLE+TOKEN"

// NewJSON starts an imitation; close it with Close.
func NewJSON() *JSON {
	j := &JSON{}
	j.start(j.call)
	return j
}

func (j *JSON) call(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct {
			To             string `json:"to"`
			Text           string `json:"text"`
			IdempotencyKey string `json:"idempotency_key"`
			Reference      string `json:"reference"`
		} `json:"messages"`
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+JSONToken:
		http.Error(w, "the token is wrong", http.StatusUnauthorized)
		return
	case r.Method != http.MethodPost || decoder.Decode(&in) != nil || len(in.Messages) == 0 || len(in.Messages) > 100:
		http.Error(w, "not a call with 1 to 100 messages", http.StatusBadRequest)
		return
	}
	type result struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	var results []result
	for _, m := range in.Messages {
		if !e164.MatchString(m.To) || m.Text == "" || m.IdempotencyKey == "" {
			results = append(results, result{"rejected", "not a message"})
			continue
		}
		if _, code := j.take(Sent{To: m.To, Text: m.Text, Reference: m.Reference}, "json-"); code != "" {
			results = append(results, result{code, "refused " + m.To})
			continue
		}
		results = append(results, result{"accepted", ""})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
}

// Receipt returns the callback with which the provider reports a message to the address.
func (j *JSON) Receipt(address string, s Sent, status, cause string) *http.Request {
	now := time.Now()
	body := map[string]any{"receipts": []any{map[string]any{"reference": s.Reference, "status": status, "to": s.To, "cause": cause, "at": now.UTC().Format(time.RFC3339)}}}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // of a test's own values
	}
	signer, err := standardwebhooks.NewWebhookRaw([]byte(JSONToken))
	if err != nil {
		panic(err)
	}
	id := "msg_" + s.Reference
	signature, err := signer.Sign(id, now, raw)
	if err != nil {
		panic(err)
	}
	r := Posted(address, json.RawMessage(raw))
	r.Header.Set(standardwebhooks.HeaderWebhookID, id)
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return r
}
