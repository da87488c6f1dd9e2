package program

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user/verification"
)

// A worker sends the code that a user requested through the provider of all text messages,
// counts the message in the budget, and matches delivery receipts that arrived early.
func TestAWorkerSendsCodes(t *testing.T) {
	env, _, conn := jobEnv(t)
	texts := make(chan string, 10)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Messages []struct{ To, Text string } }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) != 1 || in.Messages[0].To != "+8613800138000" {
			t.Errorf("sent %+v, %v", in, err)
		}
		_, _ = w.Write([]byte(`{"results":[{"status":"accepted"}]}`))
		texts <- in.Messages[0].Text
	}))
	t.Cleanup(provider.Close)
	env["SMS_URL"], env["SMS_TOKEN"], env["LINK_SECRET"] = provider.URL, "t", "a secret of tests with 32 bytes and more"
	env["SMS_VERIFIED_ONLY"], env["SMS_PRICES"], env["SMS_BUDGET_MONEY_PER_DAY"] = "true", "86=0.05 CNY", "1"
	db, err := postgres.Open(t.Context(), env["DATABASE_URL"], postgres.Options{AppName: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	phones := &verification.Service{Store: audiencedb.NewVerifications(db), Users: audiencedb.NewUsers(db), Keys: verification.NewKeys(env["LINK_SECRET"]), Sends: func() bool { return true },
		Numbers: verification.Numbers{Usual: sms.Number, Forms: sms.Forms, Country: sms.CountryOf}}
	if _, err := phones.Request(t.Context(), 7, verification.Wish{Phone: "+8613800138000", Locale: "zh"}); err != nil {
		t.Fatal(err)
	}
	serials := deliverydb.NewSerials(db)
	early := []feedback.Early{{Serial: "1", Report: feedback.Report{Status: feedback.Delivered}}}
	reference := feedback.NewRefs(env["LINK_SECRET"]).Text(feedback.Ref{Batch: 1, User: 7})
	if serials.Early(t.Context(), "tencent", early) != nil || serials.Keep(t.Context(), "tencent", []feedback.Serial{{ID: "1", Reference: reference}}) != nil {
		t.Fatal("the early receipt cannot be kept")
	}
	stop := serveSteps(t, env)
	defer stop()
	var text string
	select {
	case text = <-texts:
	case <-time.After(30 * time.Second):
		t.Fatal("no code was sent")
	}
	code := regexp.MustCompile(`您的验证码是 ([0-9]{6})，`).FindStringSubmatch(text)
	if code == nil {
		t.Fatalf("sent %q", text)
	}
	if phone, err := phones.Confirm(t.Context(), 7, code[1]); err != nil || phone != "+8613800138000" {
		t.Errorf("%s %v", phone, err)
	}
	var parts, micros int64
	if err := conn.QueryRow(t.Context(), `select parts, micros from sms_spent`).Scan(&parts, &micros); err != nil || parts != 1 || micros != 50_000 {
		t.Errorf("%d parts and %d micros are spent, %v", parts, micros, err)
	}
	for end, left := time.Now().Add(localstack.Patience(t)), 1; left > 0; <-time.After(20 * time.Millisecond) {
		if err := conn.QueryRow(t.Context(), `select count(*) from sms_early`).Scan(&left); err != nil || time.Now().After(end) {
			t.Fatalf("%d receipts are not matched, %v", left, err)
		}
	}
}
