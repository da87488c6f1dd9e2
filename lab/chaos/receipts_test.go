package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// A receiptPlan says how much is sent by providers that report, and what goes wrong.
type receiptPlan struct {
	users          int // each is reminded by SMS and by mail
	workerKills    int
	texts, letters map[fault]int
	// every is the greatest number of SMS calls between two faults. It is smaller for a provider
	// that takes many messages in a call.
	every int
}

var shortReceipts = receiptPlan{
	users: 150, workerKills: 1, every: 8,
	texts:   map[fault]int{refuse: 2, throttle: 2, dropBefore: 1, dropAfter: 2, hang: 1, late: 1},
	letters: map[fault]int{refuse: 2, dropBefore: 1, dropAfter: 2},
}

// TestReceiptsShort sends a drop through providers of SMS and mail that fail in every way and
// report the fate of each message. Reports come twice, in any order, some before the provider's
// answer to the call that sent the message. Some reports are forged or name no message. Workers
// are killed while they send, and web while it takes reports. Each user is reached, twice only
// if the first answer was lost. Each message has the outcome of its highest report. The balance
// sheet with its columns about reports has no difference.
func TestReceiptsShort(t *testing.T) {
	t.Parallel()
	runReceipts(t, "twilio", "postmark", shortReceipts)
}

// reportedChannels are the channels that users reserve.
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

// runReceipts sends by the providers of these names.
func runReceipts(t *testing.T, sms, mail string, plan receiptPlan) {
	w := &system{size: &size{patience: 30 * time.Second}, t: t, ctx: t.Context(), seed: seed(t), start: time.Now()}
	w.startServers()
	r := &receiptRun{system: w, plan: plan, client: &http.Client{Timeout: 5 * time.Second}}
	r.providers = startReporters(t, sms, mail, newDeck(w.random(1), plan.every, plan.texts), newDeck(w.random(2), 8, plan.letters))
	r.providers.early = r.arrived
	w.fleet = launch(w.ctx, &fleet{t: t, stack: w.stack, providers: r.providers.env}, 1, 2)
	w.crowd = &crowd{newClient(t, w.fleet, w.patience), &ledger{fates: map[reservation]reservationState{}}, w.random(3)}
	users := make([]int64, plan.users)
	for i := range users {
		users[i] = 2_000_001 + int64(i)
	}
	d := r.book(users)
	r.send(d)
	r.postAll()
	r.matched()
	r.account(d, users)
}

// book has every user reserve both channels, and makes the drop due soon.
func (r *receiptRun) book(users []int64) *drop {
	r.crowd.tell(r.ctx, users)
	if _, err := r.stack.SQL.Exec(r.ctx, `update users set phone = $1 || id, locale = case when id % 2 = 0 then 'en' else 'zh-CN' end`, r.providers.sms.prefix); err != nil {
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

// send waits until the drop is sent; workers are killed on the way.
func (r *receiptRun) send(d *drop) {
	r.killSenders(r.plan.workerKills, 2*r.plan.users, r.providers.all)
	r.settled(d, 4*time.Minute)
	r.say("everything is sent: %d messages at the providers", len(r.providers.all()))
}

// fate returns the statuses that are reported of a user's message, whichever of its repetitions
// is reported. The highest status counts. A provider that does not report has none.
func (r *receiptRun) fate(c delivery.Channel, user int64) []feedback.Status {
	if r.providers.of(c).report == nil {
		return nil
	}
	switch user % 10 {
	case 0:
		// A mail is not repeated if its bounce is reported before the answer and the answer is
		// lost: its address is suppressed by then.
		if c == delivery.Email && !early(user) {
			return []feedback.Status{feedback.Bounced}
		}
		return []feedback.Status{feedback.Delivered, feedback.Bounced}
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

// early says of which users the first report comes before the provider's answer.
func early(user int64) bool { return user%3 == 0 }

// arrived plans the reports of a message: each report twice, now and then a forged report, and
// now and then a report that names no message. The first report of every third message is taken
// before the provider answers the call that sent the message.
func (r *receiptRun) arrived(a *arrival) {
	var list []func() *http.Request
	for _, s := range r.fate(a.channel, a.user) {
		report := r.report(*a, s)
		list = append(list, report, report)
	}
	if len(list) == 0 {
		return
	}
	if a.user%7 == 0 {
		list = append(list, r.unknown(*a))
		r.forge(*a)
	}
	if early(a.user) {
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
	return func() *http.Request { return r.providers.of(a.channel).report(a, s, false) }
}

// unknown is a report that is signed and names no message of ours.
func (r *receiptRun) unknown(a arrival) func() *http.Request {
	a.key = r.providers.of(a.channel).foreignKey
	a.user += 5_000_000
	return r.report(a, feedback.Bounced)
}

// forge reports a message as bounced without the provider's signature. The report is refused,
// and so are further calls from its address for a while. While web has too many concurrent
// calls, it also refuses reports unread.
func (r *receiptRun) forge(a arrival) {
	switch status := r.once(r.ctx, r.providers.of(a.channel).report(a, feedback.Bounced, true)); status {
	case 0, http.StatusServiceUnavailable:
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		r.forged.Add(1)
	default:
		r.t.Errorf("a forged report of %s got the answer %d", a.channel, status)
	}
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
				q := report()
				r.post(r.ctx, q)
				if rand.IntN(4) == 0 { // and once more, the same call
					r.post(r.ctx, q)
				}
			}
		})
	}
	all.Wait()
}

// matched returns once the reports that came before the answer naming their message are matched
// and stored.
func (r *receiptRun) matched() {
	for limit := time.Now().Add(time.Minute); ; wait(50*time.Millisecond, r.ctx.Done()) {
		var n int
		if err := r.stack.SQL.QueryRow(r.ctx, `select count(*) from sms_early join sms_serials using (provider, serial)`).Scan(&n); err != nil {
			r.t.Fatal(err)
		}
		if n == 0 {
			return
		}
		if time.Now().After(limit) {
			r.t.Fatalf("%d reports are not stored, although their messages are known", n)
		}
	}
}

// account compares the users' messages and the providers' reports with the stored statuses.
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
				if a.call != list[i+1].call {
					r.t.Errorf("%s: user %d was reached twice, under the keys %q and %q", c, u, a.call, list[i+1].call)
				}
				if a.answer == concealed {
					continue
				}
				if _, cause := r.cutOff(a, list[i+1]); cause != "" {
					r.t.Errorf("%s: user %d was reached twice, %s", c, u, cause)
				}
			}
		}
		tallies[c] = r.statuses(s, c, by)
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

// nameless reports whether the message's reports cannot be matched: they name the message by the
// provider's answer, and the worker was killed before it can have stored that name.
func (r *receiptRun) nameless(c delivery.Channel, list []arrival) bool {
	if c != delivery.SMS || !r.providers.sms.answerNames {
		return false
	}
	last := list[len(list)-1]
	at, killed := r.fleet.killedAt(last.worker)
	return killed && at.Sub(last.ended) < recordedWithin
}

// statuses checks that each message has the status of its highest report, and returns the sums.
// by has the messages of each user.
func (r *receiptRun) statuses(s sending, c delivery.Channel, by map[int64][]arrival) (sum feedback.Tally) {
	got := map[string]*roaring64.Bitmap{"delivered": roaring64.New(), "bounced": roaring64.New(), "complained": roaring64.New()}
	rows, err := r.stack.SQL.Query(r.ctx, `select coalesce(delivered, ''), coalesce(bounced, ''), coalesce(soft, ''), coalesce(complained, '') from batch_feedback
		where kind = 'reminder' and owner_id = $1 and channel = $2`, s.owner, c)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var delivered, bounced, soft, complained []byte
		if err := rows.Scan(&delivered, &bounced, &soft, &complained); err != nil {
			r.t.Fatal(err)
		}
		got["delivered"].Or(bitmap(r.t, delivered))
		got["bounced"].Or(bitmap(r.t, bounced))
		got["bounced"].Or(bitmap(r.t, soft)) // not delivered either
		got["complained"].Or(bitmap(r.t, complained))
	}
	unmatched := 0
	for u, list := range by {
		highest := feedback.Status("")
		for _, status := range r.fate(c, u) {
			if status.Replaces(highest) {
				highest = status
			}
		}
		want := map[string]bool{"delivered": highest == feedback.Delivered || highest == feedback.Complained, "bounced": highest == feedback.Bounced || highest == feedback.SoftBounced, "complained": highest == feedback.Complained}
		for name, is := range want {
			if is && !got[name].Contains(uint64(u)) && r.nameless(c, list) {
				unmatched++
				continue
			}
			if got[name].Contains(uint64(u)) != is {
				r.t.Errorf("%s: of user %d %q is reported, %s is stored as %v", c, u, highest, name, !is)
			}
		}
	}
	if unmatched > 0 {
		r.say("%s: reports of %d messages were never matched: a worker was killed while it stored their names", c, unmatched)
	}
	return feedback.Tally{Delivered: int64(got["delivered"].GetCardinality()), Bounced: int64(got["bounced"].GetCardinality()), Complained: int64(got["complained"].GetCardinality())}
}
