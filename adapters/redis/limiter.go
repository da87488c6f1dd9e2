package redis

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/delivery"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
)

// A Limit is how many requests pass per period; as many may come at once.
// The zero value limits nothing.
type Limit struct {
	Rate   int
	Period time.Duration
}

// PerSecond returns a limit of n requests a second.
func PerSecond(n int) Limit { return Limit{Rate: n, Period: time.Second} }

// PerMinute returns a limit of n requests a minute.
func PerMinute(n int) Limit { return Limit{Rate: n, Period: time.Minute} }

// A Decision is the answer for one request, as HTTP headers want it.
type Decision struct {
	Allowed   bool
	Limit     int
	Remaining int
	// RetryAfter is zero for an allowed request.
	RetryAfter time.Duration
	// ResetAfter is the time until the full limit is available again.
	ResetAfter time.Duration
}

// A Limiter counts requests per key over all processes, on the clock of Redis
// (GCRA: the budget flows back evenly, there is no edge of a window at which
// twice the limit passes).
type Limiter struct{ rate *redis_rate.Limiter }

// NewLimiter returns a limiter that uses client and does not close it.
func NewLimiter(client goredis.UniversalClient) *Limiter {
	return &Limiter{redis_rate.NewLimiter(client)}
}

// Allow counts one request under key, which is stored hashed because callers
// put addresses and user names into it. It returns [redisclient.ErrUnavailable] when Redis
// does not answer within half a second; whether to let the request pass is the route's decision.
func (l *Limiter) Allow(ctx context.Context, key string, limit Limit) (Decision, error) {
	if limit.Rate <= 0 {
		return Decision{Allowed: true}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	rate := redis_rate.Limit{Rate: limit.Rate, Burst: limit.Rate, Period: limit.Period}
	r, err := l.rate.Allow(ctx, hashed(key), rate)
	if err != nil {
		return Decision{}, redisclient.Unavailable("limit", err)
	}
	return Decision{Allowed: r.Allowed > 0, Limit: limit.Rate, Remaining: r.Remaining,
		RetryAfter: max(0, r.RetryAfter), ResetAfter: r.ResetAfter}, nil
}

func hashed(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// A Pacer keeps all workers together below the messages per second that a
// channel's provider takes.
type Pacer struct{ rate *redis_rate.Limiter }

// NewPacer returns a pacer that uses client and does not close it.
func NewPacer(client goredis.UniversalClient) *Pacer {
	return &Pacer{redis_rate.NewLimiter(client)}
}

// Admit takes n messages at once out of the channel's budget and returns 0,
// or takes nothing and returns how long to wait before asking again. More than
// a second's worth passes only when the budget is full. A rate of zero limits
// nothing. It returns [redisclient.ErrUnavailable] when Redis does not answer.
func (p *Pacer) Admit(ctx context.Context, channel delivery.Channel, n int, ratePerSecond int) (time.Duration, error) {
	return p.admit(ctx, channel.String(), n, redis_rate.Limit{Rate: ratePerSecond, Burst: max(ratePerSecond, n), Period: time.Second})
}

// Return gives back what was admitted and is not used. A budget that would be
// full by it is left to refill over time.
func (p *Pacer) Return(ctx context.Context, channel delivery.Channel, n, ratePerSecond int) error {
	_, err := p.admitN(ctx, channel.String(), -n, redis_rate.Limit{Rate: ratePerSecond, Burst: max(ratePerSecond, n), Period: time.Second})
	return err
}

// AdmitCampaign is Admit for the budget of one campaign, of which a fifth of a
// second's worth passes at once, so that it begins at its rate.
func (p *Pacer) AdmitCampaign(ctx context.Context, id int64, n, ratePerSecond int) (time.Duration, error) {
	return p.admit(ctx, campaignPace(id), n, campaignLimit(n, ratePerSecond))
}

// ReturnCampaign gives back what was admitted and could not be used.
func (p *Pacer) ReturnCampaign(ctx context.Context, id int64, n, ratePerSecond int) error {
	_, err := p.admitN(ctx, campaignPace(id), -n, campaignLimit(n, ratePerSecond))
	return err
}

func campaignPace(id int64) string { return "campaign:" + strconv.FormatInt(id, 10) }

func campaignLimit(n, ratePerSecond int) redis_rate.Limit {
	return redis_rate.Limit{Rate: ratePerSecond, Burst: max(ratePerSecond/5, n, 1), Period: time.Second}
}

func (p *Pacer) admit(ctx context.Context, key string, n int, limit redis_rate.Limit) (time.Duration, error) {
	if n <= 0 {
		return 0, nil
	}
	return p.admitN(ctx, key, n, limit)
}

func (p *Pacer) admitN(ctx context.Context, key string, n int, limit redis_rate.Limit) (time.Duration, error) {
	if limit.Rate <= 0 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	r, err := p.rate.AllowN(ctx, "pace:"+key, limit, n)
	if err != nil {
		return 0, redisclient.Unavailable("pace", err)
	}
	if r.Allowed > 0 || n < 0 {
		return 0, nil
	}
	// A wait of zero would read as admitted.
	return max(r.RetryAfter, time.Millisecond), nil
}
