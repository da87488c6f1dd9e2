package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/app"
	"dropbell/domain/rehearsal"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// A key of rehearsals claims a coupon of the copy of a drop and locks and uses it for an order, with the same API. It reaches no
// real drop and no other resource, and a real key reaches nothing of the rehearsal.
func TestKeysOfRehearsalsReachOnlyRehearsals(t *testing.T) {
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "HTTP_ADDR": "127.0.0.1:0", "ADMIN_EMAIL": "a@shop.example", "ADMIN_PASSWORD": "correct horse battery",
		"ADMIN_API_KEY": "dbk_abcdefghijklmnopqrstuvwxyz234567", "AUTH_JWT_SECRET": "a secret with at least thirty-two bytes"}
	w := pgtest.On(t, env["DATABASE_URL"])
	drop := w.Published(2 * time.Hour)
	stores := app.NewStores(w.DB)
	rows := stores.Rehearsals
	r, err := rows.Ask(t.Context(), rehearsal.Rehearsal{TemplateID: drop.ID, Shop: drop.ShopNumber}, staff.Entry{Actor: staff.System(), Action: "template.rehearse"})
	w.Must(err)
	_, _, err = rows.Take(t.Context(), "test", time.Minute)
	w.Must(err)
	w.Must(rows.MakeWorld(t.Context(), env["DATABASE_URL"], r.ID))
	from, err := rows.Schema(t.Context())
	w.Must(err)
	node := startNode(t, env)
	keys := &staff.Service{Store: stores.Staff, Now: time.Now}
	admin := staff.Actor{Label: "test", Role: staff.Admin}
	_, test, err := keys.CreateKey(t.Context(), admin, staff.KeyInput{Name: "checkout", Scopes: staff.TestScopes(), Test: true})
	w.Must(err)
	if _, _, err := keys.CreateKey(t.Context(), admin, staff.KeyInput{Name: "too much", Scopes: []staff.Scope{staff.ScopeAdmin}, Test: true}); err == nil {
		t.Error("a key of rehearsals may do everything")
	}
	_, real, err := keys.CreateKey(t.Context(), admin, staff.KeyInput{Name: "real", Scopes: staff.TestScopes()})
	w.Must(err)
	calls := 0
	call := func(key, method, path, body string) (int, map[string]any) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, "http://"+node.address+"/api/v1"+path, bytes.NewReader([]byte(body)))
		w.Must(err)
		q.Header.Set("Authorization", "Bearer "+key)
		q.Header.Set("X-User-ID", "7")
		q.Header.Set("Content-Type", "application/json")
		if method == http.MethodPost {
			q.Header.Set("Idempotency-Key", fmt.Sprint("call-", calls))
		}
		calls++
		a, err := http.DefaultClient.Do(q)
		w.Must(err)
		defer a.Body.Close()
		raw, err := io.ReadAll(a.Body)
		w.Must(err)
		var got map[string]any
		_ = json.Unmarshal(raw, &got)
		return a.StatusCode, got
	}
	claimOf := func(id int64) string { return fmt.Sprintf(`{"template_id": "%d"}`, id) }
	if status, _ := call(test, "POST", "/claims", claimOf(r.ID)); status != 404 {
		t.Errorf("before the copy is made: %d", status)
	}
	cfg, err := config.Load(func(name string) string { return env[name] })
	w.Must(err)
	world, err := app.OpenWorld(t.Context(), cfg, nil, r.ID)
	w.Must(err)
	t.Cleanup(world.Close)
	opensAt := time.Now().Add(2 * time.Second).Truncate(time.Second).UTC()
	_, err = world.Stores.Rehearsals.Fill(t.Context(), dropsdb.Filling{From: from, Drop: drop.ID, ID: r.ID, Shop: drop.ShopNumber, SharePermille: 1000, OpensAt: opensAt})
	w.Must(err)
	_, err = (&template.Service{Store: world.Stores.Templates, Now: time.Now}).Do(t.Context(), staff.System(), r.ID, 0, template.Publishing, "")
	w.Must(err)
	w.Must(rows.Began(t.Context(), r.ID, "test", 1000, opensAt))
	var coupon string
	eventually(t, "a coupon of the copy is claimed", func() bool {
		status, got := call(test, "POST", "/claims", claimOf(r.ID))
		if status != 200 && status != 201 {
			<-time.After(100 * time.Millisecond)
			return false
		}
		coupon, _ = got["coupon_id"].(string)
		return coupon != ""
	})
	lock := `{"order_id": "A-1", "order_amount": 100000, "currency": "CNY"}`
	if status, got := call(real, "POST", "/coupons/"+coupon+"/lock", lock); status != 404 {
		t.Errorf("a real key locks a coupon of a rehearsal: %d %v", status, got)
	}
	if status, got := call(test, "POST", "/coupons/"+coupon+"/lock", lock); status != 200 {
		t.Errorf("the coupon cannot be locked: %d %v", status, got)
	}
	if status, got := call(test, "GET", "/coupons", ""); status != 200 || len(got["coupons"].([]any)) != 1 {
		t.Errorf("the user's coupons: %d %v", status, got)
	}
	for _, path := range []string{"/templates/" + fmt.Sprint(drop.ID), "/reservations", "/inbox", "/admin/templates", "/coupons/" + coupon + "/pass"} {
		if status, _ := call(test, "GET", path, ""); status != 404 {
			t.Errorf("%s answers a key of rehearsals with %d", path, status)
		}
	}
	if status, _ := call(test, "POST", "/claims", claimOf(drop.ID)); status != 404 {
		t.Errorf("a key of rehearsals claims from a real drop: %d", status)
	}
	if status, _ := call(real, "POST", "/claims", claimOf(r.ID)); status != 404 {
		t.Errorf("a real key claims from a rehearsal: %d", status)
	}
	if status, _ := call(staff.TestPrefix+"abcdefghijklmnopqrstuvwxyz234567", "GET", "/coupons", ""); status != 401 {
		t.Errorf("an unknown key: %d", status)
	}
	w.Must(rows.End(t.Context(), r.ID, "test", nil, "ended"))
	w.Must(rows.DropWorld(t.Context(), r.ID))
	if status, _ := call(test, "GET", "/coupons", ""); status != 404 {
		t.Errorf("after the rehearsal: %d", status)
	}
	if n := w.Number(`select count(*) from coupons`); n != 0 {
		t.Errorf("%d coupons of real drops", n)
	}
}
