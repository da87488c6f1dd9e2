package asynq

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// blockFor is how long a server without tasks is blocked in Redis at a time.
	blockFor = 15 * time.Second
	// blockAnswer is how much longer Redis may take to answer.
	blockAnswer = 3 * time.Second
	// dueEvery is the interval at which timers and retries that have become due are looked for,
	// right after each full and each half second of the clock. Tasks become due at full seconds.
	dueEvery = 500 * time.Millisecond
	// passPause is the library's pause between two passes over delayed tasks. The passes
	// themselves block until tasks are due; see [waits.forward].
	passPause = 10 * time.Millisecond
)

// waits makes the library's servers block where they would otherwise poll. As a hook of their
// client it recognises two of their scripts by the scripts' keys:
//
//   - Taking a task from a queue that was empty a moment ago is preceded by a
//     BLMOVE that blocks until the queue has a task. It moves the last task onto
//     its own place, so it changes nothing, and any process may add the task.
//   - Moving due delayed tasks is put off until some tasks are due. One look at
//     all queues of the process answers this question for all servers of the process.
//
// Where Redis refuses either command, the servers poll as often as the library does.
type waits struct {
	client   goredis.UniversalClient // has a connection for each blocked server
	queues   []*waitingQueue
	byKey    map[string]*waitingQueue // by the key of pending, scheduled or retried tasks
	stopping chan struct{}
	stop     func() // idempotent
}

// waitingQueue is the cached state of one queue.
type waitingQueue struct {
	pending, paused string
	empty           atomic.Bool // nothing was found by the last look for a task
	delayed         [2]string   // keys of scheduled tasks and of retries

	mu      sync.Mutex
	due     [2]bool       // whether some of delayed are to be moved
	changed chan struct{} // closed at the next look that finds some
}

func newWaits(client goredis.UniversalClient, queues []QueueSpec) *waits {
	w := &waits{client: client, byKey: map[string]*waitingQueue{}, stopping: make(chan struct{})}
	w.stop = sync.OnceFunc(func() { close(w.stopping) })
	for _, spec := range queues {
		prefix := "asynq:{" + spec.Name + "}:"
		q := &waitingQueue{pending: prefix + "pending", paused: prefix + "paused",
			delayed: [2]string{prefix + "scheduled", prefix + "retry"}, changed: make(chan struct{})}
		w.queues = append(w.queues, q)
		for _, key := range []string{q.pending, q.delayed[0], q.delayed[1]} {
			w.byKey[key] = q
		}
	}
	return w
}

// DialHook implements the client's hook.
func (w *waits) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessPipelineHook implements the client's hook.
func (w *waits) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// ProcessHook implements the client's hook.
func (w *waits) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		script, ok := cmd.(*goredis.Cmd)
		if !ok || len(cmd.Args()) < 5 {
			return next(ctx, cmd)
		}
		// name, script, number of keys, first key, second key
		args := cmd.Args()
		keys, _ := args[2].(int)
		first, _ := args[3].(string)
		second, _ := args[4].(string)
		q := w.byKey[first]
		switch {
		case q == nil:
		case keys == 4 && first == q.pending && second == q.paused:
			return w.dequeue(ctx, q, script, next)
		case keys == 2 && second == q.pending && first == q.delayed[0]:
			return w.forward(ctx, q, 0, script, next)
		case keys == 2 && second == q.pending && first == q.delayed[1]:
			return w.forward(ctx, q, 1, script, next)
		}
		return next(ctx, cmd)
	}
}

// dequeue takes a task. If the last attempt found no task, dequeue first blocks until there is a
// task, for at most [blockFor].
func (w *waits) dequeue(ctx context.Context, q *waitingQueue, cmd *goredis.Cmd, next goredis.ProcessHook) error {
	if q.empty.Load() {
		arrived := make(chan struct{})
		go func() {
			defer close(arrived)
			// The client's calls do not end with a context alone, hence the goroutine.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), blockFor+blockAnswer)
			defer cancel()
			w.client.BLMove(ctx, q.pending, q.pending, "right", "right", blockFor)
		}()
		select {
		case <-arrived:
		case <-w.stopping:
		}
	}
	err := next(ctx, cmd)
	q.empty.Store(errors.Is(err, goredis.Nil))
	return err
}

// forward moves delayed tasks of one kind, if tasks are due. If no task of the queue is due, it
// waits; the library calls forward again and again.
func (w *waits) forward(ctx context.Context, q *waitingQueue, kind int, cmd *goredis.Cmd, next goredis.ProcessHook) error {
	if due := w.awaitDue(q, kind); !due {
		cmd.SetVal(int64(0)) // moved none
		return nil
	}
	err := next(ctx, cmd)
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		return err // the library sends the script itself
	}
	n, _ := cmd.Int64()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err != nil: // until the next look, or every pass would fail
		q.due = [2]bool{}
	case n == 0:
		q.due[kind] = false
	}
	return err
}

// awaitDue waits until tasks of the queue are due, and reports whether tasks of the kind are
// among them.
func (w *waits) awaitDue(q *waitingQueue, kind int) bool {
	for {
		q.mu.Lock()
		any, mine, changed := q.due[0] || q.due[1], q.due[kind], q.changed
		q.mu.Unlock()
		if any {
			return mine
		}
		select {
		case <-changed:
		case <-w.stopping:
			return false
		}
	}
}

// look finds out until the servers stop which queues have tasks that are due.
func (w *waits) look() {
	for {
		now := time.Now()
		t := time.NewTimer(now.Truncate(dueEvery).Add(dueEvery).Sub(now))
		select {
		case <-t.C:
			w.lookOnce(time.Now())
		case <-w.stopping:
			t.Stop()
			return
		}
	}
}

// lookOnce marks the queues and kinds with due tasks. If Redis cannot be read, all are marked,
// so that the library gets the error and logs it.
func (w *waits) lookOnce(now time.Time) {
	ctx := context.Background()
	counts := make([][2]*goredis.IntCmd, len(w.queues))
	_, err := w.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, q := range w.queues {
			for kind, key := range q.delayed {
				counts[i][kind] = p.ZCount(ctx, key, "-inf", strconv.FormatInt(now.Unix(), 10))
			}
		}
		return nil
	})
	for i, q := range w.queues {
		q.mark(err != nil || counts[i][0].Val() > 0, err != nil || counts[i][1].Val() > 0)
	}
}

func (q *waitingQueue) mark(scheduled, retry bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due[0], q.due[1] = q.due[0] || scheduled, q.due[1] || retry
	if q.due[0] || q.due[1] {
		close(q.changed)
		q.changed = make(chan struct{})
	}
}
