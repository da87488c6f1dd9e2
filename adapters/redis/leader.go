package redis

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redisclient"
)

// leadScript makes ARGV[1] the leader in KEYS[1] for another ARGV[2] milliseconds, unless
// another candidate leads. It returns 1 if ARGV[1] is the leader afterwards.
const leadScript = `local leader = redis.call('get', KEYS[1])
if leader and leader ~= ARGV[1] then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
return 1`

// A Leader elects one of several processes for work that one process does as well as all. The
// election is no guarantee: for a moment two processes may lead, so the work must be safe when
// several processes do it. Processes that do not reach Redis do not lead.
type Leader struct {
	client       goredis.UniversalClient
	lead, resign *goredis.Script
	key, id      string
	// until is how long the leader need not ask whether it still is.
	until time.Time
}

// NewLeader returns a candidate, named id, for the work of this name. It uses client and
// does not close it.
func NewLeader(client goredis.UniversalClient, work, id string) *Leader {
	return &Leader{client: client, lead: goredis.NewScript(leadScript), resign: goredis.NewScript(releaseScript), key: "leader:" + work, id: id}
}

// Lead reports whether the candidate is the leader for at least half of lasting from now on. The
// leader asks Redis again in the second half of that time. If a leader stops calling Lead,
// another candidate leads after lasting. The error is [redisclient.ErrUnavailable] if Redis does
// not answer; the candidate then does not lead, since another candidate may reach Redis. Calls
// must not overlap.
func (l *Leader) Lead(ctx context.Context, lasting time.Duration) (bool, error) {
	asked := time.Now()
	if asked.Before(l.until) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	leads, err := l.lead.Run(ctx, l.client, []string{l.key}, l.id, lasting.Milliseconds()).Int()
	if err != nil {
		return false, redisclient.Unavailable("leader", err)
	}
	if leads == 1 {
		l.until = asked.Add(lasting / 2)
	}
	return leads == 1, nil
}

// Resign lets another candidate lead at once, if this candidate is the leader. If Redis does not
// answer, another candidate leads when this candidate's time is over.
func (l *Leader) Resign(ctx context.Context) {
	l.until = time.Time{}
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	_ = l.resign.Run(ctx, l.client, []string{l.key}, l.id).Err()
}
