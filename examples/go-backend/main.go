// Command go-backend is the Dropbell part of a shop's backend: tokens for the shop's pages,
// coupons at payment, and webhooks. README.md says how to run it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"time"

	dropbell "dropbell/sdk/go"
	"dropbell/sdk/go/api"
)

// backend holds the dependencies of the handlers.
type backend struct {
	client *dropbell.Client // with a service key that has the scope payment
	tokens dropbell.UserTokens
}

func main() {
	client, err := dropbell.New(os.Getenv("DROPBELL_URL"), dropbell.ServiceKey(os.Getenv("DROPBELL_KEY")))
	if err != nil {
		log.Fatal(err)
	}
	hooks, err := dropbell.NewWebhooks(os.Getenv("DROPBELL_WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	b := backend{client, dropbell.UserTokens{Secret: os.Getenv("DROPBELL_USER_SECRET")}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /dropbell-token", b.token)
	mux.HandleFunc("POST /pay", b.pay)
	mux.Handle("POST /hooks", hooks.Handler(store))
	server := &http.Server{Addr: os.Getenv("ADDR"), Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// user returns the id of the signed-in user; "" = none. A real shop has its own sessions.
func user(r *http.Request) string {
	c, err := r.Cookie("user")
	if err != nil {
		return ""
	}
	return c.Value
}

// token is the token-url of the web components.
func (b backend) token(w http.ResponseWriter, r *http.Request) {
	if user(r) == "" {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	token, err := b.tokens.Sign(user(r), time.Now(), time.Hour)
	answer(w, map[string]string{"token": token}, err)
}

// pay pays an order with a coupon. The coupon is locked before the money is taken, used after
// the money is taken, and released if the payment fails.
func (b backend) pay(w http.ResponseWriter, r *http.Request) {
	var order struct {
		ID     string `json:"order_id"`
		Coupon string `json:"coupon_id"`
	}
	owner := user(r)
	if owner == "" {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		http.Error(w, "not an order", http.StatusBadRequest)
		return
	}
	amount := amountOf(owner, order.ID)
	// With the owner's id, Dropbell refuses coupons of other users.
	locked, err := b.client.LockCouponWithResponse(r.Context(), order.Coupon, nil, api.LockWish{OrderId: order.ID, OrderAmount: amount, UserId: &owner})
	if err != nil {
		answer(w, nil, err)
		return
	}
	total, ref := amount-*locked.JSON200.Discount, api.OrderRef{OrderId: order.ID}
	// The steps below must be completed even if the client hangs up. A real shop would repeat
	// them from a queue of its own until they succeed. Each step may be repeated.
	ctx := context.WithoutCancel(r.Context())
	if err := charge(ctx, order.ID, total); err != nil {
		_, released := b.client.ReleaseCouponWithResponse(ctx, order.Coupon, nil, ref)
		answer(w, nil, errors.Join(err, released))
		return
	}
	_, err = b.client.ConfirmCouponWithResponse(ctx, order.Coupon, nil, ref)
	answer(w, map[string]any{"order_id": order.ID, "paid": total}, err)
}

// amountOf returns the amount of the user's order, in minor units of the currency. The page does
// not send the amount. A real shop would look the order up and refuse orders of other users.
// Here every order has the same amount.
func amountOf(_, _ string) int64 { return 6000 }

// charge takes the money. Here it does not.
func charge(context.Context, string, int64) error { return nil }

// store keeps an event before the webhook is answered. An event may come twice: a real shop
// would store the event's id under a unique key.
func store(_ context.Context, e dropbell.Event) error {
	log.Printf("%s %s of %s: %s", e.ID, e.Type, e.Subject, e.Data)
	return nil
}

// answer writes a value, or Dropbell's refusal.
func answer(w http.ResponseWriter, value any, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		log.Print(err)
		status := http.StatusBadGateway
		if dropbell.Code(err) == "coupon_not_usable" {
			status = http.StatusConflict
		}
		w.WriteHeader(status)
		value = map[string]string{"code": dropbell.Code(err)}
	}
	_ = json.NewEncoder(w).Encode(value) // the client may be gone
}
