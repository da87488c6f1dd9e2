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

// Counts keeps the limits of callers over all web processes, on the clock of Redis
// (GCRA: the budget flows back evenly, there is no edge of a window at which
// twice the limit passes).
type Counts struct{ rate *redis_rate.Limiter }

// NewCounts returns counts that use client and do not close it.
func NewCounts(client goredis.UniversalClient) *Counts {
	return &Counts{redis_rate.NewLimiter(client)}
}

// Spend takes n requests out of the key's budget of burst per period, or as many as
// are left, and returns how many remain. The key is stored hashed because it may
// hold an address. It returns [redisclient.ErrUnavailable] when Redis does not
// answer within half a second.
func (c *Counts) Spend(ctx context.Context, key string, n, burst int, period time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	r, err := c.rate.AllowAtMost(ctx, hashed(key), redis_rate.Limit{Rate: burst, Burst: burst, Period: period}, n)
	if err != nil {
		return 0, redisclient.Unavailable("limit", err)
	}
	return r.Remaining, nil
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

// AdmitPushes takes up to n messages out of what a push service takes a minute, as
// many as its budget has, and returns how many; none with how long to wait before
// asking again. The budget flows back evenly, and holds a second's worth. It returns
// [redisclient.ErrUnavailable] when Redis does not answer.
func (p *Pacer) AdmitPushes(ctx context.Context, service string, n, perMinute int) (admitted int, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	r, err := p.rate.AllowAtMost(ctx, "pace:push:"+service, redis_rate.Limit{Rate: perMinute, Burst: max(1, perMinute/60), Period: time.Minute}, n)
	if err != nil {
		return 0, 0, redisclient.Unavailable("pace", err)
	}
	if r.Allowed > 0 {
		return r.Allowed, 0, nil
	}
	return 0, max(r.RetryAfter, time.Millisecond), nil
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
