package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/sms/smstest"
	"dropbell/domain/delivery"
	"dropbell/domain/feedback"
)

// A receiptPlan says how much is sent by providers that report, and what goes wrong.
type receiptPlan struct {
	users          int // each is reminded by SMS and by mail
	workerKills    int
	texts, letters map[fault]int
}

var shortReceipts = receiptPlan{
	users: 150, workerKills: 1,
	texts:   map[fault]int{refuse: 2, throttle: 2, dropBefore: 1, dropAfter: 2, hang: 1, late: 1},
	letters: map[fault]int{refuse: 2, dropBefore: 1, dropAfter: 2},
}

// TestReceiptsShort sends a drop by providers of SMS and mail that fail in every way
// and report what became of each message: twice, in any order, some before their answer
// to the call that sent it, and among them reports that are forged or name no message.
// Workers are killed while they send, and web while it takes reports. Each user is
// reached, twice only where the first answer was lost; each message has the outcome of
// its highest report; and the balance sheet with its columns about reports has no
// difference.
func TestReceiptsShort(t *testing.T) { runReceipts(t, shortReceipts) }

// reportedChannels are those whose providers report.
var reportedChannels = []delivery.Channel{delivery.SMS, delivery.Email}

// A receiptRun is one drop that is sent and reported.
type receiptRun struct {
	*system
	plan      receiptPlan
	providers *reporters
	client    *http.Client

	backMu  sync.Mutex
	backlog []func() *http.Request // reports that are to be posted
	posted  atomic.Int64
	early   atomic.Int64 // of them before the answer
	forged  atomic.Int64
}

func runReceipts(t *testing.T, plan receiptPlan) {
	w := &system{size: &size{patience: 30 * time.Second}, t: t, ctx: t.Context(), seed: seed(t), start: time.Now()}
	w.startServers()
	r := &receiptRun{system: w, plan: plan, client: &http.Client{Timeout: 5 * time.Second}}
	r.providers = startReporters(t, newDeck(w.random(1), 8, plan.texts), newDeck(w.random(2), 8, plan.letters))
	r.providers.early = r.arrived
	bins, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	w.fleet = &fleet{t: t, stack: w.stack, bins: bins, providers: r.providers.env}
	w.fleet.run(w.ctx, 1, 2)
	w.crowd = &crowd{newClient(t, w.fleet, w.patience), &ledger{fates: map[reservation]reservationState{}}, w.random(3)}
	users := make([]int64, plan.users)
	for i := range users {
		users[i] = 2_000_001 + int64(i)
	}
	d := r.book(users)
	r.send(d)
	r.postAll()
	r.account(d, users)
}

// book has every user reserve both channels, and makes the drop due soon.
func (r *receiptRun) book(users []int64) *drop {
	r.crowd.tell(r.ctx, users)
	if _, err := r.stack.SQL.Exec(r.ctx, `update users set phone = $1 || id`, phonePrefix); err != nil {
		r.t.Fatal(err)
	}
	d := r.crowd.publish(r.ctx, "Receipts", 24*time.Hour)
	for chunk := range slices.Chunk(users, callers) {
		var all sync.WaitGroup
		for _, u := range chunk {
			all.Go(func() { r.crowd.reserve(r.ctx, d, u, reportedChannels...) })
		}
		all.Wait()
	}
	r.providers.texts.open.Store(true)
	r.providers.letters.open.Store(true)
	r.crowd.move(r.ctx, d, time.Now().Add(3*time.Second).Truncate(time.Second))
	return d
}

// send waits until the drop is sent; workers are killed on the way, each after its share
// of the messages has arrived.
func (r *receiptRun) send(d *drop) {
	step := 2 * r.plan.users / (r.plan.workerKills + 2)
	for i := range r.plan.workerKills {
		for limit := time.Now().Add(time.Minute); len(r.providers.all()) < (i+1)*step; wait(2*time.Millisecond, r.ctx.Done()) {
			if time.Now().After(limit) {
				r.t.Fatalf("only %d messages have arrived", len(r.providers.all()))
			}
		}
		list := r.providers.all()
		m := r.fleet.memberOf(list[len(list)-1].worker) // which is sending
		if name, ok := r.fleet.kill(m); ok {
			r.say("killed %s after %d messages", name, len(list))
			r.fleet.start(m)
		}
	}
	r.settled(d, 4*time.Minute)
	r.say("everything is sent: %d messages at the providers", len(r.providers.all()))
}

// fate is what becomes of a user's message, whichever of its repetitions is reported:
// the reports of it, of which the highest counts.
func fate(c delivery.Channel, user int64) []feedback.Status {
	switch user % 10 {
	case 0:
		return []feedback.Status{feedback.Delivered, feedback.Bounced}[c%2:]
	case 1:
		return []feedback.Status{feedback.SoftBounced, feedback.Delivered}
	case 2:
		return []feedback.Status{feedback.SoftBounced}
	case 3:
		if c == delivery.Email { // no provider of SMS reports complaints
			return []feedback.Status{feedback.Delivered, feedback.Complained}
		}
	}
	return []feedback.Status{feedback.Delivered}
}

// arrived plans the reports of a message: each twice, now and then one that is forged,
// and one that names no message. Of every third message the first report is taken before
// the provider answers the call that sent it.
func (r *receiptRun) arrived(a *arrival) {
	var list []func() *http.Request
	for _, s := range fate(a.channel, a.user) {
		report := r.report(*a, s)
		list = append(list, report, report)
	}
	if a.user%7 == 0 {
		list = append(list, r.unknown(*a))
		r.forge(*a)
	}
	if a.user%3 == 0 {
		r.post(r.ctx, list[0]())
		r.early.Add(1)
		list = list[1:]
	}
	r.backMu.Lock()
	defer r.backMu.Unlock()
	r.backlog = append(r.backlog, list...)
}

// report returns the provider's report of a message.
func (r *receiptRun) report(a arrival, s feedback.Status) func() *http.Request {
	if a.channel == delivery.SMS {
		status, code := map[feedback.Status]string{feedback.Delivered: "delivered", feedback.Bounced: "failed", feedback.SoftBounced: "undelivered"}[s],
			map[feedback.Status]string{feedback.Bounced: "30005", feedback.SoftBounced: "30003"}[s]
		return func() *http.Request {
			return r.providers.twilio.Receipt(smstest.Sent{To: fmt.Sprintf("%s%d", phonePrefix, a.user), ID: "SM1", Callback: a.key}, status, code)
		}
	}
	body := map[string]any{"Email": fmt.Sprintf("u%d@example.com", a.user), "Metadata": map[string]string{"dropbell": a.key}}
	switch s {
	case feedback.Delivered:
		body["RecordType"], body["Recipient"] = "Delivery", body["Email"]
	case feedback.Complained:
		body["RecordType"] = "SpamComplaint"
	case feedback.Bounced:
		body["RecordType"], body["Type"] = "Bounce", "HardBounce"
	case feedback.SoftBounced:
		body["RecordType"], body["Type"] = "Bounce", "SoftBounce"
	}
	raw, err := json.Marshal(body)
	if err != nil {
		r.t.Error(err)
	}
	return func() *http.Request {
		q, _ := http.NewRequest(http.MethodPost, publicURL+"/callbacks/postmark?token="+url.QueryEscape(postmarkSecret), bytes.NewReader(raw))
		q.Header.Set("Content-Type", "application/json")
		return q
	}
}

// unknown is a report that is signed and names no message of ours.
func (r *receiptRun) unknown(a arrival) func() *http.Request {
	if a.channel == delivery.SMS {
		a.key = publicURL + "/callbacks/twilio?ref=0123456789abcdef"
	} else {
		a.key = "0123456789abcdef"
	}
	a.user += 5_000_000
	return r.report(a, feedback.Bounced)
}

// forge says of a message that it bounced, without the provider's signature: it is
// refused.
func (r *receiptRun) forge(a arrival) {
	q := r.report(a, feedback.Bounced)()
	q.Header.Set("X-Twilio-Signature", "Zm9yZ2Vk")
	q.URL.RawQuery = strings.ReplaceAll(q.URL.RawQuery, postmarkSecret, "a-guess-of-the-secret")
	if status := r.once(r.ctx, q); status != 0 && status != http.StatusUnauthorized && status != http.StatusForbidden {
		r.t.Errorf("a forged report of %s got the answer %d", a.channel, status)
	}
	r.forged.Add(1)
}

// once posts to web and returns the status; 0 without an answer.
func (r *receiptRun) once(ctx context.Context, q *http.Request) int {
	q = q.Clone(ctx)
	q.URL.Scheme, q.URL.Host = "http", r.fleet.webs[0].addr // the request still names the public host
	if q.GetBody != nil {
		q.Body, _ = q.GetBody()
	}
	a, err := r.client.Do(q)
	if err != nil {
		return 0
	}
	_ = a.Body.Close()
	return a.StatusCode
}

// post repeats the report until web has stored it, as providers do.
func (r *receiptRun) post(ctx context.Context, q *http.Request) {
	for limit := time.Now().Add(time.Minute); ; wait(100*time.Millisecond, ctx.Done()) {
		status := r.once(ctx, q)
		if status/100 == 2 {
			r.posted.Add(1)
			return
		}
		if status != 0 && status < 500 && status != http.StatusTooManyRequests || time.Now().After(limit) || ctx.Err() != nil {
			r.t.Errorf("a report got the answer %d", status)
			return
		}
	}
}

// postAll posts the backlog in another order, and kills web in the middle.
func (r *receiptRun) postAll() {
	rng := r.random(4)
	rng.Shuffle(len(r.backlog), func(i, j int) { r.backlog[i], r.backlog[j] = r.backlog[j], r.backlog[i] })
	half := int64(len(r.backlog) / 2)
	queue := make(chan func() *http.Request, len(r.backlog))
	for _, report := range r.backlog {
		queue <- report
	}
	close(queue)
	var begun atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for report := range queue {
				if begun.Add(1) == half {
					m := r.fleet.webs[0]
					if _, ok := r.fleet.kill(m); ok {
						r.fleet.start(m)
					}
				}
				r.post(r.ctx, report())
				if rand.IntN(4) == 0 { // and once more
					r.post(r.ctx, report())
				}
			}
		})
	}
	all.Wait()
}

// account compares what users got and providers reported with what is stored.
func (r *receiptRun) account(d *drop, users []int64) {
	s, arrivals := d.sending(), r.providers.all()
	tallies := map[delivery.Channel]feedback.Tally{}
	again, lost := 0, 0
	for _, c := range reportedChannels {
		l := r.read(s, c)
		if n := l.due.GetCardinality(); n != uint64(len(users)) || l.sent.GetCardinality() != n || len(l.cause)+len(l.other) > 0 {
			r.t.Errorf("%s: %d due, %d sent, %d expired, others %s", c, n, l.sent.GetCardinality(), len(l.cause), why(l.other))
		}
		by := map[int64][]arrival{}
		for _, a := range arrivals {
			if a.channel == c {
				by[a.user] = append(by[a.user], a)
			}
		}
		for _, u := range users {
			list := by[u]
			if len(list) == 0 {
				lost++
				r.t.Errorf("%s: user %d was not reached", c, u)
				continue
			}
			for i, a := range list[:len(list)-1] {
				again++
				if a.answer == concealed {
					continue
				}
				if _, cause := r.cutOff(a, list[i+1]); cause != "" {
					r.t.Errorf("%s: user %d was reached twice, %s", c, u, cause)
				}
			}
		}
		tallies[c] = r.statuses(s, c, users)
	}
	lines, err := dropsdb.NewBoards(r.stack.DB).Balance(r.ctx, d.id)
	if err != nil || len(lines) == 0 {
		r.t.Fatalf("%d lines, %v", len(lines), err)
	}
	for _, l := range lines {
		if want := tallies[l.Channel]; l.Difference() != 0 || l.Twice != 0 || l.Counted.InFlight != 0 || l.Slot.ID == s.owner && l.Reported != want {
			r.t.Errorf("%s does not balance: %+v, reported should be %+v", l.Channel, l, want)
		}
	}
	for name, deck := range map[string]*faultDeck{"SMS": r.providers.texts, "mail": r.providers.letters} {
		if left := deck.left(); len(left) > 0 {
			r.t.Errorf("the provider of %s never did: %v", name, left)
		}
	}
	if r.fleet.kills("worker") < r.plan.workerKills || r.fleet.kills("web") == 0 || r.early.Load() == 0 || r.forged.Load() == 0 {
		r.t.Errorf("%d workers and %d web killed, %d early reports, %d forged", r.fleet.kills("worker"), r.fleet.kills("web"), r.early.Load(), r.forged.Load())
	}
	r.say("seed %d\n%s", r.seed, table("messages accounted for", len(reportedChannels)*len(users), "missed", lost, "messages at the providers", len(arrivals),
		"  repeated, each with its cause", again, "reports taken", r.posted.Load(), "  before the answer", r.early.Load(), "reports refused, forged", r.forged.Load(),
		"kill -9 of workers", r.fleet.kills("worker"), "kill -9 of web", r.fleet.kills("web"),
		"SMS delivered, bounced", fmt.Sprint(tallies[delivery.SMS].Delivered, ", ", tallies[delivery.SMS].Bounced),
		"mails delivered, bounced, complained of", fmt.Sprint(tallies[delivery.Email].Delivered, ", ", tallies[delivery.Email].Bounced, ", ", tallies[delivery.Email].Complained)))
}

// statuses checks that each message has the status of its highest report, and returns
// the sums.
func (r *receiptRun) statuses(s sending, c delivery.Channel, users []int64) (sum feedback.Tally) {
	got := map[string]*roaring64.Bitmap{"delivered": roaring64.New(), "bounced": roaring64.New(), "complained": roaring64.New()}
	rows, err := r.stack.SQL.Query(r.ctx, `select coalesce(delivered, ''), coalesce(bounced, ''), coalesce(complained, '') from batch_feedback
		where kind = 'reminder' and owner_id = $1 and channel = $2`, s.owner, c)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var delivered, bounced, complained []byte
		if err := rows.Scan(&delivered, &bounced, &complained); err != nil {
			r.t.Fatal(err)
		}
		got["delivered"].Or(bitmap(r.t, delivered))
		got["bounced"].Or(bitmap(r.t, bounced))
		got["complained"].Or(bitmap(r.t, complained))
	}
	for _, u := range users {
		highest := feedback.Status("")
		for _, status := range fate(c, u) {
			if status.Replaces(highest) {
				highest = status
			}
		}
		want := map[string]bool{"delivered": highest == feedback.Delivered || highest == feedback.Complained, "bounced": highest == feedback.Bounced, "complained": highest == feedback.Complained}
		for name, is := range want {
			if got[name].Contains(uint64(u)) != is {
				r.t.Errorf("%s: of user %d %q is reported, %s is stored as %v", c, u, highest, name, !is)
			}
		}
	}
	return feedback.Tally{Delivered: int64(got["delivered"].GetCardinality()), Bounced: int64(got["bounced"].GetCardinality()), Complained: int64(got["complained"].GetCardinality())}
}
