package apns

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"

	"dropbell/adapters/push"
	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
)

// maxCollapse is the size of a collapse id in bytes.
const maxCollapse = 64

// A note is the payload for the app ("Generating a remote notification").
type note struct {
	APS  aps    `json:"aps"`
	URL  string `json:"url,omitempty"`
	Tag  string `json:"tag"`
	Drop int64  `json:"drop,omitempty"`
}

type aps struct {
	Alert    alert  `json:"alert"`
	Sound    string `json:"sound"`
	ThreadID string `json:"thread-id,omitempty"`
	// Level is time-sensitive for a push that is due at an instant. An app without Apple's
	// entitlement for that level shows the push like any other push.
	Level string `json:"interruption-level,omitempty"`
}

type alert struct {
	Title string `json:"title"`
	Body  string `json:"body"`
}

// payload encodes m, with the text cut as far as Apple demands.
func payload(m delivery.Message) []byte {
	n := note{Tag: m.IdempotencyKey(), Drop: m.Subject.TemplateID, APS: aps{Sound: "default"}}
	if k := m.Subject.Kind; k == delivery.KindReminder || slices.Contains(delivery.Announced(), k) {
		n.APS.Level = "time-sensitive"
	}
	if m.Subject.TemplateID != 0 {
		n.APS.ThreadID = "drop-" + strconv.FormatInt(m.Subject.TemplateID, 10)
	}
	if link := m.Link(); len(link) <= push.MaxURL {
		n.URL = link
	}
	return push.Fit(maxPayload, m.Content.Title, m.Content.Text, func(title, body string) []byte {
		n.APS.Alert = alert{Title: title, Body: body}
		return sender.JSON(n)
	})
}

// collapseID makes Apple replace an earlier push by its repetition.
func collapseID(key string) string {
	if len(key) <= maxCollapse {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
