package delivery

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/domain/user"
)

// patience is how long a chunk waits for admission while it keeps the lease;
// beyond it the batch is given back so that the worker can do other things.
const patience = 2 * time.Second

// lastCall is how long before the deadline the last call may begin, so that
// it also arrives before.
const lastCall = 200 * time.Millisecond

// hangUp is how long before the deadline a call that is still going on is
// ended: one message after the other may be leaving in it.
const hangUp = lastCall / 2

// chunkResult is what became of one chunk.
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

// calls is a bounded set of provider calls in flight for one run. results is
// closed when no more will come.
//
// Every call takes a turn, which comes back when its result has been recorded
// and not earlier: while the database is away no further call begins, and if
// this process dies, no more is repeated than what was in flight.
type calls struct {
	results chan chunkResult
	// permits are shared by the runs that are worked on side by side; taken is how
	// many of them this one has.
	permits permits
	taken   atomic.Int64
	// unrecorded is how many results were collected since the last
	// checkpoint. It belongs to the goroutine that owns the run.
	unrecorded int
	known      []user.User  // ascending
	unstarted  atomic.Int64 // chunks that no caller has taken yet
	cancel     context.CancelFunc
	left       atomic.Int64 // chunks without a result
	wait       atomic.Int64 // nanoseconds to postpone the batch, 0 = not
}

// permits bound how many calls of the provider are in flight or unrecorded.
type permits chan struct{}

func newPermits(n int) permits {
	p := make(permits, n)
	for range n {
		p <- struct{}{}
	}
	return p
}

// releasePermits permits as many calls as have been recorded.
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

// start begins sending to the recipients in chunks of the sender's size. stop
// must be called; it waits for the calls in flight. The end of ctx and
// [calls.cancel] keep new chunks from starting; calls in flight are left to
// finish, since cutting them off would leave their outcome unknown.
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

// chunks divides the recipients into those of one call each: by provider, where the
// sender has several.
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

// giveBack recovers from a panic of the guard or of the admission: the batch is
// given back for a moment.
func (r *run) giveBack(c *calls) {
	if p := recover(); p != nil {
		r.reportCrash(crashed(p).Crash)
		c.wait.Store(int64(time.Second))
	}
}

// hand hands a chunk to the provider; see [run.isolate] for one that is refused
// as a whole. It returns false if the run is stopped or postponed meanwhile.
func (r *run) hand(ctx context.Context, c *calls, chunk chunkResult) bool {
	chunk.results = r.call(ctx, chunk.messages)
	if refusedWhole(chunk.results) > 1 {
		return r.isolate(ctx, c, chunk)
	}
	r.report(ctx, chunk.results)
	c.results <- chunk
	return true
}

// cleared requests admission for one chunk's messages before it calls the
// screen: the screen's actions, such as granting a coupon, must not be taken for
// messages that may not be sent. If refusals and the screen leave no message, the admission
// is given back; a chunk without messages needs no admission. Whether the lease holds is
// asked last, right before the call.
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

// load is what the admission is asked about.
func (r *run) load(messages int) Load {
	return Load{r.batch.Channel, messages, r.batch.Subject.Kind, r.batch.Owner, r.batch.Priority, r.batch.Subject.Place().Shop}
}

// chunkSize is the sender's, or a fifth of a second's worth where the owner
// has a rate of its own: a chunk is admitted as a whole.
func (r *run) chunkSize() int {
	size := r.sender.ChunkSize()
	if rate := r.batch.RatePerSecond; rate > 0 {
		size = min(size, max(1, rate/5))
	}
	return r.narrow.of(r.batch.ID, size)
}

// before calls the screen for the reachable recipients of one chunk, and removes
// those that it keeps back. It returns false if none may be sent to yet.
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

// admitted waits a little for admission; it postpones the run when that is not enough, or
// when the run is to be a new one.
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

// gatherFor is how long a checkpoint waits for the rest of the calls, once all
// have begun. A checkpoint costs as much as delivering hundreds of messages to
// a quick provider. No call waits for it meanwhile, and not more is repeated
// after a crash than the calls that were in flight at once.
const gatherFor = 20 * time.Millisecond

// collect turns a chunk's results, and those of other chunks that are ready
// as well or soon, into one checkpoint.
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

// another returns a result that is there, or, unless calls wait for their
// turn, one that comes before enough.
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
