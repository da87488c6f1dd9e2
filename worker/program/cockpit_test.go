package program

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
	"dropbell/musttest"
)

// TestChannelTestsGoOut sends a test message through a whole worker to a real provider: once
// through its event, and once through the sweep alone, as if Redis had lost the event.
func TestChannelTestsGoOut(t *testing.T) {
	for name, spoil := range map[string]string{
		"with the event": `select`,
		"by the sweep":   `delete from outbox where topic = '` + event.ChannelTestCreated + `'`,
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if !strings.Contains(string(body), `"kind":"test"`) {
					t.Errorf("the provider got %s", body)
				}
				calls.Add(1)
			}))
			defer provider.Close()
			env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0",
				"WEBHOOK_URL": provider.URL, "WEBHOOK_SECRET": "whsec_YSBzZWNyZXQgdGhhdCBub2JvZHkgdXNlcw=="}
			db, err := postgres.Open(t.Context(), env["DATABASE_URL"], postgres.Options{AppName: "test"})
			musttest.OK(t, err)
			t.Cleanup(db.Close)
			tests := &testmessage.ChannelTests{Store: deliverydb.NewChannelTests(db), Configured: delivery.ChannelSetOf(delivery.Webhook)}
			if _, err := tests.Start(t.Context(), staff.System(), testmessage.TestWish{Channel: delivery.Webhook, Recipient: "1001"}); err != nil {
				t.Fatal(err)
			}
			conn, err := pgx.Connect(t.Context(), env["DATABASE_URL"])
			musttest.OK(t, err)
			defer conn.Close(context.WithoutCancel(t.Context()))
			// It goes out although the channel is paused.
			if _, err := conn.Exec(t.Context(), spoil+`; update channel_settings set paused = true`); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, func(name string) string { return env[name] }, io.Discard) }()
			var got testmessage.ChannelTest
			var seen delivery.ProviderHealth
			for end := time.Now().Add(localstack.Patience(t)); time.Now().Before(end) && (got.State != testmessage.TestDone || seen.Calls == 0); {
				list, err := tests.Tests(t.Context(), staff.System(), delivery.Webhook, 1)
				musttest.OK(t, err)
				all, err := deliverydb.NewChannels(db).Providers(t.Context())
				musttest.OK(t, err)
				got, seen = list[0], all[delivery.Webhook]
				pause := time.NewTimer(50 * time.Millisecond)
				<-pause.C
			}
			if got.Result != testmessage.TestDelivered || calls.Load() != 1 {
				t.Errorf("%+v after %d calls", got, calls.Load())
			}
			if seen.Calls != 1 || seen.Messages != 1 || seen.Failed != 0 {
				t.Errorf("the provider's calls are shown as %+v", seen)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
