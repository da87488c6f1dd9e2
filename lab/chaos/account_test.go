package chaos_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// A verdict is the set of outcomes allowed for the reminders of a drop.
type verdict bool

const (
	everybodySent verdict = false
	sentOrExpired verdict = true
)

// A sending is a set of messages sent for one reason: a drop's reminders, or a campaign.
type sending struct {
	what  string // for complaints
	kind  delivery.Kind
	owner int64 // of its batches
	// until is the first instant at which nothing may arrive any more.
	until time.Time
}

func (d *drop) sending() sending {
	return sending{fmt.Sprintf("drop %d", d.id), delivery.KindReminder, d.slot, d.opensAt}
}

// A line is the database's record of one channel of one sending. It is read from the bitmaps and
// rows without the product's own code.
type line struct {
	due, sent *roaring64.Bitmap
	cause     map[int64]string // of each expired recipient
	other     map[int64]string // outcome of every other recipient that was not sent to at the first attempt
	batch     map[int64]int64  // of every user
	recovered int64            // sent after at least one failure
}

// account checks one drop. Every acknowledged reservation is in exactly one batch and has the
// expected outcome. The sinks have received exactly the messages that are recorded as sent, and
// none of the drop after its opening. The product's own balance sheet agrees.
func (w *system) account(d *drop, v verdict) {
	w.t.Helper()
	seen, s := w.seen(w.expected(d)), d.sending()
	for _, c := range channels {
		l := w.read(s, c)
		w.complete(d, c, l)
		w.outcomes(d, c, l, v)
		if c != delivery.App {
			w.compare(s, c, l, seen)
		}
		w.report.reminders += int64(l.due.GetCardinality())
		w.report.sent += int64(l.sent.GetCardinality())
		w.report.expired += int64(len(l.cause))
		w.report.recovered += l.recovered
	}
	w.repetitions(s, seen)
	w.balance(d)
}

func (w *system) read(s sending, c delivery.Channel) line {
	l := line{roaring64.New(), roaring64.New(), map[int64]string{}, map[int64]string{}, map[int64]int64{}, 0}
	rows, err := w.stack.SQL.Query(w.ctx, `select id, due, coalesce(sent, ''), coalesce(rest_outcome, ''), coalesce(rest_reason, '') from batches
		where kind = $1 and owner_id = $2 and channel = $3`, s.kind, s.owner, c)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var due, sent []byte
		var rest, reason string
		if err := rows.Scan(&id, &due, &sent, &rest, &reason); err != nil {
			w.t.Fatal(err)
		}
		dueSet, sentSet := bitmap(w.t, due), bitmap(w.t, sent)
		if both := l.due.AndCardinality(dueSet); both > 0 {
			w.t.Errorf("%s, %s: %d users are in two batches", s.what, c, both)
		}
		for it := dueSet.Iterator(); it.HasNext(); {
			u := int64(it.Next())
			l.batch[u] = id
			switch {
			case rest == "" || sentSet.Contains(uint64(u)):
			case rest == string(delivery.Expired):
				l.cause[u] = reason
			default:
				l.other[u] = rest + " (" + reason + ")"
			}
		}
		l.due.Or(dueSet)
		l.sent.Or(sentSet)
	}
	w.readExceptions(s, c, &l)
	return l
}

func bitmap(t *testing.T, raw []byte) *roaring64.Bitmap {
	set := roaring64.New()
	if len(raw) > 0 {
		if err := set.UnmarshalBinary(raw); err != nil {
			t.Fatal(err)
		}
	}
	return set
}

func (w *system) readExceptions(s sending, c delivery.Channel, l *line) {
	rows, err := w.stack.SQL.Query(w.ctx, `select e.user_id, e.outcome, e.reason || ': ' || e.detail from exceptions e
		join batches b on b.id = e.batch_id where b.kind = $1 and b.owner_id = $2 and b.channel = $3`, s.kind, s.owner, c)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var u int64
		var outcome, why string
		if err := rows.Scan(&u, &outcome, &why); err != nil {
			w.t.Fatal(err)
		}
		switch delivery.Outcome(outcome) {
		case delivery.Recovered:
			l.recovered++
		case delivery.Expired:
			delete(l.other, u)
			l.cause[u] = why
		default:
			delete(l.cause, u)
			l.other[u] = outcome + " (" + why + ")"
		}
	}
}

// complete checks that the recipients of the fired reminders are the users with acknowledged
// reservations. Users whose request was never answered may be among them.
func (w *system) complete(d *drop, c delivery.Channel, l line) {
	w.crowd.ledger.mu.Lock()
	defer w.crowd.ledger.mu.Unlock()
	var missed, ghosts []int64
	for s, f := range w.crowd.ledger.fates {
		if s.drop != d.id || s.channel != c {
			continue
		}
		due := l.due.Contains(uint64(s.user))
		switch {
		case f == accepted && !due:
			missed = append(missed, s.user)
		case (f == refused || f == withdrawn) && due:
			ghosts = append(ghosts, s.user)
		}
	}
	for it := l.due.Iterator(); it.HasNext(); {
		if u := int64(it.Next()); w.crowd.ledger.fates[reservation{d.id, u, c}] == nothing {
			ghosts = append(ghosts, u)
		}
	}
	w.report.missed += int64(len(missed))
	if len(missed)+len(ghosts) > 0 {
		w.t.Errorf("drop %d, %s: missed although promised: %s; due although not: %s", d.id, c, some(missed), some(ghosts))
	}
}

// outcomes checks that each recipient has exactly one outcome, and that it is the expected
// outcome.
func (w *system) outcomes(d *drop, c delivery.Channel, l line, v verdict) {
	var lost, twofold, causeless []int64
	for it := l.due.Iterator(); it.HasNext(); {
		u := int64(it.Next())
		cause, expired := l.cause[u]
		sent := l.sent.Contains(uint64(u))
		switch {
		case sent && expired:
			twofold = append(twofold, u)
		case expired && cause == "":
			causeless = append(causeless, u)
		case !sent && !(expired && v == sentOrExpired):
			lost = append(lost, u)
		}
	}
	stray := l.sent.Clone()
	stray.AndNot(l.due)
	if n := stray.GetCardinality(); n > 0 {
		w.t.Errorf("drop %d, %s: %d are recorded as sent who were not due", d.id, c, n)
	}
	w.report.missed += int64(len(lost))
	if len(lost)+len(twofold)+len(causeless)+len(l.other) > 0 {
		w.t.Errorf("drop %d, %s: not sent %s (%s), two outcomes %s, expired without a cause %s, neither %d %s", d.id, c,
			some(lost), why(l.cause), some(twofold), some(causeless), len(l.other), why(l.other))
	}
}

func some(users []int64) string {
	return fmt.Sprintf("%d users %v", len(users), users[:min(5, len(users))])
}

// why returns one of the reasons.
func why(reasons map[int64]string) string {
	for _, r := range reasons {
		return r
	}
	return "no reason given"
}

// keyOf is the idempotency key under which the sink must know a message.
func keyOf(d *drop, u int64, c delivery.Channel) string {
	return keyAbout(&delivery.Subject{Kind: delivery.KindReminder, TemplateID: d.id, Slot: 1, DueAt: d.dueAt}, u, c)
}

func keyAbout(about *delivery.Subject, u int64, c delivery.Channel) string {
	key := delivery.Message{To: &user.User{ID: user.ID(u)}, Channel: c, Subject: about}.IdempotencyKey()
	if c == delivery.Email {
		sum := sha256.Sum256([]byte(key))
		return hex.EncodeToString(sum[:16])
	}
	return key
}

// balance reads the product's own balance sheet.
func (w *system) balance(d *drop) {
	lines, err := dropsdb.NewBoards(w.stack.DB).Balance(w.ctx, d.id)
	if err != nil || len(lines) == 0 {
		w.t.Errorf("balance sheet of drop %d: %d lines, %v", d.id, len(lines), err)
	}
	for _, l := range lines {
		w.report.lines++
		if l.Difference() != 0 || l.Twice != 0 || l.Counted.InFlight != 0 {
			w.t.Errorf("drop %d, %s does not balance: %+v", d.id, l.Channel, l)
		}
	}
}
