package past

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5/pgtype"

	"dropbell/domain/delivery"
	"dropbell/domain/template"
)

// batchSize is the most recipients of a batch.
const batchSize = 1000

// An outcome is what became of one message when it was not sent at the first attempt, or what
// the provider reported.
type outcome struct {
	kind                  delivery.Outcome
	reason, detail, cause string
	attempts              int
	provider              int64
	report                string // delivered, bounced, complained; "" = none
}

// sending is a message to many users: the reminder of a slot or a campaign.
type sending struct {
	kind     delivery.Kind
	owner    int64
	channel  delivery.Channel
	due      time.Time
	deadline time.Time
	users    []int64
	outcome  func(user int64) outcome
}

// outbound collects the rows of sendings.
type outbound struct {
	*made
	batches, exceptions, feedback, reports *table
	list                                   []*batch
}

// batch is one batch and the outcomes of its recipients.
type batch struct {
	sending
	users                        []int64
	counts                       delivery.Counts
	sent                         *roaring64.Bitmap
	exceptions                   map[int64]outcome
	delivered, bounced, complain *roaring64.Bitmap
	finished                     time.Time
	step                         int
}

func (d *made) outbound() *outbound {
	return &outbound{made: d,
		batches: &table{name: "batches", columns: []string{"id", "kind", "owner_id", "template_id", "channel", "from_user", "to_user", "state", "due_at", "worthless_after",
			"next_run_at", "enqueued_at", "runs", "due", "sent", "due_count", "sent_count", "skipped_count", "expired_count", "dead_count", "created_at",
			"started_at", "finished_at", "late"}},
		exceptions: &table{name: "exceptions", columns: []string{"batch_id", "user_id", "channel", "outcome", "reason", "detail", "fingerprint", "attempts", "first_at", "last_at", "provider_id"}},
		feedback: &table{name: "batch_feedback", columns: []string{"batch_id", "kind", "owner_id", "channel", "delivered", "bounced", "complained",
			"delivered_count", "bounced_count", "complained_count"}},
		reports: &table{name: "feedback_reports", columns: []string{"batch_id", "user_id", "status", "provider", "cause", "happened_at", "reported_at"}},
	}
}

// pace is how long a channel takes for its first message, and how many a second follow.
var pace = [delivery.Channels]struct {
	first time.Duration
	rate  float64
}{
	delivery.App: {90 * time.Millisecond, 9000}, delivery.Email: {1200 * time.Millisecond, 90}, delivery.SMS: {700 * time.Millisecond, 60},
	delivery.Webhook: {260 * time.Millisecond, 200}, delivery.WebPush: {420 * time.Millisecond, 300},
}

// follows is the share of sent reminders whose link is followed.
var follows = [delivery.Channels]float64{delivery.App: .46, delivery.Email: .27, delivery.SMS: .31, delivery.WebPush: .38}

// send delivers a message in batches.
func (o *outbound) send(s sending) (list []*batch) {
	slices.Sort(s.users)
	for part := range slices.Chunk(s.users, batchSize) {
		b := &batch{sending: s, users: part, sent: roaring64.New(), exceptions: map[int64]outcome{},
			delivered: roaring64.New(), bounced: roaring64.New(), complain: roaring64.New()}
		for _, u := range part {
			b.take(u, s.outcome(u))
		}
		p := pace[s.channel]
		took := p.first + time.Duration(float64(b.counts.Sent)/p.rate*float64(time.Second)) + time.Duration(o.r.IntN(300))*time.Millisecond
		b.finished = s.due.Add(took)
		b.step = sort.Search(len(delivery.LatenessBounds()), func(i int) bool { return delivery.LatenessBounds()[i] > took })
		list = append(list, b)
	}
	o.list = append(o.list, list...)
	return list
}

// take counts the outcome of a user.
func (b *batch) take(user int64, is outcome) {
	id := uint64(user)
	b.counts.Reserved++
	if is.kind != "" {
		b.exceptions[user] = is
	}
	switch is.kind {
	case delivery.Skipped:
		b.counts.Skipped++
		return
	case delivery.Expired:
		b.counts.Expired++
		return
	case delivery.Dead:
		b.counts.Dead++
		return
	}
	b.counts.Sent++
	b.sent.Add(id)
	switch is.report {
	case "bounced":
		b.bounced.Add(id)
	case "complained":
		b.complain.Add(id)
		b.delivered.Add(id)
	case "delivered":
		b.delivered.Add(id)
	}
}

// set returns the stored form of a set; an empty one is null.
func set(s *roaring64.Bitmap) ([]byte, error) {
	if s.IsEmpty() {
		return nil, nil
	}
	s.RunOptimize()
	return s.ToBytes()
}

// store stores the batches with the outcomes and the reports.
func (o *outbound) store(ctx context.Context) error {
	ids, err := nextIDs(ctx, o.tx, "batches", len(o.list))
	if err != nil {
		return err
	}
	for i, b := range o.list {
		if err := o.rows(ids[i], b); err != nil {
			return err
		}
	}
	return store(ctx, o.tx, o.batches, o.exceptions, o.feedback, o.reports)
}

func (o *outbound) rows(id int64, b *batch) error {
	due, err := set(setOf(b.users))
	if err != nil {
		return err
	}
	sent, err := set(b.sent)
	if err != nil {
		return err
	}
	var late any
	if b.counts.Sent > 0 {
		late = pgtype.Array[int32]{Elements: []int32{int32(b.counts.Sent)}, Dims: []pgtype.ArrayDimension{{Length: 1, LowerBound: int32(b.step)}}, Valid: true}
	}
	begun := b.due.Add(20 * time.Millisecond)
	o.batches.add(id, string(b.kind), b.owner, o.id, int16(b.channel), b.users[0], b.users[len(b.users)-1], "done", b.due, b.deadline, b.due, begun, int32(1), due, sent,
		int32(b.counts.Reserved), int32(b.counts.Sent), int32(b.counts.Skipped), int32(b.counts.Expired), int32(b.counts.Dead), b.due, begun, b.finished, late)
	for _, user := range slices.Sorted(maps.Keys(b.exceptions)) {
		e := b.exceptions[user]
		o.exceptions.add(id, user, int16(b.channel), string(e.kind), e.reason, e.detail, e.detail, int32(e.attempts), begun, b.finished, e.provider)
	}
	return o.reported(id, b)
}

// reported adds what the provider of e-mail or SMS reported.
func (o *outbound) reported(id int64, b *batch) (err error) {
	if b.delivered.IsEmpty() && b.bounced.IsEmpty() {
		return nil
	}
	var sets [3][]byte
	for i, s := range []*roaring64.Bitmap{b.delivered, b.bounced, b.complain} {
		if sets[i], err = set(s); err != nil {
			return err
		}
	}
	o.feedback.add(id, string(b.kind), b.owner, int16(b.channel), sets[0], sets[1], sets[2],
		int32(b.delivered.GetCardinality()), int32(b.bounced.GetCardinality()), int32(b.complain.GetCardinality()))
	provider := map[delivery.Channel]string{delivery.Email: "ses", delivery.SMS: "twilio"}[b.channel]
	for status, s := range map[string]*roaring64.Bitmap{"bounced": b.bounced, "complained": b.complain} {
		for it := s.Iterator(); it.HasNext(); {
			user := it.Next()
			o.reports.add(id, int64(user), status, provider, cmp.Or(b.cause(int64(user)), "abuse report"), b.finished.Add(40*time.Second), b.finished.Add(time.Minute))
		}
	}
	slices.SortFunc(o.reports.rows, func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[0].(int64), b[0].(int64)), cmp.Compare(a[1].(int64), b[1].(int64)))
	})
	return nil
}

func (b *batch) cause(user int64) string {
	if is := b.outcome(user); is.report == "bounced" {
		return is.cause
	}
	return ""
}

func setOf(users []int64) *roaring64.Bitmap {
	s := roaring64.New()
	for _, u := range users {
		s.Add(uint64(u))
	}
	return s
}

// outcomeOf returns the outcome of a message of the drop on a channel: the same for the same user
// each time it is asked for.
func (d *made) outcomeOf(c delivery.Channel, slot template.Slot, p person) outcome {
	r := random(d.Key + c.String() + idText(int64(slot)) + idText(p.id))
	if p.optOuts>>c&1 != 0 {
		return outcome{kind: delivery.Skipped, reason: delivery.ReasonOptedOut}
	}
	if c == delivery.Email && d.suppressedBy(p, d.OpensAt) {
		return outcome{kind: delivery.Skipped, reason: delivery.ReasonSuppressed}
	}
	chance := r.Float64()
	if d.Failing != nil && *d.Failing == c && slot <= 6 {
		if is, ok := d.trouble(c, slot, chance); ok {
			return is
		}
	}
	switch {
	case c == delivery.SMS && chance < .004:
		return outcome{kind: delivery.Dead, reason: delivery.ReasonRefused, detail: "twilio 21211: the number is not a valid phone number", attempts: 1}
	case c == delivery.WebPush && chance < .01:
		return outcome{kind: delivery.Dead, reason: delivery.ReasonRefused, detail: "fcm UNREGISTERED: the app was removed", attempts: 1}
	case c == delivery.Webhook && chance < .03:
		return outcome{kind: delivery.Recovered, reason: delivery.ReasonProvider, detail: "HTTP 502", attempts: 2}
	case c != delivery.App && chance > .99:
		return outcome{kind: delivery.Recovered, reason: delivery.ReasonThrottled, detail: "HTTP 429: slow down", attempts: 2, report: reported(c)}
	case c == delivery.Email && chance < .012, c == delivery.SMS && chance < .02:
		return outcome{report: "bounced", cause: map[delivery.Channel]string{delivery.Email: "552 5.2.2 mailbox full", delivery.SMS: "30005: unknown handset"}[c]}
	case c == delivery.Email && chance < .0135:
		return outcome{report: "complained"}
	case chance > .95:
		return outcome{} // no report came
	}
	return outcome{report: reported(c)}
}

// reported is the report of a channel whose providers report.
func reported(c delivery.Channel) string {
	if c == delivery.Email || c == delivery.SMS {
		return "delivered"
	}
	return ""
}

// trouble is the outcome while the channel's provider fails.
func (d *made) trouble(c delivery.Channel, slot template.Slot, chance float64) (outcome, bool) {
	switch {
	case c == delivery.SMS && chance < .34:
		return outcome{kind: delivery.Dead, reason: delivery.ReasonTooManyTries, detail: "HTTP 503: gateway unavailable", attempts: 5, provider: d.failing}, true
	case c == delivery.SMS && chance < .62:
		return outcome{kind: delivery.Recovered, reason: delivery.ReasonProvider, detail: "HTTP 503: gateway unavailable", attempts: 3, report: "delivered"}, true
	case c == delivery.Email && slot == 1 && chance < .22:
		return outcome{kind: delivery.Expired, reason: delivery.ReasonDeadline, detail: "421 4.7.0 try again later", attempts: 3}, true
	case c == delivery.Email && chance < .4:
		return outcome{kind: delivery.Recovered, reason: delivery.ReasonThrottled, detail: "421 4.7.0 try again later", attempts: 2, report: "delivered"}, true
	}
	return outcome{}, false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// suppressedBy reports whether nothing is sent to the person's mail address at that instant.
func (h *history) suppressedBy(p person, at time.Time) bool {
	since, ok := h.suppressedSince(p)
	return ok && !since.After(at)
}
