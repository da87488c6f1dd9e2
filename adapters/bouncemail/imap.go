package bouncemail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"dropbell/domain/delivery/feedback"
)

const (
	// maxBytes is how much of a mail is fetched. A report comes before the message that it
	// returns, and the header of that message is enough.
	maxBytes = 128 << 10
	dialFor  = 15 * time.Second
	// turnFor bounds one visit of the mailbox.
	turnFor = 2 * time.Minute
)

// Aside is the folder for mails that report nothing; operators look at it. The folder is created
// when it is missing. On servers with a prefix for personal folders it is created below the
// prefix.
const Aside = "Dropbell-Aside"

// Config says where the mailbox is.
type Config struct {
	Host, Port         string
	Username, Password string
	// Folder is where the mails arrive, such as INBOX.
	Folder string
	// ImplicitTLS encrypts from the first byte (imaps). Otherwise STARTTLS is required, except
	// on connections to this machine.
	ImplicitTLS bool
	// TLS overrides how the server is verified; for private authorities.
	TLS *tls.Config
}

// ParseURL reads imaps://user:password@host:993/INBOX or imap://…; the latter requires STARTTLS.
// Errors never contain the password.
func ParseURL(raw string) (Config, error) {
	const form = "imaps://user:password@host:993/INBOX"
	u, err := url.Parse(raw)
	if err != nil {
		return Config{}, errors.New("must have the form " + form + ", special characters percent-encoded")
	}
	c := Config{Host: u.Hostname(), Port: u.Port(), ImplicitTLS: u.Scheme == "imaps", Username: u.User.Username(), Folder: strings.TrimPrefix(u.Path, "/")}
	c.Password, _ = u.User.Password()
	if c.Folder == "" {
		c.Folder = "INBOX"
	}
	if c.Port == "" {
		c.Port = map[bool]string{true: "993", false: "143"}[c.ImplicitTLS]
	}
	switch {
	case u.Scheme != "imap" && u.Scheme != "imaps":
		return Config{}, errors.New("must begin with imaps:// or imap://")
	case c.Host == "" || c.Username == "" || c.Password == "":
		return Config{}, errors.New("must name user, password and host: " + form)
	case u.RawQuery != "" || u.Fragment != "":
		return Config{}, errors.New("must have nothing after the folder's name")
	case strings.EqualFold(c.Folder, Aside):
		return Config{}, errors.New("must name another folder than " + Aside + ", which takes the mails that report nothing")
	}
	return c, nil
}

// A Mailbox is read by IMAP (RFC 9051), a connection for each visit.
type Mailbox struct{ cfg Config }

// NewMailbox returns the mailbox. It does not connect.
func NewMailbox(cfg Config) *Mailbox { return &Mailbox{cfg} }

// Collect visits the mailbox; see [feedback.Mailbox].
func (m *Mailbox) Collect(ctx context.Context, limit int, read func(context.Context, []feedback.Mail) ([]feedback.Fate, error)) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, turnFor)
	defer cancel()
	c, err := m.dial(ctx)
	if err != nil {
		return 0, fmt.Errorf("bounce mailbox: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer func() { _ = c.Close() }()
	n, err := m.visit(ctx, c, limit, read)
	if err != nil {
		return 0, fmt.Errorf("bounce mailbox: %w", err)
	}
	_ = c.Logout().Wait() // everything is done; the connection is closed anyway
	return n, nil
}

func (m *Mailbox) dial(ctx context.Context) (*imapclient.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(m.cfg.Host, m.cfg.Port))
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.cfg.TLS != nil {
		config = m.cfg.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = m.cfg.Host
	}
	var c *imapclient.Client
	switch {
	case m.cfg.ImplicitTLS:
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		c = imapclient.New(secure, nil)
	case local(m.cfg.Host):
		c = imapclient.New(conn, nil)
	default:
		if c, err = imapclient.NewStartTLS(conn, &imapclient.Options{TLSConfig: config}); err != nil {
			return nil, err
		}
	}
	if err := c.Login(m.cfg.Username, m.cfg.Password).Wait(); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("the server refuses the sign-in: %w", err)
	}
	return c, nil
}

// local reports whether the host is this machine, so that a password may be sent to it
// unencrypted.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// visit reads up to limit mails that are not flagged. read stores the reports of the mails. The
// mails are removed or moved only after read has returned.
func (m *Mailbox) visit(ctx context.Context, c *imapclient.Client, limit int, read func(context.Context, []feedback.Mail) ([]feedback.Fate, error)) (int, error) {
	if _, err := c.Select(m.cfg.Folder, nil).Wait(); err != nil {
		return 0, err
	}
	found, err := c.UIDSearch(&imap.SearchCriteria{NotFlag: []imap.Flag{imap.FlagDeleted, imap.FlagFlagged}}, nil).Wait()
	if err != nil {
		return 0, err
	}
	uids := found.AllUIDs()
	if uids = uids[:min(len(uids), limit)]; len(uids) == 0 {
		return 0, nil
	}
	section := &imap.FetchItemBodySection{Peek: true, Partial: &imap.SectionPartial{Size: maxBytes}}
	list, err := c.Fetch(imap.UIDSetNum(uids...), &imap.FetchOptions{UID: true, InternalDate: true, BodySection: []*imap.FetchItemBodySection{section}}).Collect()
	if err != nil {
		return 0, err
	}
	mails := make([]feedback.Mail, len(list))
	for i, one := range list {
		if len(one.BodySection) > 0 {
			mails[i] = feedback.Mail{Raw: one.BodySection[0].Bytes, At: one.InternalDate.UTC()}
		}
	}
	fates, err := read(ctx, mails)
	if err != nil {
		return 0, err
	}
	return len(list), m.tidy(c, list, fates)
}

// tidy removes and moves the mails. A mail that cannot be moved stays and gets a flag, so that
// it is not read again.
func (m *Mailbox) tidy(c *imapclient.Client, list []*imapclient.FetchMessageBuffer, fates []feedback.Fate) error {
	var done, aside imap.UIDSet
	for i, one := range list {
		switch fates[i] {
		case feedback.Reported, feedback.Ignored:
			done.AddNum(one.UID)
		default:
			aside.AddNum(one.UID)
		}
	}
	if len(done) > 0 {
		if err := remove(c, done); err != nil {
			return err
		}
	}
	if len(aside) == 0 {
		return nil
	}
	err := m.moveAside(c, aside)
	if err == nil {
		return nil
	}
	if flagErr := mark(c, aside, imap.FlagFlagged); flagErr != nil {
		return errors.Join(err, flagErr)
	}
	return fmt.Errorf("mails that report nothing stay in %s, flagged, since they could not be moved to %s: %w", m.cfg.Folder, Aside, err)
}

// moveAside moves the mails to the first folder that the server accepts.
func (m *Mailbox) moveAside(c *imapclient.Client, mails imap.UIDSet) (err error) {
	for _, folder := range asides(c) {
		if strings.EqualFold(folder, m.cfg.Folder) {
			continue
		}
		_ = c.Create(folder, nil).Wait() // it is there already, or moving fails
		if err = move(c, mails, folder); err == nil {
			return nil
		}
	}
	return err
}

// asides are the possible names of the folder. Some servers accept only names with a prefix,
// such as "INBOX." (RFC 2342).
func asides(c *imapclient.Client) []string {
	names := []string{Aside}
	if caps := c.Caps(); !caps.Has(imap.CapNamespace) {
		return names
	}
	if spaces, err := c.Namespace().Wait(); err == nil && len(spaces.Personal) > 0 && spaces.Personal[0].Prefix != "" {
		names = append(names, spaces.Personal[0].Prefix+Aside)
	}
	return names
}

// move moves mails. Without the extension MOVE (RFC 6851), mails are removed only after the
// server has copied them; the library's own substitute does not wait for the copy.
func move(c *imapclient.Client, mails imap.UIDSet, folder string) error {
	if c.Caps().Has(imap.CapMove) {
		_, err := c.Move(mails, folder).Wait()
		return err
	}
	if _, err := c.Copy(mails, folder).Wait(); err != nil {
		return err
	}
	return remove(c, mails)
}

// remove removes mails for good.
func remove(c *imapclient.Client, mails imap.UIDSet) error {
	if err := mark(c, mails, imap.FlagDeleted); err != nil {
		return err
	}
	if caps := c.Caps(); caps.Has(imap.CapUIDPlus) || caps.Has(imap.CapIMAP4rev2) {
		return c.UIDExpunge(mails).Close()
	}
	return c.Expunge().Close()
}

func mark(c *imapclient.Client, mails imap.UIDSet, flag imap.Flag) error {
	return c.Store(mails, &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{flag}}, nil).Close()
}
