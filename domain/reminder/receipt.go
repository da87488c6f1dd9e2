package reminder

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
)

// ReceiptHead is the part of a receipt before its rows.
type ReceiptHead struct {
	Slot
	ShopNumber int64
	// Kept is the balance per channel as the counters have it.
	Kept [delivery.Channels]delivery.Counts
}

// ReceiptRow is the outcome of one recipient on one channel.
type ReceiptRow struct {
	UserID   user.ID
	Channel  delivery.Channel
	Outcome  delivery.Outcome
	Reason   string // one of the delivery.Reason… keys, or empty
	Attempts int
	At       time.Time // when the outcome was recorded; zero while in flight
	// Reported is the status that the provider reported for a sent message later; empty = no
	// report.
	Reported feedback.Status
}

// ReceiptWriter writes the receipt of one slot: lines that end in a line feed, with fields
// separated by commas. Fields contain no commas, quotes or line feeds. Lines that begin with #
// are about the slot. The last line is "# sha256," and the hex digest of all bytes before that
// line.
type ReceiptWriter struct {
	to      io.Writer
	digest  io.Writer
	sum     func() []byte
	line    []byte
	counted [delivery.Channels]delivery.Counts
	// reported are parts of counted.Sent.
	reported [delivery.Channels]feedback.Tally
}

// NewReceiptWriter returns a writer onto w. Every line is one Write.
func NewReceiptWriter(w io.Writer) *ReceiptWriter {
	h := sha256.New()
	return &ReceiptWriter{to: w, digest: h, sum: func() []byte { return h.Sum(nil) }}
}

// Head writes the lines before the rows.
func (r *ReceiptWriter) Head(h ReceiptHead) error {
	for _, f := range [][2]string{
		{"template", strconv.FormatInt(h.TemplateID, 10)},
		{"slot", strconv.Itoa(int(h.Slot.Slot))},
		{"minutes_before_opening", strconv.Itoa(h.Slot.Slot.Minutes())},
		{"round", strconv.Itoa(h.Round)},
		{"opens_at", instant(h.OpensAt)},
		{"planned_due", instant(h.DueAt)},
		{"fired_at", optional(h.FiredAt)},
		{"cut_at", optional(h.CutAt)},
		{"finished_at", optional(h.FinishedAt)},
		{"state", string(h.State)},
		{"stop_reason", h.StopReason},
	} {
		if err := r.write("# " + f[0] + "," + f[1] + "\n"); err != nil {
			return err
		}
	}
	if err := r.balance("balance", h.Kept); err != nil {
		return err
	}
	return r.write("user_id,channel,outcome,reason,attempts,recorded_at,reported\n")
}

// Row writes one recipient.
func (r *ReceiptWriter) Row(row ReceiptRow) error {
	count(&r.counted[row.Channel], row.Outcome)
	r.reported[row.Channel].Count(row.Reported)
	b := strconv.AppendInt(r.line[:0], int64(row.UserID), 10)
	b = append(append(append(b, ','), row.Channel.String()...), ',')
	b = append(append(append(b, row.Outcome...), ','), row.Reason...)
	b = append(strconv.AppendInt(append(b, ','), int64(row.Attempts), 10), ',')
	if !row.At.IsZero() {
		b = row.At.UTC().AppendFormat(b, time.RFC3339Nano)
	}
	r.line = append(append(append(b, ','), row.Reported...), '\n')
	return r.writeLine()
}

// Close writes the sums of the rows, in the form of the head, and the digest. It does not close
// the underlying writer.
func (r *ReceiptWriter) Close() error {
	if err := r.balance("counted", r.counted); err != nil {
		return err
	}
	for i, t := range r.reported {
		if !t.Any() {
			continue
		}
		if err := r.write(fmt.Sprintf("# reported,%s,delivered=%d,bounced=%d,complained=%d\n", delivery.Channel(i), t.Delivered, t.Bounced, t.Complained)); err != nil {
			return err
		}
	}
	_, err := io.WriteString(r.to, "# sha256,"+hex.EncodeToString(r.sum())+"\n")
	return err
}

// Counted returns the counts of the rows so far per channel.
func (r *ReceiptWriter) Counted() [delivery.Channels]delivery.Counts { return r.counted }

func (r *ReceiptWriter) balance(name string, all [delivery.Channels]delivery.Counts) error {
	for i, c := range all {
		if c == (delivery.Counts{}) {
			continue
		}
		if err := r.write(fmt.Sprintf("# %s,%s,reserved=%d,sent=%d,skipped=%d,expired=%d,dead=%d,in_flight=%d\n", name,
			delivery.Channel(i), c.Reserved, c.Sent, c.Skipped, c.Expired, c.Dead, c.InFlight)); err != nil {
			return err
		}
	}
	return nil
}

func (r *ReceiptWriter) write(line string) error {
	r.line = append(r.line[:0], line...)
	return r.writeLine()
}

func (r *ReceiptWriter) writeLine() error {
	if _, err := r.digest.Write(r.line); err != nil {
		return err
	}
	_, err := r.to.Write(r.line)
	return err
}

// count adds one recipient to the balance.
func count(c *delivery.Counts, o delivery.Outcome) {
	c.Reserved++
	switch o {
	case delivery.Sent, delivery.Recovered:
		c.Sent++
	case delivery.Skipped:
		c.Skipped++
	case delivery.Expired:
		c.Expired++
	case delivery.Dead, delivery.Discarded:
		c.Dead++
	default:
		c.InFlight++
	}
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func optional(t *time.Time) string {
	if t == nil {
		return ""
	}
	return instant(*t)
}
