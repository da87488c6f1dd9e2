package fcm

import (
	"strconv"
	"time"

	"dropbell/adapters/push"
	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
)

// maxPayload is the most bytes of notification and data together. Google allows 4,096 bytes in
// its own encoding, which also contains the token and the field names.
const maxPayload = 4000

// A request is the body of messages:send.
type request struct {
	Message message `json:"message"`
}

type message struct {
	Token        string            `json:"token"`
	Notification notification      `json:"notification"`
	Data         map[string]string `json:"data"`
	Android      android           `json:"android"`
}

type notification struct {
	Title string `json:"title"`
	Body  string `json:"body"`
}

type android struct {
	Priority     string `json:"priority"`
	TTL          string `json:"ttl"`
	Notification struct {
		// Tag makes the phone replace an earlier push by its repetition.
		Tag   string `json:"tag"`
		Sound string `json:"sound"`
	} `json:"notification"`
}

// payload encodes m for one phone, with the text cut as far as Google demands.
func payload(m delivery.Message, token string, now time.Time) []byte {
	var r request
	r.Message.Token = token
	r.Message.Data = map[string]string{"tag": m.IdempotencyKey()}
	if m.Subject.TemplateID != 0 {
		r.Message.Data["drop"] = strconv.FormatInt(m.Subject.TemplateID, 10)
	}
	if link := m.Link(); link != "" && len(link) <= push.MaxURL {
		r.Message.Data["url"] = link
	}
	r.Message.Android.Priority = "HIGH"
	r.Message.Android.TTL = strconv.FormatInt(push.TTL(m.Subject, now), 10) + "s"
	r.Message.Android.Notification.Tag = m.IdempotencyKey()
	r.Message.Android.Notification.Sound = "default"
	return push.Fit(maxPayload+len(token), m.Content.Title, m.Content.Text, func(title, body string) []byte {
		r.Message.Notification = notification{Title: title, Body: body}
		return sender.JSON(r)
	})
}
