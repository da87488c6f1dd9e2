package api_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/domain/staff"
	dropbell "dropbell/sdk/go"
	"dropbell/sdk/go/api"
)

// opened returns an open drop, and a drop that users can reserve reminders of.
func (r *fixture) opened() (open, coming string) {
	open, coming = r.drop(time.Hour), r.drop(time.Hour)
	r.exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, open)
	return open, coming
}

// TestGoSDK: the Go SDK reserves, claims and pays against the real API. A repetition with the same
// key has one effect, and a refusal is a problem with a code.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	r := newFixture(t, nil)
	open, coming := r.opened()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	client := func(credential dropbell.Credential, options ...dropbell.Option) *dropbell.Client {
		c, err := dropbell.New(server.URL, credential, options...)
		r.must(err)
		return c
	}
	signed, err := dropbell.UserTokens{Secret: secret}.Sign("1001", time.Now(), time.Hour)
	r.must(err)
	user, payment := client(dropbell.ServiceKey(signed)), client(dropbell.ServiceKey(r.keys[staff.ScopePayment]))

	reserved, err := user.ReserveWithResponse(t.Context(), nil, api.ReservationWish{TemplateId: coming, ShopNumber: "10",
		Reminders: []api.ReminderWish{{Channel: "app", Minutes: 10}}})
	r.must(err)
	if reserved.JSON201 == nil || len(reserved.JSON201.Reminders) != 1 {
		t.Errorf("%s", reserved.Body)
	}
	seen, err := client(dropbell.ServiceKey(r.keys[staff.ScopeActAsUser]), dropbell.AsUser("1001")).GetReservationWithResponse(t.Context(), coming, nil)
	r.must(err)
	if len(seen.JSON200.Reminders) != 1 {
		t.Errorf("%s", seen.Body)
	}
	if _, err := user.ClaimWithResponse(t.Context(), nil, api.ClaimWish{TemplateId: coming}); dropbell.Code(err) != "not_started" {
		t.Errorf("a claim before the opening: %v", err)
	}

	key := "one"
	var coupon string
	for range 2 {
		claimed, err := user.ClaimWithResponse(t.Context(), &api.ClaimParams{IdempotencyKey: &key}, api.ClaimWish{TemplateId: open})
		r.must(err)
		if claimed.JSON201 == nil || coupon != "" && *claimed.JSON201.CouponId != coupon {
			t.Fatalf("%s", claimed.Body)
		}
		coupon = *claimed.JSON201.CouponId
	}
	if _, err := user.ClaimWithResponse(t.Context(), nil, api.ClaimWish{TemplateId: open}); dropbell.Code(err) != "limit_reached" {
		t.Errorf("a second claim: %v", err)
	}
	locked, err := payment.LockCouponWithResponse(t.Context(), coupon, nil, api.LockWish{OrderId: "A-1", OrderAmount: 6000})
	r.must(err)
	if *locked.JSON200.Discount != 2000 {
		t.Errorf("%s", locked.Body)
	}
	used, err := payment.ConfirmCouponWithResponse(t.Context(), coupon, nil, api.OrderRef{OrderId: "A-1"})
	r.must(err)
	if used.JSON200.State != "used" {
		t.Errorf("%s", used.Body)
	}
	if _, err := payment.LockCouponWithResponse(t.Context(), coupon, nil, api.LockWish{OrderId: "A-2", OrderAmount: 6000}); dropbell.Code(err) != "coupon_not_usable" {
		t.Errorf("a second order: %v", err)
	}
	if ahead, ok := user.Clock.Offset(); !ok || ahead.Abs() > 2*time.Second {
		t.Errorf("the server's clock, which is this machine's, is %v ahead", ahead)
	}
}

// TestTypeScriptSDK does the same with the TypeScript SDK, in Node.js.
func TestTypeScriptSDK(t *testing.T) {
	t.Parallel()
	sdk := filepath.Join("..", "..", "sdk", "typescript")
	localstack.NPMPackages(t, sdk) // skips where there is no Node.js
	r := newFixture(t, nil)
	open, coming := r.opened()
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	cmd := exec.CommandContext(t.Context(), "node", "--test", filepath.Join(sdk, "test", "server.test.mjs"))
	cmd.Env = append(os.Environ(), "SERVER="+server.URL, "AUTH_JWT_SECRET="+secret, "PAYMENT_KEY="+r.keys[staff.ScopePayment],
		"ACT_AS_USER_KEY="+r.keys[staff.ScopeActAsUser], "OPEN="+open, "COMING="+coming)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
