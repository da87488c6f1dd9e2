package program

import (
	"context"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-message"
	"github.com/emersion/go-smtp"

	"dropbell/adapters/argon2"
	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/app"
	"dropbell/domain/staff"
	"dropbell/musttest"
)

// mailbox keeps the mails of an SMTP server, which refuses the first of them for a while.
type mailbox struct {
	mu    sync.Mutex
	tries int
	to    string
	mails []string
}

type mailboxSession struct{ *mailbox }

func (mailboxSession) Mail(string, *smtp.MailOptions) error { return nil }
func (mailboxSession) Reset()                               {}
func (mailboxSession) Logout() error                        { return nil }

func (s mailboxSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tries++; s.tries == 1 {
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "come again"}
	}
	s.to = to
	return nil
}

// Data keeps the decoded text of the mail.
func (s mailboxSession) Data(r io.Reader) error {
	m, err := message.Read(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(m.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, string(text))
	return err
}

// A member who forgot the password gets a mail through a real SMTP server, after a refusal that
// passes. The link of the mail sets the password once and ends the member's sign-ins. Nobody else
// gets a mail.
func TestForgottenPasswordByMail(t *testing.T) {
	box := &mailbox{}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return mailboxSession{box}, nil }))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	cfg, err := config.Load(environment("DATABASE_URL", localstack.Database(t), "REDIS_URL", localstack.RedisServer(t).URL(),
		"SMTP_URL", "smtp://"+l.Addr().String()+"?from=drops@shop.example", "PUBLIC_URL", "https://console.example"))
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	defer p.Close()
	ctx := t.Context()
	service := &staff.Service{Store: p.Stores.Staff, Passwords: argon2.New(0), Now: app.Clock}
	do := func(sql string) {
		t.Helper()
		if _, err := p.DB.Pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	do(`insert into staff (email, name, role, password_hash, locale) values ('ada@example.com', 'Ada', 'viewer', 'old', 'zh-CN'), ('new@example.com', 'New', 'viewer', '', '')`)
	do(`insert into sign_ins (id, staff_id, ip, user_agent) select gen_random_uuid(), id, '', '' from staff where name = 'Ada'`)
	for _, email := range []string{" Ada@Example.com", "ada@example.com", "new@example.com", "nobody@example.com", strings.Repeat("x", 5000), "a\nb@example.com"} {
		if err := service.ForgotPassword(ctx, email, "en"); err != nil {
			t.Errorf("%.30q: %v", email, err)
		}
	}
	mailed := func() error {
		t.Helper()
		do(`update password_mails set next_at = clock_timestamp() where next_at is not null`)
		for _, s := range p.roles.Sweeps {
			if s.Name == "password mails" {
				return s.Do(context.WithoutCancel(ctx))
			}
		}
		t.Fatal("there is no sweep")
		return nil
	}
	if err := mailed(); err == nil || strings.Contains(err.Error(), "ada") {
		t.Errorf("the refusal is reported as %v", err)
	}
	for range 3 { // the later sweeps find nothing
		musttest.OK(t, mailed())
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	if len(box.mails) != 1 || box.to != "ada@example.com" || !strings.Contains(box.mails[0], "设置新密码") {
		t.Fatalf("%d mails, the last to %s: %s", len(box.mails), box.to, box.mails)
	}
	token := regexp.MustCompile(`https://console\.example/password\?token=(\w+)`).FindStringSubmatch(box.mails[0])
	if token == nil {
		t.Fatal(box.mails[0])
	}
	if _, in, err := service.SetPasswordByLink(ctx, token[1], "a long and new password", staff.Client{}); err != nil || in.ID == "" {
		t.Fatalf("%+v, %v", in, err)
	}
	if _, _, err := service.SetPasswordByLink(ctx, token[1], "another long password", staff.Client{}); err == nil {
		t.Error("the link works twice")
	}
	var signIns, entries, plain int
	if err := p.DB.Pool.QueryRow(ctx, `select (select count(*) from sign_ins where revoked_at is null), (select count(*) from audit where action = 'staff.password_mail'),
		(select count(*) from password_links where encode(hash, 'escape') = $1)`, token[1]).Scan(&signIns, &entries, &plain); err != nil || signIns != 1 || entries != 2 || plain != 0 {
		t.Errorf("%d sign-ins, %d audit entries, %d tokens stored, %v", signIns, entries, plain, err)
	}
	if err := service.ForgotPassword(ctx, "ada@example.com", "en"); err != nil { // within two minutes
		t.Error(err)
	}
	do(`update staff set disabled_at = now() where name = 'Ada'`)
	do(`update password_mails set requested_at = now() - interval '1 hour'`)
	if err := service.ForgotPassword(ctx, "ada@example.com", "en"); err != nil {
		t.Error(err)
	}
	if err := mailed(); err != nil || box.tries != 2 {
		t.Errorf("%d attempts, %v", box.tries, err)
	}
}
