package catcher

import (
	"strings"
	"testing"

	"dropbell/adapters/config"
	"dropbell/adapters/push"
	"dropbell/adapters/push/apns"
	"dropbell/adapters/push/fcm"
	"dropbell/adapters/sendertest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// TestPhones: with the catcher's variables, pushes to both kinds of phones arrive. A repeated
// push is shown once.
func TestPhones(t *testing.T) {
	c := start(t, t.TempDir())
	variables, err := PushVariables(c.web)
	musttest.OK(t, err)
	variables["DATABASE_URL"], variables["REDIS_URL"] = "postgres://db/x", "redis://cache"
	cfg, err := config.Load(func(name string) string { return variables[name] })
	musttest.OK(t, err)
	apple, err := apns.New(apns.Config{Key: []byte(cfg.APNSKey), KeyID: cfg.APNSKeyID, TeamID: cfg.APNSTeamID, Topic: cfg.APNSTopic, URL: cfg.APNSURL})
	musttest.OK(t, err)
	google, err := fcm.New(fcm.Config{Account: []byte(cfg.FCMAccount), URL: cfg.FCMURL})
	musttest.OK(t, err)
	sender := push.New(push.Options{}, apple, google)
	defer func() { _ = sender.Close() }()
	messages := sendertest.Messages(delivery.WebPush, 1)
	messages[0].To.Devices = []user.Device{{Platform: user.IOS, Token: strings.Repeat("ab", 32)}, {Platform: user.Android, Token: strings.Repeat("fcm-", 30)}}
	for range 2 {
		if r := sender.Send(t.Context(), messages)[0]; r.Status != delivery.Delivered {
			t.Fatalf("got %+v", r)
		}
	}
	found, total := c.store.list(Push, "", 10)
	if total != 2 || !strings.HasPrefix(found[0].To, "Android ") || !strings.HasPrefix(found[1].To, "iPhone abab") || found[0].Title != messages[0].Content.Title {
		t.Errorf("caught %+v", found)
	}
}
