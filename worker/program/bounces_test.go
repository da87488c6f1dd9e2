package program

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

// bouncing is a mail server that accepts every mail and mails a bounce report to the envelope
// sender of that mail. The envelope sender is an address in the mailbox of owner.
type bouncing struct {
	mu    sync.Mutex
	owner *imapmemserver.User
	sent  int
}

type bouncingSession struct {
	*bouncing
	from, to string
}

func (s *bouncingSession) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	return nil
}

func (s *bouncingSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return nil
}
func (*bouncingSession) Reset()        {}
func (*bouncingSession) Logout() error { return nil }

func (s *bouncingSession) Data(r io.Reader) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	report := strings.NewReplacer("\n", "\r\n", "{from}", s.from, "{to}", s.to).Replace(`From: MAILER-DAEMON@mx.example
To: {from}
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example

Final-Recipient: rfc822; {to}
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 no such user

--b--
`)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	_, err := s.owner.Append("INBOX", sized{strings.NewReader(report)}, &imap.AppendOptions{})
	return err
}

type sized struct{ *strings.Reader }

func (s sized) Size() int64 { return s.Reader.Size() }

// TestABounceComesBackAsMail: a batch of mails goes out. The receiving server sends a bounce
// report by mail for each of them. The worker stores the bounces and suppresses the addresses.
func TestABounceComesBackAsMail(t *testing.T) {
	owner, memory := imapmemserver.NewUser("bounces", "secret"), imapmemserver.New()
	musttest.OK(t, owner.Create("INBOX", nil))
	memory.AddUser(owner)
	box := imapserver.New(&imapserver.Options{InsecureAuth: true, NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
		return memory.NewSession(), nil, nil
	}})
	out := &bouncing{owner: owner}
	relay := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &bouncingSession{bouncing: out}, nil }))
	addresses := [2]string{}
	for i, serve := range []func(net.Listener) error{box.Serve, relay.Serve} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		musttest.OK(t, err)
		addresses[i] = l.Addr().String()
		go func() { _ = serve(l) }()
	}
	t.Cleanup(func() { _, _ = box.Close(), relay.Close() })

	url := localstack.Database(t)
	cfg, err := config.Load(environment("DATABASE_URL", url, "REDIS_URL", localstack.RedisServer(t).URL(), "LINK_SECRET", "0123456789abcdef0123456789abcdef",
		"SMTP_URL", "smtp://"+addresses[1]+"?from=drops@shop.example", "BOUNCE_ADDRESS", "bounces@mail.shop.example", "BOUNCE_IMAP_URL", "imap://bounces:secret@"+addresses[0]))
	musttest.OK(t, err)
	var log bytes.Buffer
	p, err := build(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)))
	musttest.OK(t, err)
	defer p.Close()
	conn, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	defer conn.Close(t.Context())
	for _, sql := range []string{
		`insert into users (id, name, email) select n, 'Ada', 'ada' || n || '@Recipient.example' from generate_series(1, 3) n`,
		`insert into batches (kind, owner_id, channel, from_user, to_user, due_count, due, due_at, worthless_after)
			values ('reminder', 1, 1, 1, 3, 3, $1, now(), now() + interval '1 hour')`,
	} {
		var args []any
		if strings.Contains(sql, "$1") {
			args = append(args, pgtest.Bitmap(1, 2, 3))
		}
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	musttest.OK(t, drain(t, p, delivery.Email))
	if _, err := owner.Append("INBOX", sized{strings.NewReader("Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\nada1@recipient.example\r\n--b--\r\n")}, &imap.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time the mailbox is empty
		musttest.OK(t, loopOf(t, p, "bounce mailbox")(t.Context()))
	}
	for sql, want := range map[string]int{
		`select bounced_count from batch_feedback`:                                                               3,
		`select count(*) from suppressions where reason = 'bounced' and address ~ '^ada[123]@recipient.example'`: 3,
		`select count(*) from feedback_reports where provider = 'mailbox' and cause like '550 5.1.1%'`:           3,
	} {
		var n int
		if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil || n != want {
			t.Errorf("%s: %d, %v; %d mails went out", sql, n, err, out.sent)
		}
	}
	status, err := owner.Status("INBOX", &imap.StatusOptions{NumMessages: true})
	if err != nil || *status.NumMessages != 0 {
		t.Errorf("%+v, %v", status, err)
	}
	if text := log.String(); strings.Contains(text, "recipient") || !strings.Contains(text, "moved aside") {
		t.Errorf("the log says %s", text)
	}
}
