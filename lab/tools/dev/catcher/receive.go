package catcher

import (
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	maxBody     = 4 << 20
	maxMessages = 100 // per request, as agreed with the senders
)

type result struct {
	Status string `json:"status"`
	Error  string `json:"error"`
}

// receiveSMS is an SMS provider's side of the SMS channel.
func (c *Catcher) receiveSMS(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+c.config.SMSToken)) != 1 {
		http.Error(w, "wrong token", http.StatusUnauthorized)
		return
	}
	var request struct {
		Messages []smsMessage `json:"messages"`
	}
	if !c.decode(w, r, &request) {
		return
	}
	if len(request.Messages) > maxMessages {
		http.Error(w, "too many messages", http.StatusRequestEntityTooLarge)
		return
	}
	results := []result{}
	for _, m := range request.Messages {
		results = append(results, c.takeSMS(m))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"results": results}) // the sender is gone: it will ask again
}

func (c *Catcher) takeSMS(m smsMessage) result {
	if m.To == "" {
		return result{Status: "rejected", Error: "no number"}
	}
	if err := c.take(SMS, m); err != nil {
		return result{Status: "throttled", Error: err.Error()}
	}
	return result{Status: "accepted"}
}

// receiveWebhook checks the signature by the Standard Webhooks specification and stores the
// messages.
func (c *Catcher) receiveWebhook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "cannot read the request", http.StatusBadRequest)
		return
	}
	if err := c.verify(body, r.Header); err != nil {
		http.Error(w, "signature: "+err.Error(), http.StatusUnauthorized)
		return
	}
	var request struct {
		Messages []webhookMessage `json:"messages"`
	}
	if err := json.Unmarshal(body, &request); err != nil || len(request.Messages) > maxMessages {
		http.Error(w, "cannot read the messages", http.StatusBadRequest)
		return
	}
	for _, m := range request.Messages {
		if err := c.take(Webhook, m); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (c *Catcher) verify(body []byte, h http.Header) error {
	verifier, err := standardwebhooks.NewWebhook(c.config.WebhookSecret)
	if err != nil {
		return err
	}
	return verifier.Verify(body, h)
}

func (c *Catcher) decode(w http.ResponseWriter, r *http.Request, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(into)
	if err != nil {
		http.Error(w, "cannot read the request", http.StatusBadRequest)
	}
	return err == nil
}

func (c *Catcher) take(kind Kind, m any) error {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return c.store.add(kind, raw)
}
