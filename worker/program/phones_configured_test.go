package program

import (
	"context"
	"fmt"
	"io"
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

// TestRemindersReachConfiguredApps sends the reminders of a drop through a whole worker to
// iPhones and Android phones. Apple and Google are configured in the console alone. Each outcome
// names its provider, and the balance adds up. A phone without the app any more is removed. A
// phone whose app no provider has is skipped. A phone that names no app and belongs to another
// app is kept.
func TestRemindersReachConfiguredApps(t *testing.T) {
	const n = 60
	apple, err1 := pushtest.NewAPNs()
	google, err2 := pushtest.NewFCM()
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0", "PROVIDERS_KEY": providersKey, "PROVIDERS_PRIVATE": "yes"}
	w := pgtest.On(t, env["DATABASE_URL"])
	w.Must(err1)
	t.Cleanup(apple.Close)
	w.Must(err2)
	t.Cleanup(google.Close)
	box, err := seal.New(provider.SealPurpose, providersKey)
	w.Must(err)
	service := &provider.Service{Store: app.NewStores(w.DB).Providers, Box: box, Keyed: true, IsCountry: sms.IsCountry}
	create := func(kind provider.Kind, settings, secrets map[string]string) provider.Provider {
		t.Helper()
		p, err := service.Create(t.Context(), staff.System(), provider.Input{Kind: kind, Spec: provider.Spec{Name: string(kind), Weight: 1, Enabled: true, Settings: settings}, Secrets: secrets}, "")
		w.Must(err)
		return p
	}
	iPhones := create(provider.APNS, map[string]string{"topic": apple.Topic, "key_id": apple.KeyID, "team_id": apple.TeamID, "url": apple.URL}, map[string]string{"key": string(apple.Key)})
	androids := create(provider.FCM, map[string]string{"url": google.URL, "project": "typed by hand"}, map[string]string{"account": string(google.Account)})
	if got := androids.Settings["project"]; got != google.Project {
		t.Errorf("the project is %q", got)
	}
	tpl := w.Published(30 * time.Minute)
	phoneOf := func(id user.ID) user.Device {
		app := map[bool]string{true: "", false: apple.Topic}[id%4 == 0]
		switch token := fmt.Sprintf("registration-token-of-user-%06d", id); {
		case id%2 == 0:
			return user.Device{Platform: user.IOS, Token: fmt.Sprintf("%064x", id), App: app}
		case id == 1:
			return user.Device{Platform: user.Android, Token: token, App: "another-project"}
		case id%4 == 1:
			return user.Device{Platform: user.Android, Token: token, App: google.Project}
		default:
			return user.Device{Platform: user.Android, Token: token}
		}
	}
	for id := user.ID(1); id <= n; id++ {
		_, err := w.Users.PutDevice(t.Context(), id, phoneOf(id), "")
		w.Must(err)
		w.Reserve(tpl, id, pgtest.Reminders(delivery.WebPush, 5)...)
	}
	google.Fail(phoneOf(3).Token, pushtest.Fault{Status: 403, Reason: "SENDER_ID_MISMATCH"})
	google.Fail(phoneOf(5).Token, pushtest.Fault{Status: 404, Reason: "UNREGISTERED"})
	apple.Fail(phoneOf(2).Token, pushtest.Fault{Status: 410, Reason: "Unregistered"})
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
	if got := w.Balanced(tpl)[delivery.WebPush]; got != (delivery.Counts{Reserved: n, Sent: n - 4, Skipped: 1, Dead: 3}) || apple.Count() != n/2-1 || google.Count() != n/2-3 {
		t.Errorf("balance %+v; %d and %d pushes", got, apple.Count(), google.Count())
	}
	for what, want := range map[string]int64{
		`select count(*) from exceptions where user_id = 1 and reason = 'no_app_provider' and outcome = 'skipped'`:  1,
		`select count(*) from users where id in (1, 3) and devices <> '[]'`:                                         2,
		`select count(*) from users where id in (2, 5) and devices <> '[]'`:                                         0,
		`select sum(sent_count) from batch_providers where provider_id = ` + fmt.Sprint(iPhones.ID):                 n/2 - 1,
		`select sum(sent_count) from batch_providers where provider_id = ` + fmt.Sprint(androids.ID):                n/2 - 3,
		`select count(*) from exceptions where user_id in (3, 5) and provider_id = ` + fmt.Sprint(androids.ID):      2,
		`select count(*) from audit where object_kind = 'provider' and (before::text || after::text) like '%PRIV%'`: 0,
	} {
		if got := w.Number(what); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
}
