package feedback

import (
	"context"
	"strings"
	"time"

	"dropbell/domain/user"
)

// ProviderMailbox is the provider's name in reports that came as mail.
const ProviderMailbox = "mailbox"

// Fate is the handling of a mail in the bounce mailbox after it was read.
type Fate string

// The fates. They are also names in metrics.
const (
	// Reported: the mail is a report about a message of this installation. It is removed once the
	// report is stored.
	Reported Fate = "reported"
	// Ignored: the mail is an automatic reply, a read receipt, or a notice that a mail is
	// delayed. It is removed.
	Ignored Fate = "ignored"
	// Foreign: the mail is no report, or a report without a reference that this installation
	// signed. It is moved aside for operators.
	Foreign Fate = "foreign"
	// Unreadable: a mail that is not in the format that it claims. It is moved aside.
	Unreadable Fate = "unreadable"
)

// A Returned is the content of one mail in the bounce mailbox. Only mails with the fate
// [Reported] have fields other than Fate.
type Returned struct {
	Fate Fate
	// Ref is the message, as its signature proves.
	Ref    Ref
	Status Status
	// Named are the addresses that the report names as the message's recipients, in lower case.
	// The signature does not cover them. They are personal data and must not be logged.
	Named []string
	Cause string
	// At is when the mail arrived in the mailbox.
	At time.Time
}

// StatusOf returns the status of an undeliverable mail by its enhanced status code (RFC 3463). A
// code of class 5 is a hard bounce. A full mailbox (5.2.2) and a refusal by policy (5.7.x) are
// soft bounces, because they are about the mail or its sender and may be temporary. Every other
// text is a soft bounce.
func StatusOf(code string) Status {
	code = strings.TrimSpace(code)
	if !strings.HasPrefix(code, "5.") || strings.HasPrefix(code, "5.7.") || code == "5.2.2" {
		return SoftBounced
	}
	return Bounced
}

// Report returns the report of a mail with the fate [Reported]. current is the recipient's
// present mail address, empty if there is none. The report contains current as its address only
// if the mail names that address or names none. The signature proves which message was returned,
// and so its recipient, but no address.
func (r Returned) Report(current string) Report {
	report := Report{Ref: r.Ref, Status: r.Status, Provider: ProviderMailbox, Cause: r.Cause, At: r.At}
	current = strings.ToLower(strings.TrimSpace(current))
	named := len(r.Named) == 0
	for _, a := range r.Named {
		named = named || a == current
	}
	if named {
		report.Address = current
	}
	return report
}

// A Mailbox is where mails that report arrive.
type Mailbox interface {
	// Collect passes up to limit mails to read, then removes or moves each mail according to its
	// fate, and returns how many there were. If read returns an error, or the process dies before
	// Collect returns, the mails stay unchanged.
	Collect(ctx context.Context, limit int, read func(context.Context, []Mail) ([]Fate, error)) (int, error)
}

// A Mail is one mail of the mailbox.
type Mail struct {
	// Raw is its beginning, in the format of RFC 5322.
	Raw []byte
	// At is when it arrived.
	At time.Time
}

// Addresses knows the users' mail addresses.
type Addresses interface {
	// Addresses returns the mail addresses of the users who have one.
	Addresses(ctx context.Context, ids []user.ID) (map[user.ID]string, error)
}

// A Collector stores the reports in mails of the bounce mailbox.
type Collector struct {
	Mailbox   Mailbox
	Read      func(Mail) Returned
	Reports   Taker
	Addresses Addresses
	// Counted is told of each mail once its report is stored; may be nil.
	Counted func(Fate)
}

// collectAtOnce is how many mails are stored by one transaction.
const collectAtOnce = 100

// Run empties the mailbox. If the process dies between storing a report and removing its mail,
// the mail is read again, which changes nothing.
func (c *Collector) Run(ctx context.Context) error {
	for {
		n, err := c.Mailbox.Collect(ctx, collectAtOnce, c.take)
		if err != nil || n < collectAtOnce {
			return err
		}
	}
}

// take stores the reports in the mails.
func (c *Collector) take(ctx context.Context, mails []Mail) ([]Fate, error) {
	read, fates := make([]Returned, len(mails)), make([]Fate, len(mails))
	var ids []user.ID
	for i, m := range mails {
		read[i] = c.Read(m)
		if fates[i] = read[i].Fate; fates[i] == Reported {
			ids = append(ids, read[i].Ref.User)
		}
	}
	if len(ids) > 0 {
		addresses, err := c.Addresses.Addresses(ctx, ids)
		if err != nil {
			return nil, err
		}
		reports := make([]Report, 0, len(ids))
		for _, r := range read {
			if r.Fate == Reported {
				reports = append(reports, r.Report(addresses[r.Ref.User]))
			}
		}
		if err := c.Reports.Take(ctx, reports); err != nil {
			return nil, err
		}
	}
	if c.Counted != nil {
		for _, f := range fates {
			c.Counted(f)
		}
	}
	return fates, nil
}
