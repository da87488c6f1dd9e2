package redisgate

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"dropbell/adapters/redisclient"

	goredis "github.com/redis/go-redis/v9"
)

// wakeChannel is the pub/sub channel on which processes that decide claims call the writers and
// keepers.
const wakeChannel = "gate:wake"

// The reasons for a call.
const (
	callUnwritten = "unwritten" // claims wait on a shard on which none waited before
	callMissing   = "missing"   // claims wait for shards that are not there
)

const (
	// retryCall is how long after a failed call it is tried again, retries how often.
	retryCall = 200 * time.Millisecond
	retries   = 50
	// checkEvery is how often a silent subscription is asked whether it stands.
	checkEvery = 10 * time.Second
)

// caller publishes calls in the background. Calls for the same template and reason that arrive
// while a call is being published are merged into one. A call may be lost; writers and keepers
// then find the waiting claims or missing shards by themselves, seconds later.
type caller struct {
	client goredis.UniversalClient
	silent bool

	mu      sync.Mutex
	pending map[string]struct{} // messages
	running bool
}

func (c *caller) call(reason string, templateID int64) {
	if c.silent {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[reason+" "+strconv.FormatInt(templateID, 10)] = struct{}{}
	if !c.running {
		c.running = true
		go c.run()
	}
}

// run publishes until nothing is pending.
func (c *caller) run() {
	for failed := 0; ; {
		message, ok := c.next(failed < retries)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		err := c.client.Publish(ctx, wakeChannel, message).Err()
		cancel()
		if err == nil {
			failed = 0
			continue
		}
		failed++
		c.again(message)
		pause := time.NewTimer(retryCall)
		<-pause.C
	}
}

// next takes a message; if there is none, or no use in going on, run ends.
func (c *caller) next(goOn bool) (message string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !goOn {
		clear(c.pending)
	}
	for message = range c.pending {
		delete(c.pending, message)
		return message, true
	}
	c.running = false
	return "", false
}

func (c *caller) again(message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[message] = struct{}{}
}

// Calls are the callbacks of a process that writes claims and keeps gates.
type Calls struct {
	// Unwritten: claims wait to be written on a shard of the template. The writer must continue
	// until no claim waits, because no further call comes before that.
	Unwritten func(templateID int64)
	// Missing: a claim found no shard.
	Missing func(templateID int64)
	// Deaf: calls may have been lost, because the subscription has just begun, or began anew
	// after the connection was lost.
	Deaf func()
}

// Listen passes calls on until ctx ends. It uses a connection of its own, and sends one command
// every ten seconds.
func Listen(ctx context.Context, client goredis.UniversalClient, calls Calls) error {
	sub := client.Subscribe(ctx, wakeChannel)
	defer sub.Close()
	messages := sub.ChannelWithSubscriptions(goredis.WithChannelHealthCheckInterval(checkEvery))
	for {
		select {
		case <-ctx.Done():
			return nil
		case m, open := <-messages:
			if !open {
				return redisclient.Unavailable("calls of gates", goredis.ErrClosed)
			}
			calls.pass(m)
		}
	}
}

func (c Calls) pass(m any) {
	message, ok := m.(*goredis.Message)
	if !ok {
		c.Deaf()
		return
	}
	reason, id, _ := strings.Cut(message.Payload, " ")
	templateID, err := strconv.ParseInt(id, 10, 64)
	switch {
	case err != nil: // not of this process
	case reason == callUnwritten:
		c.Unwritten(templateID)
	case reason == callMissing:
		c.Missing(templateID)
	}
}
