package campaign

import (
	"context"
	"sync"
)

// publishers is how many messages are published at the same time.
const publishers = 4

// An outlet publishes stored messages while the cutting continues. A message that it cannot
// publish is stored, and the sweep publishes it later.
type outlet struct {
	next    chan Message
	working sync.WaitGroup
	once    sync.Once
}

func newOutlet(ctx context.Context, l *Launcher) *outlet {
	o := &outlet{next: make(chan Message, publishers)}
	for range publishers {
		o.working.Go(func() {
			for m := range o.next {
				if ctx.Err() == nil {
					_ = l.publish(ctx, []Message{m})
				}
			}
		})
	}
	return o
}

// send waits while all publishers are busy, which bounds the memory.
func (o *outlet) send(ms []Message) {
	for _, m := range ms {
		o.next <- m
	}
}

// close waits until all sent messages have been handled; it may be called again.
func (o *outlet) close() {
	o.once.Do(func() { close(o.next) })
	o.working.Wait()
}
