package delivery

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/domain/user"
)

// patience is how long a chunk waits for admission while the run keeps its lease. If admission
// takes longer, the batch is released so that the worker can do other work.
const patience = 2 * time.Second

// lastCall is how long before the deadline the last call may begin, so that its messages arrive
// before the deadline.
const lastCall = 200 * time.Millisecond

// hangUp is how long before the deadline a call that is still in flight is cancelled: its sender
// may be handing over one message after the other.
const hangUp = lastCall / 2

// chunkResult holds the messages of one chunk, their results, and the recipients without a
// message.
type chunkResult struct {
	messages    []Message
	results     []Result
	unreachable []user.ID // no contact for the channel
	suppressed  []user.ID // the contact is one that nothing is sent to
	unverified  []user.ID // users whose number is to be verified first
	unmade      []unmade
	verdicts    []Screening
}

// unmade is a recipient whose message could not be made.
type unmade struct {
	id    user.ID
	cause Result
}

// calls is the bounded set of provider calls in flight for one run. results is closed after the
// last result.
//
// Every call needs a permit, which is released when the call's result has been recorded and not
// earlier. So while the database is away no further call begins, and if this process dies, only
// the calls in flight are repeated.
type calls struct {
	results chan chunkResult
	// permits is shared by all runs of a drain; taken is the number of permits that this run
	// holds.
	permits permits
	taken   atomic.Int64
	// unrecorded is the number of results collected since the last checkpoint. Only the goroutine
	// that owns the run uses it.
	unrecorded int
	known      []user.User  // ascending
	unstarted  atomic.Int64 // chunks that no caller has taken yet
	cancel     context.CancelFunc
	left       atomic.Int64 // chunks without a result
	wait       atomic.Int64 // nanoseconds to postpone the batch, 0 = not
}

// permits bounds the provider calls that are in flight or unrecorded.
type permits chan struct{}

func newPermits(n int) permits {
	p := make(permits, n)
	for range n {
		p <- struct{}{}
	}
	return p
}

// releasePermits releases the permits of the calls whose results have been recorded.
func (c *calls) releasePermits() {
	for ; c.unrecorded > 0; c.unrecorded-- {
		c.giveBackPermit()
	}
}

func (c *calls) giveBackPermit() {
	c.taken.Add(-1)
	c.permits <- struct{}{}
}

// awaitPermit waits for a permit to make a call.
func (c *calls) awaitPermit(ctx context.Context) bool {
	select {
	case <-c.permits:
		c.taken.Add(1)
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *calls) exhausted() bool          { return c.left.Load() == 0 }
func (c *calls) postponed() time.Duration { return time.Duration(c.wait.Load()) }

// start begins sending to the recipients in chunks of at most [run.chunkSize] messages. The
// returned function must be called; it waits for the calls in flight. The end of ctx and
// [calls.cancel] keep new chunks from starting. Calls in flight are left to finish, since
// cancelling them would leave their outcome unknown.
func (r *run) start(ctx context.Context, ready []user.ID, known []user.User) (*calls, func()) {
	window := r.batch.WorthlessAfter.Sub(r.clock())
	ctx, cancel := context.WithTimeout(ctx, window-lastCall)
	chunks := r.chunks(ready, known)
	r.refusals.among = ready
	r.waited = r.batch.paced() // now: checkpoints change the batch while chunks are made
	c := &calls{results: make(chan chunkResult, len(chunks)), cancel: cancel, known: known}
	c.left.Store(int64(len(chunks)))
	c.unstarted.Store(int64(len(chunks)))
	next := make(chan []user.ID, len(chunks))
	for _, chunk := range chunks {
		next <- chunk
	}
	close(next)
	var working sync.WaitGroup
	c.permits = r.permits
	for range min(len(chunks), cap(r.permits)) {
		working.Go(func() { r.work(ctx, c, next) })
	}
	go func() {
		working.Wait()
		close(c.results)
	}()
	return c, func() {
		cancel()
		working.Wait()
		for c.taken.Load() > 0 {
			c.giveBackPermit()
		}
	}
}

// chunks divides the recipients into chunks of one call each. A sender with several providers
// gets separate chunks for each provider.
func (r *run) chunks(ready []user.ID, known []user.User) (list [][]user.ID) {
	groups := [][]user.ID{ready}
	if s, ok := r.sender.(RoutedSender); ok {
		groups = s.Divide(&r.batch.Subject, ready, known)
	}
	for _, g := range groups {
		list = slices.AppendSeq(list, slices.Chunk(g, r.chunkSize()))
	}
	return list
}

// work sends chunks until there are none, the run is stopped or postponed.
func (r *run) work(ctx context.Context, c *calls, next <-chan []user.ID) {
	defer r.giveBack(c)
	for ids := range next {
		if !c.awaitPermit(ctx) || c.postponed() > 0 {
			return
		}
		chunk := r.addressed(ids, c.known)
		if !r.cleared(ctx, c, &chunk) {
			return
		}
		c.unstarted.Add(-1)
		if !r.hand(ctx, c, chunk) {
			return
		}
		c.left.Add(-1)
	}
}

// giveBack recovers from a panic of the guard or of the admission. The batch is released and is
// ready again after a second.
func (r *run) giveBack(c *calls) {
	if p := recover(); p != nil {
		r.reportCrash(crashed(p).Crash)
		c.wait.Store(int64(time.Second))
	}
}

// hand sends one chunk to the provider. A call that is refused as a whole is divided, see
// [run.isolate]. hand returns false if the run is stopped or postponed meanwhile.
func (r *run) hand(ctx context.Context, c *calls, chunk chunkResult) bool {
	chunk.results = r.call(ctx, chunk.messages)
	if refusedWhole(chunk.results) > 1 {
		return r.isolate(ctx, c, chunk)
	}
	r.report(ctx, chunk.results)
	c.results <- chunk
	return true
}

// cleared prepares one chunk's call. Admission comes before the screen, because the screen's
// actions, such as granting a coupon, must not be done for messages that may not be sent. If
// refusals and the screen leave no message, the admission is given back. A chunk without messages
// needs no admission. The lease is checked last, right before the call.
func (r *run) cleared(ctx context.Context, c *calls, chunk *chunkResult) bool {
	if len(chunk.messages) == 0 || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	load := r.load(len(chunk.messages))
	if !r.admitted(ctx, c, load) {
		return false
	}
	goOn := ctx.Err() == nil && r.keepBack(ctx, c, chunk) && r.before(ctx, c, chunk) && (len(chunk.messages) == 0 || r.holds(ctx, c))
	if !goOn || len(chunk.messages) == 0 {
		r.Admission.Unused(context.WithoutCancel(ctx), load)
	}
	return goOn
}

// load returns the load for which admission is requested.
func (r *run) load(messages int) Load {
	return Load{r.batch.Channel, messages, r.batch.Subject.Kind, r.batch.Owner, r.batch.Priority, r.batch.Subject.Place().Shop}
}

// chunkSize returns the most messages of a chunk: the sender's size, but if the owner has a rate,
// at most the messages of a fifth of a second, because a chunk is admitted as a whole.
func (r *run) chunkSize() int {
	size := r.sender.ChunkSize()
	if rate := r.batch.RatePerSecond; rate > 0 {
		size = min(size, max(1, rate/5))
	}
	return r.narrow.of(r.batch.ID, size)
}

// before calls the screen for the reachable recipients of one chunk, and removes the recipients
// that the screen keeps back. It returns false if the screen failed and no message may be sent
// yet.
func (r *run) before(ctx context.Context, c *calls, chunk *chunkResult) bool {
	if r.screening == nil || len(chunk.messages) == 0 {
		return true
	}
	ids := make([]user.ID, len(chunk.messages))
	for i, m := range chunk.messages {
		ids[i] = m.To.ID
	}
	verdicts, err := r.screening.Before(ctx, ids, r.clock())
	if err != nil {
		c.wait.Store(int64(time.Second))
		return false
	}
	if len(verdicts) > 0 {
		chunk.verdicts = append(chunk.verdicts, verdicts...)
		kept := make(map[user.ID]bool, len(verdicts))
		for _, v := range verdicts {
			kept[v.UserID] = true
		}
		chunk.messages = slices.DeleteFunc(chunk.messages, func(m Message) bool { return kept[m.To.ID] })
	}
	return true
}

// admitted waits for admission. It postpones the run and returns false if the wait would exceed
// [patience], or if the run has lasted for [runFor].
func (r *run) admitted(ctx context.Context, c *calls, l Load) bool {
	for {
		if r.tired() {
			c.wait.Store(int64(time.Millisecond))
			return false
		}
		wait, _ := r.Admission.Admit(ctx, l)
		if wait <= 0 {
			return true
		}
		if wait > patience {
			c.wait.Store(int64(wait))
			return false
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return false
		}
	}
}

// loadContacts reads, once per run, the addresses of the recipients.
func (r *run) loadContacts(ctx context.Context, ready []user.ID) (err error) {
	if r.batch.Channel == App || within(ready, r.batch.Asked) {
		return nil // in the app messages need no more than the id
	}
	// Mails greet by name; elsewhere only a text that staff wrote may contain names.
	named := r.batch.Channel == Email || r.render.names || r.Named != nil && r.Named(r.batch.Channel)
	if r.batch.Known, err = r.Store.Recipients(ctx, r.batch.Channel, ready, named); err != nil {
		return err
	}
	if err = r.loadConsents(ctx, ready); err == nil {
		r.batch.Asked = ready
	}
	return err
}

// call is one call of the provider, which has until shortly before the deadline.
func (r *run) call(ctx context.Context, messages []Message) []Result {
	if len(messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.batch.WorthlessAfter.Sub(r.clock())-hangUp)
	defer cancel()
	results := Attempt(ctx, r.sender, messages)
	for i := range results {
		r.reportCrash(results[i].Crash)
	}
	return results
}

// reportCrash logs a panic unless this run has logged the same one.
func (r *run) reportCrash(c *Crash) {
	if c == nil || r.Crashed == nil {
		return
	}
	if _, told := r.crashes.LoadOrStore(c.What, true); !told {
		r.Crashed(r.batch.Channel, *c)
	}
}

// gatherFor is how long a checkpoint waits for further results once all calls have begun. A
// checkpoint costs as much as delivering hundreds of messages to a quick provider. No call is
// delayed by this wait, and a crash repeats no more than the calls that were in flight at once.
const gatherFor = 20 * time.Millisecond

// collect makes one checkpoint of a chunk's results and of other chunks' results that are ready
// or arrive within [gatherFor].
func (r *run) collect(first chunkResult, calls *calls) (p Progress) {
	enough := time.NewTimer(gatherFor)
	defer enough.Stop()
	for c, ok := first, true; ok; c, ok = calls.another(enough.C) {
		r.add(&p, c)
		calls.unrecorded++
	}
	slices.Sort(p.Sent)
	return p
}

// another returns a result that is ready. If no chunk waits for a permit, it also waits for the
// next result until enough.
func (c *calls) another(enough <-chan time.Time) (result chunkResult, ok bool) {
	select {
	case result, ok = <-c.results:
		return result, ok
	default:
	}
	if c.unstarted.Load() > 0 || c.exhausted() {
		return result, false
	}
	select {
	case result, ok = <-c.results:
	case <-enough:
	}
	return result, ok
}

func (r *run) add(p *Progress, c chunkResult) {
	for _, id := range c.unreachable {
		p.Exceptions = append(p.Exceptions, r.skip(id, ReasonNoContact))
	}
	for _, id := range c.suppressed {
		p.Exceptions = append(p.Exceptions, r.skip(id, ReasonSuppressed))
	}
	for _, id := range c.unverified {
		p.Exceptions = append(p.Exceptions, r.skip(id, ReasonUnverified))
	}
	for _, v := range c.verdicts {
		p.Exceptions = append(p.Exceptions, r.apply(v))
	}
	for _, u := range c.unmade {
		p.Exceptions = append(p.Exceptions, r.failed(u.id, u.cause))
	}
	now := r.clock()
	for i, m := range c.messages {
		id := m.To.ID
		before, tried := r.batch.Exceptions[id]
		if c.results[i].ConsentUsed {
			p.ConsentsUsed = append(p.ConsentsUsed, id)
		}
		if c.results[i].Status != Delivered {
			p.Exceptions = append(p.Exceptions, r.failed(id, c.results[i]))
			continue
		}
		p.sent(id, c.results[i].Via)
		if tried {
			before.Outcome, before.LastAt, before.NextRetryAt, before.Via = Recovered, now, time.Time{}, c.results[i].Via
			p.Exceptions = append(p.Exceptions, before)
		}
	}
}

// failed returns the exception that follows from an answer other than Delivered.
func (r *run) failed(id user.ID, answer Result) Exception {
	before := r.batch.Exceptions[id]
	before.UserID = id
	return r.Policy.judge(before, answer, r.Random(), r.clock(), r.batch.WorthlessAfter)
}
