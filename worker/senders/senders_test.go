package senders

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-smtp"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/adapters/sendertest"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// TestAPushSubscriptionThatIsGoneIsRemoved: the subscription is removed even if the context of
// the push has ended. If the database is down, only a warning is logged.
func TestAPushSubscriptionThatIsGoneIsRemoved(t *testing.T) {
	db, err := postgres.Open(t.Context(), localstack.Database(t), postgres.Options{AppName: "test"})
	musttest.OK(t, err)
	users := audiencedb.NewUsers(db)
	push := []user.PushSubscription{{Endpoint: "https://p.example.com/1", P256dh: "k", Auth: "a"}, {Endpoint: "https://p.example.com/2", P256dh: "k", Auth: "a"}}
	musttest.OK(t, users.Upsert(t.Context(), []user.Change{{ID: 7, Push: &push}}, staff.Entry{}))
	p := &Senders{App: &app.App{DB: db, Stores: app.NewStores(db), Log: slog.New(slog.DiscardHandler)}}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	p.subscriptionGone(over, 7, push[0])
	if u, err := users.User(t.Context(), 7); err != nil || len(u.Push) != 1 || u.Push[0] != push[1] {
		t.Errorf("left are %v, %v", u.Push, err)
	}
	db.Close()
	p.subscriptionGone(t.Context(), 7, push[1])
}

// With SMTP_TLS=required no mail goes to a server that offers no STARTTLS.
func TestMailNeedsTLSWhereItIsRequired(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	var mails atomic.Int64
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &counting{mails: &mails}, nil }))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	for setting, want := range map[string]delivery.Status{"opportunistic": delivery.Delivered, "required": delivery.Transient} {
		mails.Store(0)
		cfg := config.Config{SMTPURL: "smtp://" + listener.Addr().String() + "?from=drops@shop.example", SMTPTLS: setting}
		senders, closers, err := environment(cfg, pushEvents{}, guards{})
		musttest.OK(t, err)
		r := senders[delivery.Email].Send(t.Context(), sendertest.Messages(delivery.Email, 1))[0]
		if r.Status != want || (mails.Load() == 1) != (want == delivery.Delivered) {
			t.Errorf("SMTP_TLS=%s: %+v, %d mails went out", setting, r, mails.Load())
		}
		for _, c := range closers {
			if err := c(); err != nil {
				t.Error(err)
			}
		}
	}
}

// counting is a session of a mail server that counts mails.
type counting struct{ mails *atomic.Int64 }

func (*counting) Mail(string, *smtp.MailOptions) error { return nil }
func (*counting) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (*counting) Reset()                               {}
func (*counting) Logout() error                        { return nil }
func (c *counting) Data(r io.Reader) error {
	c.mails.Add(1)
	_, err := io.Copy(io.Discard, r)
	return err
}
