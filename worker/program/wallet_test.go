package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack"
	"dropbell/adapters/wallet/wallettest"
	"dropbell/musttest"
)

// TestWalletsAreTold: two workers tell Apple's devices and Google about a coupon's steps and
// about its expiry. They continue after failures and after Redis was emptied, and remove a
// device that no longer has a pass.
func TestWalletsAreTold(t *testing.T) {
	server := localstack.RedisServer(t)
	url := localstack.Database(t)
	sql, err := pgxpool.New(t.Context(), url)
	musttest.OK(t, err)
	t.Cleanup(sql.Close)
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := sql.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	identity, err := wallettest.NewIdentity("pass.com.example.coupons", "ABCDE12345")
	musttest.OK(t, err)
	apple := wallettest.NewAPNs(identity.TypeID)
	t.Cleanup(apple.Close)
	google, err := wallettest.NewGoogle("3388000000012345678")
	musttest.OK(t, err)
	t.Cleanup(google.Close)
	exec(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at) values (1, 5, 1, 'claim', now(), now() + interval '1 hour')`)
	exec(`insert into wallet_passes (coupon_id, user_id, expires_at, google, coupon_version) select id, 5, expires_at, true, version from coupons`)
	exec(`insert into wallet_registrations (device, coupon_id, user_id, push_token, told) values ('d1', 1, 5, 't1', 1), ('d2', 1, 5, 't2', 1)`)

	env := map[string]string{"DATABASE_URL": url, "REDIS_URL": server.URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0", "LINK_SECRET": "a secret of at least thirty-two bytes",
		"PASS_TYPE_ID": identity.TypeID, "PASS_TEAM_ID": identity.TeamID, "PASS_CERTIFICATE": string(identity.Certificate), "PASS_KEY": string(identity.Key),
		"PASS_WWDR": string(identity.WWDR), "PASS_PUSH_URL": apple.URL, "GOOGLE_WALLET_ACCOUNT": string(google.Account), "GOOGLE_WALLET_ISSUER": google.Issuer,
		"GOOGLE_WALLET_URL": google.URL}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- run(ctx, func(name string) string { return env[name] }, io.Discard) }()
	}
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	told := func(what string, tokens ...string) {
		t.Helper()
		poll(t, what, func() error {
			var open int
			if err := sql.QueryRow(t.Context(), `select count(*) from wallet_passes where next_at is not null or lease_token is not null`).Scan(&open); err != nil {
				return err
			}
			got := apple.Pushes()
			slices.Sort(got)
			if open > 0 || !slices.Equal(got, tokens) {
				return fmt.Errorf("pushed to %v, %d open", got, open)
			}
			return nil
		})
	}
	step := func(state string) {
		t.Helper()
		exec(`with c as (update coupons set state = $1, version = version + 1 returning id)
			insert into outbox (topic, payload) select 'coupon.changed.v1', jsonb_build_object('coupon_id', id::text, 'template_id', '1', 'user_id', '5', 'step', 'x', 'from', 'unused', 'to', $1::text, 'at', now())
			from c, generate_series(1, 3)`, state) // each event three times
	}
	step("used")
	told("used", "t1", "t2")
	if _, calls := google.State(""); calls != 1 {
		t.Errorf("Google was told %d times", calls)
	}

	// One device has no pass any more, Google fails once, and Redis is emptied.
	apple.Answer("t2", 410, "Unregistered")
	google.Fail("0", 503)
	options, err := goredis.ParseURL(server.URL())
	musttest.OK(t, err)
	client := goredis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	exec(`update coupons set state = 'unused', version = version + 1`)
	exec(`update wallet_passes set coupon_version = 2, revision = revision + 1, next_at = now(), changed_at = now()`) // as by an event whose task is lost
	musttest.OK(t, client.FlushAll(t.Context()).Err())
	poll(t, "Google's failure is recorded", func() error {
		var attempts int
		err := sql.QueryRow(t.Context(), `select attempts from wallet_passes`).Scan(&attempts)
		if _, calls := google.State(""); err == nil && (attempts == 0 || calls < 2) {
			err = errors.New("not yet")
		}
		return err
	})
	exec(`update wallet_passes set next_at = now() where next_at is not null`)
	told("unused again", "t1", "t1", "t2")
	var devices int
	if err := sql.QueryRow(t.Context(), `select count(*) from wallet_registrations`).Scan(&devices); err != nil || devices != 1 {
		t.Errorf("%d devices, %v", devices, err)
	}

	exec(`update coupons set expires_at = now()`)
	exec(`update wallet_passes set expires_at = now()`)
	told("expired", "t1", "t1", "t1", "t2")
}
