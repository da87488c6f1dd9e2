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

// A sending hands the messages of one run to the provider, chunk by chunk.
type sending struct {
	clearance
	composer composer
	sender   Sender // nil = there is none
	permits  permits
	narrow   *chunkLimit
	random   func() float64 // [Service.Random]
	crashes  crashReports
}

// start begins sending to the recipients in chunks of at most [sending.chunkSize] messages. The
// returned function must be called; it waits for the calls in flight. The end of ctx and
// [calls.cancel] keep new chunks from starting. Calls in flight are left to finish, since
// cancelling them would leave their outcome unknown.
func (s *sending) start(ctx context.Context, ready []user.ID) (*calls, func()) {
	window := s.batch.WorthlessAfter.Sub(s.clock())
	ctx, cancel := context.WithTimeout(ctx, window-lastCall)
	chunks := s.chunks(ready)
	s.refusals.among = ready
	s.composer.waited = s.batch.paced() // now: checkpoints change the batch while chunks are made
	c := &calls{results: make(chan chunkResult, len(chunks)), cancel: cancel}
	c.left.Store(int64(len(chunks)))
	c.unstarted.Store(int64(len(chunks)))
	next := make(chan []user.ID, len(chunks))
	for _, chunk := range chunks {
		next <- chunk
	}
	close(next)
	var working sync.WaitGroup
	c.permits = s.permits
	for range min(len(chunks), cap(s.permits)) {
		working.Go(func() { s.work(ctx, c, next) })
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
func (s *sending) chunks(ready []user.ID) (list [][]user.ID) {
	groups := [][]user.ID{ready}
	if routed, ok := s.sender.(RoutedSender); ok {
		groups = routed.Divide(&s.batch.Subject, ready, s.batch.Known)
	}
	for _, g := range groups {
		list = slices.AppendSeq(list, slices.Chunk(g, s.chunkSize()))
	}
	return list
}

// work sends chunks until there are none, the run is stopped or postponed.
func (s *sending) work(ctx context.Context, c *calls, next <-chan []user.ID) {
	for ids := range next {
		chunk, ok := s.begin(ctx, c, ids)
		if !ok {
			return
		}
		c.unstarted.Add(-1)
		if !s.hand(ctx, c, chunk) {
			return
		}
		c.left.Add(-1)
	}
}

// begin waits for a permit and for the clearance of one chunk's call. If the call may not begin,
// begin gives the permit back at once and returns false: other runs of the drain, and other
// callers of this run, may be waiting for it. After a panic of the guard or of the admission the
// batch is released and is ready again after a second.
func (s *sending) begin(ctx context.Context, c *calls, ids []user.ID) (chunk chunkResult, ok bool) {
	if !c.awaitPermit(ctx) {
		return chunk, false
	}
	defer func() {
		if p := recover(); p != nil {
			s.crashes.report(crashed(p).Crash)
			c.wait.Store(int64(time.Second))
		}
		if !ok {
			c.giveBackPermit()
		}
	}()
	if c.postponed() > 0 {
		return chunk, false
	}
	chunk = s.composer.addressed(ids)
	return chunk, s.cleared(ctx, c, &chunk)
}

// hand sends one chunk to the provider. A call that is refused as a whole is divided, see
// [sending.isolate]. hand returns false if the run is stopped or postponed meanwhile.
func (s *sending) hand(ctx context.Context, c *calls, chunk chunkResult) bool {
	chunk.results = s.call(ctx, chunk.messages)
	if refusedWhole(chunk.results) > 1 {
		return s.isolate(ctx, c, chunk)
	}
	s.report(ctx, chunk.results)
	c.results <- chunk
	return true
}

// chunkSize returns the most messages of a chunk: the sender's size, but if the owner has a rate,
// at most the messages of a fifth of a second, because a chunk is admitted as a whole.
func (s *sending) chunkSize() int {
	size := s.sender.ChunkSize()
	if rate := s.batch.RatePerSecond; rate > 0 {
		size = min(size, max(1, rate/5))
	}
	return s.narrow.of(s.batch.ID, size)
}

// call is one call of the provider, which has until shortly before the deadline.
func (s *sending) call(ctx context.Context, messages []Message) []Result {
	if len(messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.batch.WorthlessAfter.Sub(s.clock())-hangUp)
	defer cancel()
	results := Attempt(ctx, s.sender, messages)
	for i := range results {
		s.crashes.report(results[i].Crash)
	}
	return results
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
