package feedback

import (
	"context"
	"strings"
	"time"

	"dropbell/domain/user"
)

// ProviderMailbox is the provider's name in reports that came as mail.
const ProviderMailbox = "mailbox"

// Fate is what becomes of a mail in the bounce mailbox after it was read.
type Fate string

// The fates. They are also names in metrics.
const (
	// Reported: the mail reports about a message of this installation. It is removed
	// once the report is stored.
	Reported Fate = "reported"
	// Ignored: an automatic reply, a read receipt, or a notice that a mail is delayed.
	// It is removed.
	Ignored Fate = "ignored"
	// Foreign: a report without a reference that this installation signed, or a mail
	// that is no report. It is moved aside for operators.
	Foreign Fate = "foreign"
	// Unreadable: a mail that is not in the format that it claims. It is moved aside.
	Unreadable Fate = "unreadable"
)

// A Returned is what one mail of the bounce mailbox says. Only mails with the fate
// [Reported] have more than it.
type Returned struct {
	Fate Fate
	// Ref is the message, as its signature proves.
	Ref    Ref
	Status Status
	// Named are the addresses that the report gives as the message's recipient, in
	// lower case. Nothing proves them. Personal data: not to be logged.
	Named []string
	Cause string
	// At is when the mail arrived in the mailbox.
	At time.Time
}

// StatusOf returns what an enhanced status code (RFC 3463) means for the address of a
// mail that was given up: a code of class 5 is a hard bounce, except a full mailbox
// (5.2.2) and a refusal by policy (5.7.x), which are about the mail or its sender and
// may pass. Every other text is a soft bounce.
func StatusOf(code string) Status {
	code = strings.TrimSpace(code)
	if !strings.HasPrefix(code, "5.") || strings.HasPrefix(code, "5.7.") || code == "5.2.2" {
		return SoftBounced
	}
	return Bounced
}

// Report returns the report of a mail with the fate [Reported]. current is the
// recipient's mail address now, empty if there is none. The report gives it as the
// message's address only if the mail names it or names none: the signature proves
// which message was returned, and by that its recipient, but no address.
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
	// Collect gives up to limit mails to read, removes or moves each as its fate says,
	// and returns how many there were. Mails stay as they are if read returns an
	// error, or if the process dies before Collect returns.
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
	// Addresses returns the mail addresses of those of the users who have one.
	Addresses(ctx context.Context, ids []user.ID) (map[user.ID]string, error)
}

// A Collector stores what mails of the bounce mailbox report.
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

// Run empties the mailbox. A mail that is read twice, since the process died between
// storing and removing, changes nothing the second time.
func (c *Collector) Run(ctx context.Context) error {
	for {
		n, err := c.Mailbox.Collect(ctx, collectAtOnce, c.take)
		if err != nil || n < collectAtOnce {
			return err
		}
	}
}

// take stores what the mails report.
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
