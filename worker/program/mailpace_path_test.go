package program

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

// accepting is a mail server that accepts every mail and counts them.
type accepting struct {
	mu    sync.Mutex
	mails int
}

type acceptingSession struct{ *accepting }

func (acceptingSession) Mail(string, *smtp.MailOptions) error { return nil }
func (acceptingSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (acceptingSession) Reset()                               {}
func (acceptingSession) Logout() error                        { return nil }

func (s acceptingSession) Data(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails++
	return err
}

// TestAWarmUpFromDayToDay: a batch of seven mails goes to a mail server under a plan of two
// mails on the first day and twice the previous day's number on each later day. Mails beyond the
// number of a day wait for the next day. Mails that are out of date by then expire and are never
// sent.
func TestAWarmUpFromDayToDay(t *testing.T) {
	server := &accepting{}
	relay := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return acceptingSession{server}, nil }))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	go func() { _ = relay.Serve(l) }()
	t.Cleanup(func() { _ = relay.Close() })
	today := app.Clock().UTC()
	url := localstack.Database(t)
	cfg, err := config.Load(environment("DATABASE_URL", url, "REDIS_URL", localstack.RedisServer(t).URL(), "SMTP_URL", "smtp://"+l.Addr().String()+"?from=drops@shop.example",
		"MAIL_WARMUP", today.Format(time.DateOnly)+":2x2"))
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	defer p.Close()
	day := today
	p.senders.Pace.Now = func() time.Time { return day }
	conn, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	defer conn.Close(t.Context())
	do := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	do(`insert into users (id, email) select n, 'ada' || n || '@recipient.example' from generate_series(1, 7) n`)
	do(`insert into batches (kind, owner_id, channel, from_user, to_user, due_count, due, due_at, worthless_after)
		values ('reminder', 1, 1, 1, 7, 7, $1, now(), now() + interval '3 days')`, pgtest.Bitmap(1, 2, 3, 4, 5, 6, 7))
	// expect drains the channel as if the waits were over.
	expect := func(about string, mails int) {
		t.Helper()
		do(`update exceptions set next_retry_at = now() - interval '1 second' where next_retry_at is not null`)
		do(`update batches set next_run_at = now() where state <> 'done'`)
		musttest.OK(t, drain(t, p, delivery.Email))
		server.mu.Lock()
		defer server.mu.Unlock()
		if server.mails != mails {
			t.Errorf("%s: %d mails, not %d", about, server.mails, mails)
		}
	}
	expect("the first day", 2)
	expect("later on the first day", 2)
	var waiting, attempts int
	if err := conn.QueryRow(t.Context(), `select count(*), sum(attempts) from exceptions where outcome = 'failed' and reason = $1`, delivery.ReasonWarmUp).Scan(&waiting, &attempts); err != nil ||
		waiting != 5 || attempts != 0 {
		t.Errorf("%d wait after %d attempts, %v", waiting, attempts, err)
	}
	day = day.AddDate(0, 0, 1)
	expect("the second day", 6)
	day = day.AddDate(0, 0, 1)
	do(`update batches set worthless_after = now()`)
	expect("after the opening", 6)
	var reason string
	if err := conn.QueryRow(t.Context(), `select reason from exceptions where outcome = 'expired'`).Scan(&reason); err != nil || reason != delivery.ReasonWarmUp {
		t.Errorf("expired for %q, %v", reason, err)
	}
}
