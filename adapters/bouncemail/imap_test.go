package bouncemail_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"dropbell/adapters/bouncemail"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// A session of the server under test. It refuses to make folders without the prefix.
type session struct {
	imapserver.SessionIMAP4rev2
	prefix string
}

func (s session) Create(name string, options *imap.CreateOptions) error {
	if !strings.HasPrefix(name, s.prefix) {
		return &imap.Error{Type: imap.StatusResponseTypeNo, Code: imap.ResponseCodeCannot, Text: "not a name of a folder"}
	}
	return s.SessionIMAP4rev2.Create(name, options)
}

func (s session) Namespace() (*imap.NamespaceData, error) {
	if s.prefix == refuses {
		return &imap.NamespaceData{}, nil
	}
	return &imap.NamespaceData{Personal: []imap.NamespaceDescriptor{{Prefix: s.prefix, Delim: '.'}}}, nil
}

// refuses is the prefix of a server on which no folder can be made.
const refuses = "-"

// mailbox is an IMAP server with one user and the user's inbox.
func mailbox(t *testing.T, caps imap.CapSet) (*imapmemserver.User, *bouncemail.Mailbox) {
	t.Helper()
	return mailboxBelow(t, caps, "")
}

// mailboxBelow is a [mailbox] on which names of folders have the prefix.
func mailboxBelow(t *testing.T, caps imap.CapSet, prefix string) (*imapmemserver.User, *bouncemail.Mailbox) {
	t.Helper()
	memory, owner := imapmemserver.New(), imapmemserver.NewUser("bounces", "a p@ssword")
	musttest.OK(t, owner.Create("INBOX", nil))
	memory.AddUser(owner)
	server := imapserver.New(&imapserver.Options{InsecureAuth: true, Caps: caps, NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
		return session{memory.NewSession().(imapserver.SessionIMAP4rev2), prefix}, nil, nil
	}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		_ = listener.Close()
		<-done
	})
	cfg, err := bouncemail.ParseURL("imap://bounces:a%20p%40ssword@" + listener.Addr().String())
	musttest.OK(t, err)
	return owner, bouncemail.NewMailbox(cfg)
}

type literal struct{ *bytes.Reader }

func (l literal) Size() int64 { return l.Reader.Size() }

func arrive(t *testing.T, owner *imapmemserver.User, mails ...feedback.Mail) {
	t.Helper()
	for _, m := range mails {
		if _, err := owner.Append("INBOX", literal{bytes.NewReader(m.Raw)}, &imap.AppendOptions{Time: m.At}); err != nil {
			t.Fatal(err)
		}
	}
}

func count(t *testing.T, owner *imapmemserver.User, folder string) uint32 {
	t.Helper()
	status, err := owner.Status(folder, &imap.StatusOptions{NumMessages: true})
	if err != nil {
		return 0 // there is no such folder
	}
	return *status.NumMessages
}

// store keeps reports as the database does, a status for each message.
type store struct {
	known map[feedback.Ref]feedback.Report
	taken int
	fail  error
}

func (s *store) Take(_ context.Context, reports []feedback.Report) error {
	if s.fail != nil {
		return s.fail
	}
	for _, r := range reports {
		s.taken++
		if r.Status.Replaces(s.known[r.Ref].Status) {
			s.known[r.Ref] = r
		}
	}
	return nil
}

func (s *store) Addresses(_ context.Context, ids []user.ID) (map[user.ID]string, error) {
	found := map[user.ID]string{}
	for _, id := range ids {
		found[id] = "ada@recipient.example"
	}
	return found, nil
}

// TestTheMailboxIsEmptied reads a mailbox over IMAP, with and without the extensions that move
// and remove single mails. Reports are stored before their mails are removed. A mail that is
// read again changes nothing. Mails that report nothing are moved to [bouncemail.Aside].
func TestTheMailboxIsEmptied(t *testing.T) {
	for name, caps := range map[string]imap.CapSet{"old server": {imap.CapIMAP4rev1: {}}, "new server": {imap.CapIMAP4rev1: {}, imap.CapIMAP4rev2: {}, imap.CapMove: {}, imap.CapUIDPlus: {}}} {
		t.Run(name, func(t *testing.T) {
			owner, box := mailbox(t, caps)
			other := feedback.Ref{Batch: 77, User: 4712}
			large := recorded(t, "hard", refs.Text(other))
			large.Raw = append(large.Raw, bytes.Repeat([]byte("returned message\r\n"), 40_000)...)
			arrive(t, owner, recorded(t, "hard", refs.Text(mine)), large, recorded(t, "vacation", refs.Text(mine)),
				recorded(t, "hard", "forged"), recorded(t, "hard", refs.Text(mine), "Status: 5.1.1", "Status 5.1.1"))

			s := &store{known: map[feedback.Ref]feedback.Report{}, fail: errors.New("the database is away")}
			fates := map[feedback.Fate]int{}
			c := &feedback.Collector{Mailbox: box, Read: reader.Read, Reports: s, Addresses: s, Counted: func(f feedback.Fate) { fates[f]++ }}
			if err := c.Run(t.Context()); !errors.Is(err, s.fail) || count(t, owner, "INBOX") != 5 || len(fates) != 0 {
				t.Fatalf("%v, %d mails left, counted %v", err, count(t, owner, "INBOX"), fates)
			}
			// The process dies after the reports are stored and before their mails are removed.
			s.fail = nil
			died := errors.New("died")
			dying := dyingBox{box, died}
			c.Mailbox = dying
			if err := c.Run(t.Context()); !errors.Is(err, died) || len(s.known) != 2 || count(t, owner, "INBOX") != 5 {
				t.Fatalf("%v, %d stored, %d mails left", err, len(s.known), count(t, owner, "INBOX"))
			}
			c.Mailbox = box
			clear(fates)
			musttest.OK(t, c.Run(t.Context()))
			if s.taken != 4 || len(s.known) != 2 || s.known[mine].Address != "ada@recipient.example" || !s.known[mine].At.Equal(arrived) {
				t.Errorf("taken %d, known %+v", s.taken, s.known)
			}
			if want := map[feedback.Fate]int{feedback.Reported: 2, feedback.Ignored: 1, feedback.Foreign: 1, feedback.Unreadable: 1}; !mapsEqual(fates, want) {
				t.Errorf("counted %v", fates)
			}
			if count(t, owner, "INBOX") != 0 || count(t, owner, bouncemail.Aside) != 2 {
				t.Errorf("%d mails left, %d aside", count(t, owner, "INBOX"), count(t, owner, bouncemail.Aside))
			}
			if err := c.Run(t.Context()); err != nil || s.taken != 4 {
				t.Errorf("%v, taken %d", err, s.taken)
			}
		})
	}
}

// TestMailsThatCannotBeMovedStay: if the folder cannot be created, mails that report nothing are
// neither lost nor read again, and reports among and after them are read. On a server with a
// prefix for folders the folder is created below the prefix.
func TestMailsThatCannotBeMovedStay(t *testing.T) {
	newer := imap.CapSet{imap.CapIMAP4rev1: {}, imap.CapMove: {}, imap.CapUIDPlus: {}, imap.CapNamespace: {}}
	for name, c := range map[string]struct {
		caps   imap.CapSet
		prefix string
		left   uint32
	}{
		"old server":  {imap.CapSet{imap.CapIMAP4rev1: {}}, refuses, 2},
		"copies only": {imap.CapSet{imap.CapIMAP4rev1: {}, imap.CapUIDPlus: {}}, refuses, 2},
		"new server":  {newer, refuses, 2},
		"prefix":      {newer, "INBOX.", 0},
		"old prefix":  {imap.CapSet{imap.CapIMAP4rev1: {}, imap.CapNamespace: {}}, "INBOX.", 0},
	} {
		t.Run(name, func(t *testing.T) {
			owner, box := mailboxBelow(t, c.caps, c.prefix)
			arrive(t, owner, recorded(t, "hard", "forged"), recorded(t, "hard", refs.Text(mine)), recorded(t, "hard", "forged"))
			s, read := &store{known: map[feedback.Ref]feedback.Report{}}, 0
			collector := &feedback.Collector{Mailbox: box, Read: reader.Read, Reports: s, Addresses: s, Counted: func(feedback.Fate) { read++ }}
			if err := collector.Run(t.Context()); (err != nil) != (c.left > 0) || err != nil && !strings.Contains(err.Error(), "flagged") {
				t.Error(err)
			}
			if got, aside := count(t, owner, "INBOX"), count(t, owner, c.prefix+bouncemail.Aside); got != c.left || aside != 2-c.left || s.taken != 1 {
				t.Errorf("%d left, %d aside, %d reports", got, aside, s.taken)
			}
			arrive(t, owner, recorded(t, "hard", refs.Text(feedback.Ref{Batch: 77, User: 4712})))
			if err := collector.Run(t.Context()); err != nil || s.taken != 2 || read != 4 || count(t, owner, "INBOX") != c.left {
				t.Errorf("%v, %d reports, %d mails read, %d left", err, s.taken, read, count(t, owner, "INBOX"))
			}
		})
	}
}

func mapsEqual(a, b map[feedback.Fate]int) bool {
	for _, f := range []feedback.Fate{feedback.Reported, feedback.Ignored, feedback.Foreign, feedback.Unreadable} {
		if a[f] != b[f] {
			return false
		}
	}
	return len(a) == len(b)
}

// dyingBox ends between reading and removing.
type dyingBox struct {
	feedback.Mailbox
	err error
}

func (d dyingBox) Collect(ctx context.Context, limit int, read func(context.Context, []feedback.Mail) ([]feedback.Fate, error)) (int, error) {
	return d.Mailbox.Collect(ctx, limit, func(ctx context.Context, mails []feedback.Mail) ([]feedback.Fate, error) {
		if _, err := read(ctx, mails); err != nil {
			return nil, err
		}
		return nil, d.err
	})
}

// More mails than one transaction stores are read in turns.
func TestManyMails(t *testing.T) {
	owner, box := mailbox(t, nil)
	var mails []feedback.Mail
	for i := range 230 {
		mails = append(mails, recorded(t, "soft", refs.Text(feedback.Ref{Batch: 1, User: user.ID(i + 1)})))
	}
	arrive(t, owner, mails...)
	s := &store{known: map[feedback.Ref]feedback.Report{}}
	c := &feedback.Collector{Mailbox: box, Read: reader.Read, Reports: s, Addresses: s}
	if err := c.Run(t.Context()); err != nil || len(s.known) != 230 || count(t, owner, "INBOX") != 0 {
		t.Errorf("%v, %d known, %d left", err, len(s.known), count(t, owner, "INBOX"))
	}
}

func TestAddressesOfMailboxes(t *testing.T) {
	for raw, want := range map[string]string{
		"imaps://u:p@mail.example/INBOX":                    "",
		"imap://u:p@mail.example:1143/Bounce":               "",
		"pop3://u:secret@mail.example":                      "imaps://",
		"imaps://mail.example/INBOX":                        "user",
		"imaps://u:secret@mail.example?x=1":                 "after the folder",
		"imaps://u:secret@mail.example/" + bouncemail.Aside: "another folder",
		"imaps://u:sec%ret@mail.example":                    "form",
	} {
		_, err := bouncemail.ParseURL(raw)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sec")) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if _, err := bouncemail.NewMailbox(bouncemail.Config{Host: "127.0.0.1", Port: "1", Username: "u", Password: "secret"}).Collect(t.Context(), 1, nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}
