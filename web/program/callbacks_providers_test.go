package program

import (
	"testing"

	"dropbell/adapters/postgres"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/sms"
	"dropbell/adapters/sms/smstest"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/musttest"
)

// TestCallbacksReachTheirProvider: two providers of one kind each accept callbacks with their own
// secret only. The environment's provider, which has no secret, keeps its own address.
func TestCallbacksReachTheirProvider(t *testing.T) {
	const key = "a key of at least thirty-two bytes"
	handler, sql := smsWeb(t, smsEnv(t, "PROVIDERS_KEY", key))
	db, err := postgres.Open(t.Context(), sql.Config().ConnString(), postgres.Options{AppName: "test"})
	musttest.OK(t, err)
	t.Cleanup(db.Close)
	box, err := seal.New(provider.SealPurpose, key)
	musttest.OK(t, err)
	s := &provider.Service{Store: deliverydb.NewConfigured(db), Box: box, Keyed: true, IsCountry: sms.IsCountry}
	for _, token := range []string{smstest.TwilioToken, "the token of another account"} {
		if _, err := s.Create(t.Context(), staff.System(), provider.Input{Kind: provider.Twilio, Spec: provider.Spec{Name: token[:5], Weight: 1, Enabled: true,
			Settings: map[string]string{"key_id": smstest.TwilioAccount, "from": "MG1"}},
			Secrets: map[string]string{"key_secret": token}}, ""); err != nil {
			t.Fatal(err)
		}
	}
	twilio := smstest.NewTwilio()
	defer twilio.Close()
	for path, want := range map[string]int{"twilio/1": 200, "twilio/2": 401, "twilio/3": 404, "aliyun/1": 404, "twilio": 404, "twilio/x": 404} {
		if w := passed(handler, twilio.Inbound("https://drops.example/shop/callbacks/"+path, "+14155552671", "hello", "SM1")); w.Code != want {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}
