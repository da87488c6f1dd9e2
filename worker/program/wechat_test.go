package program

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/push/pushtest"
	"dropbell/adapters/sms"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// TestRemindersReachAMiniProgram sends the reminders of a drop through a whole worker to WeChat:
// one message for each consent, with the provider's name, and no message without consent. Both
// workers use one access token, the message has the user's name, and the balance adds up.
func TestRemindersReachAMiniProgram(t *testing.T) {
	const n = 60
	wechat := pushtest.NewWeChat()
	t.Cleanup(wechat.Close)
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0", "PROVIDERS_KEY": providersKey, "PROVIDERS_PRIVATE": "yes"}
	w := pgtest.On(t, env["DATABASE_URL"])
	box, err := seal.New(provider.SealPurpose, providersKey)
	w.Must(err)
	service := &provider.Service{Store: app.NewStores(w.DB).Providers, Box: box, Keyed: true, IsCountry: sms.IsCountry}
	mini, err := service.Create(t.Context(), staff.System(), provider.Input{Kind: provider.WeChat, Spec: provider.Spec{Name: "Tea House", Weight: 1, Enabled: true,
		Settings: map[string]string{"app_id": wechat.AppID, "template": wechat.Template, "url": wechat.URL, "per_minute": "600000",
			"data": "thing1 = {{drop}}\ntime2 = {{opens_at}}\nthing3 = {{user}}: {{in}}"}}, Secrets: map[string]string{"app_secret": wechat.Secret}}, "")
	w.Must(err)
	tpl := w.Published(30 * time.Minute)
	for id := user.ID(1); id <= n; id++ {
		openID := fmt.Sprintf("openid-of-user-number-%06d", id)
		_, err := w.Users.PutDevice(t.Context(), id, user.Device{Platform: user.WeChat, Token: openID, App: wechat.AppID}, "")
		w.Must(err)
		w.Reserve(tpl, id, pgtest.Reminders(delivery.WebPush, 5)...)
		if id%3 == 0 {
			continue
		}
		_, err = w.Reservations.SetConsent(t.Context(), tpl.ID, id, 1, true)
		w.Must(err)
		if id != 1 { // its acceptance has been used by another message
			wechat.Accept(openID)
		}
	}
	w.Exec(`update users set name = '小明'`)
	w.DueNow(tpl, 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, func(name string) string { return env[name] }, io.Discard) }()
	deadline := time.Now().Add(localstack.Patience(t))
	for w.Number(`select count(*) from slots where template_id = $1 and slot = 1 and state = 'finished'`, tpl.ID) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the slot does not finish")
		}
		<-time.After(20 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := w.Balanced(tpl)[delivery.WebPush]; got != (delivery.Counts{Reserved: n, Sent: n*2/3 - 1, Skipped: n/3 + 1}) || wechat.Count() != n*2/3-1 {
		t.Errorf("balance %+v; %d messages", got, wechat.Count())
	}
	for what, want := range map[string]int64{
		`select count(*) from reservations where consents is not null`:                                        0,
		`select count(*) from exceptions where reason = 'no_consent' and outcome = 'skipped'`:                 n/3 + 1,
		`select coalesce(sum(sent_count), 0) from batch_providers where provider_id = ` + fmt.Sprint(mini.ID): n*2/3 - 1,
	} {
		if got := w.Number(what); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	for _, p := range wechat.Pushes() {
		if !strings.Contains(string(p.Body), "小明: ") {
			t.Errorf("a message without the user's name: %s", p.Body)
		}
	}
	if got := wechat.Issued.Load(); got != 1 {
		t.Errorf("%d access tokens were asked for", got)
	}
}
