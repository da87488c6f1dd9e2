package program

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/domain/delivery/feedback"
	"dropbell/musttest"
)

// TestCallbacksAreWired sends a provider's callbacks through the whole program: one is stored, one
// has no signature, and one names a provider that is not configured.
func TestCallbacksAreWired(t *testing.T) {
	const secret = "a secret of at least thirty-two bytes"
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "LINK_SECRET": secret,
		"POSTMARK_WEBHOOK_SECRET": "a word of 16 bytes", "DIRECTMAIL_TOKEN": "a token of 16 bytes", "SES_TOPICS": "arn:aws:sns:eu-west-1:123456789012:mail", "MAILGUN_WEBHOOK_KEY": "a key of 16 bytes",
		"SENDGRID_WEBHOOK_KEY": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEFv2+fTSw3f8bHQxoj7qV+VdE3lryHmeel9OcNjL8QZ1+J9G6bvTTOwQxAAepWDnmY8HiSwxkL9CsHuSgAkwkFA=="}
	cfg, err := config.Load(func(name string) string { return env[name] })
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	t.Cleanup(func() { _ = p.Close() })
	handler, err := p.handler(t.Context())
	musttest.OK(t, err)
	sql, err := pgxpool.New(context.WithoutCancel(t.Context()), env["DATABASE_URL"])
	musttest.OK(t, err)
	t.Cleanup(sql.Close)
	due, err := roaring64.BitmapOf(5).ToBytes()
	musttest.OK(t, err)
	batch := rows.ID(t, sql, "batches", rows.Row{"channel": 1, "from_user": 5, "to_user": 5, "due": due, "sent_count": 1})
	body := `{"RecordType":"Delivery","Recipient":"ada@shop.example","DeliveredAt":"2026-11-05T16:33:54Z","Metadata":{"dropbell":"` +
		feedback.NewRefs(secret).Text(feedback.Ref{Batch: batch, User: 5}) + `"}}`
	call := func(path, password string) int {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.SetBasicAuth("postmark", password)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	for _, c := range []struct {
		path, password string
		status         int
	}{
		{"/callbacks/postmark", "a word of 16 bytes", 204}, {"/callbacks/postmark", "a word of 16 bytes", 204}, {"/callbacks/postmark", "another word", 401},
		{"/callbacks/ses", "", 401}, {"/callbacks/sendgrid", "", 401}, {"/callbacks/mailgun", "", 401}, {"/callbacks/directmail", "", 401}, {"/callbacks/nobody", "", 404},
	} {
		if status := call(c.path, c.password); status != c.status {
			t.Errorf("%s with %q: %d", c.path, c.password, status)
		}
	}
	var delivered int
	if err := sql.QueryRow(t.Context(), `select delivered_count from batch_feedback where batch_id = $1`, batch).Scan(&delivered); err != nil || delivered != 1 {
		t.Errorf("%d delivered, %v", delivered, err)
	}
	families, err := p.Registry.Gather()
	musttest.OK(t, err)
	series := map[string]int{}
	for _, f := range families {
		series[f.GetName()] = len(f.GetMetric())
	}
	if series["dropbell_callbacks_total"] != 6 || series["dropbell_feedback_reports_total"] != 3 {
		t.Errorf("%d and %d series", series["dropbell_callbacks_total"], series["dropbell_feedback_reports_total"])
	}
	p.DB.Close()
	if status := call("/callbacks/postmark", "a word of 16 bytes"); status != 503 {
		t.Errorf("without a database: %d", status)
	}
}
