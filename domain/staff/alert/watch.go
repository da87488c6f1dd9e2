package alert

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// A Sender posts one message to its destination. Its results contain no more of an
// address than the host.
type Sender interface {
	Send(ctx context.Context, d Delivery, text string) Outcome
}

// A Watch finds conditions that the database does not know. If it cannot tell whether
// there are conditions it returns an error, and then no condition of its kind begins or
// ends; see also [ErrElsewhere].
type Watch struct {
	Kind Kind
	Look func(ctx context.Context) ([]Condition, error)
}

// A Watcher raises alerts and delivers them. All fields but Watches and Crashed are required.
type Watcher struct {
	Store   Store
	Watches []Watch
	Sender  Sender
	// PublicURL is the console's address, for links.
	PublicURL string
	// Crashed, if set, is called after a panic of the sender.
	Crashed Crashed
}

// Crashed is called after a panic while a notification was made or sent. what is the
// text of a runtime error; for any other panic it is only the type of the value.
type Crashed func(what string, stack []byte)

// contained returns the outcome of send. A panic of send is a failure of this
// notification alone, which is not tried again.
func (c Crashed) contained(send func() Outcome) (o Outcome) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		what := fmt.Sprintf("a panic of type %T", p)
		if err, ok := p.(interface {
			error
			RuntimeError()
		}); ok {
			what = err.Error()
		}
		o = Outcome{State: Failed, Detail: "the sender failed: " + what}
		if c != nil {
			c(what, debug.Stack())
		}
	}()
	return send()
}

// Look makes alerts agree with the present conditions.
func (w *Watcher) Look(ctx context.Context) error {
	list, err := w.Store.Conditions(ctx)
	if err != nil {
		return err
	}
	looked := []Kind{DeadLetters, Late, SoldOut, Approval, Job, Endpoint, Flight}
	var failed []error
	for _, watch := range w.Watches {
		more, err := watch.Look(ctx)
		if errors.Is(err, ErrElsewhere) {
			continue
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		list, looked = append(list, more...), append(looked, watch.Kind)
	}
	return errors.Join(append(failed, w.Store.Reconcile(ctx, looked, list, Quiet, Deadline))...)
}

const (
	deliveriesAtOnce = 20
	deliveryLease    = time.Minute
	deliveryTimeout  = 10 * time.Second
)

// Deliver sends the due deliveries. Each is sent once, unless a process dies
// between the answer and its record.
func (w *Watcher) Deliver(ctx context.Context) error {
	for {
		due, err := w.Store.Take(ctx, deliveriesAtOnce, deliveryLease)
		if err != nil || len(due) == 0 {
			return err
		}
		errs := make([]error, len(due))
		var all sync.WaitGroup
		for i, d := range due {
			all.Go(func() { errs[i] = w.deliver(ctx, d) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil || len(due) < deliveriesAtOnce {
			return err
		}
	}
}

func (w *Watcher) deliver(ctx context.Context, d Delivery) error {
	call, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	o := w.Crashed.contained(func() Outcome {
		text := d.Alert.Text(d.Destination.Language)
		if d.Alert.Path != "" {
			text += "\n" + w.PublicURL + d.Alert.Path
		}
		return w.Sender.Send(call, d, text)
	})
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), deliveryTimeout)
	defer done()
	return w.Store.Record(ctx, d, o, Backoff(d.Attempts+1, o.After))
}

// A Memo holds conditions that another part of the process finds from time to time.
type Memo struct {
	mu   sync.Mutex
	list []Condition
	at   time.Time
}

// Set replaces the conditions.
func (m *Memo) Set(list []Condition, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list, m.at = list, now
}

// ErrElsewhere says that another process, if any, finds the conditions. It is no
// failure: no condition of the kind begins or ends here.
var ErrElsewhere = errors.New("this process does not find these conditions")

// Get returns the conditions if they were set within life, otherwise [ErrElsewhere].
func (m *Memo) Get(now time.Time, life time.Duration) ([]Condition, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.at) > life {
		return nil, ErrElsewhere
	}
	return slices.Clone(m.list), nil
}
