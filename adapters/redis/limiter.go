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

// Counts keeps the request limits of callers over all web processes, on the clock of Redis. The
// algorithm is GCRA: the budget refills evenly, so there is no window edge at which twice the
// limit passes.
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

// A Pacer keeps all workers together below the messages per second that a channel's provider
// accepts. The limit is kept in Redis; while Redis does not answer, each worker keeps to its
// part of the rate.
type Pacer struct {
	rate  *redis_rate.Limiter
	alone *Alone
}

// NewPacer returns a pacer that uses client and does not close it.
func NewPacer(client goredis.UniversalClient, alone *Alone) *Pacer {
	return &Pacer{redis_rate.NewLimiter(client), alone}
}

// Admit takes all n messages out of the channel's budget and returns 0, or takes nothing and
// returns how long to wait before asking again. More than a second's worth is admitted only when
// the budget is full. A rate of 0 means no limit.
func (p *Pacer) Admit(ctx context.Context, channel delivery.Channel, n int, ratePerSecond int) time.Duration {
	return p.admit(ctx, channelPart(channel, ratePerSecond), n, channelLimit(n, ratePerSecond))
}

// Return gives back messages that were admitted and not sent. If the returned messages would
// fill the budget, they are not added: the budget refills over time. The same holds if Redis
// does not answer.
func (p *Pacer) Return(ctx context.Context, channel delivery.Channel, n, ratePerSecond int) {
	p.giveBack(ctx, channelPart(channel, ratePerSecond), n, channelLimit(n, ratePerSecond))
}

// AdmitCampaign is Admit for the budget of one campaign on a channel. A fifth of a second's
// worth is admitted at once, so that the campaign starts at its rate.
func (p *Pacer) AdmitCampaign(ctx context.Context, channel delivery.Channel, id int64, n, ratePerSecond int) time.Duration {
	return p.admit(ctx, campaignPart(channel, id, ratePerSecond), n, campaignLimit(n, ratePerSecond))
}

// ReturnCampaign gives back messages that were admitted and not sent.
func (p *Pacer) ReturnCampaign(ctx context.Context, channel delivery.Channel, id int64, n, ratePerSecond int) {
	p.giveBack(ctx, campaignPart(channel, id, ratePerSecond), n, campaignLimit(n, ratePerSecond))
}

// AdmitPushes takes up to n messages out of a push service's budget, which is given per minute.
// It returns how many messages it took, or 0 and how long to wait before asking again. The
// budget refills evenly and holds a second's worth.
func (p *Pacer) AdmitPushes(ctx context.Context, service string, n, perMinute int) (admitted int, wait time.Duration) {
	if !p.alone.away() {
		asking, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
		defer cancel()
		r, err := p.rate.AllowAtMost(asking, "pace:push:"+service, redis_rate.Limit{Rate: perMinute, Burst: max(1, perMinute/60), Period: time.Minute}, n)
		p.alone.answered(ctx, err)
		switch {
		case err != nil:
		case r.Allowed > 0:
			return r.Allowed, 0
		default:
			return 0, max(r.RetryAfter, time.Millisecond)
		}
	}
	admitted, wait, _ = p.alone.admit(ctx, part{limitPush, "push:" + service, delivery.WebPush, float64(perMinute) / 60}, n, false)
	return admitted, wait
}

func channelPart(c delivery.Channel, ratePerSecond int) part {
	return part{limitChannel, c.String(), c, float64(ratePerSecond)}
}

func channelLimit(n, ratePerSecond int) redis_rate.Limit {
	return redis_rate.Limit{Rate: ratePerSecond, Burst: max(ratePerSecond, n), Period: time.Second}
}

func campaignPart(c delivery.Channel, id int64, ratePerSecond int) part {
	return part{limitCampaign, "campaign:" + strconv.FormatInt(id, 10), c, float64(ratePerSecond)}
}

func campaignLimit(n, ratePerSecond int) redis_rate.Limit {
	return redis_rate.Limit{Rate: ratePerSecond, Burst: max(ratePerSecond/5, n, 1), Period: time.Second}
}

func (p *Pacer) admit(ctx context.Context, of part, n int, limit redis_rate.Limit) time.Duration {
	if n <= 0 || limit.Rate <= 0 {
		return 0
	}
	if !p.alone.away() {
		asking, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
		defer cancel()
		r, err := p.rate.AllowN(asking, "pace:"+of.key, limit, n)
		p.alone.answered(ctx, err)
		switch {
		case err != nil:
		case r.Allowed > 0:
			return 0
		default: // a wait of zero would read as admitted
			return max(r.RetryAfter, time.Millisecond)
		}
	}
	_, wait, _ := p.alone.admit(ctx, of, n, true)
	return wait
}

func (p *Pacer) giveBack(ctx context.Context, of part, n int, limit redis_rate.Limit) {
	if n <= 0 || limit.Rate <= 0 {
		return
	}
	if p.alone.away() {
		p.alone.giveBack(ctx, of, n)
		return
	}
	asking, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	_, err := p.rate.AllowN(asking, "pace:"+of.key, limit, -n)
	p.alone.answered(ctx, err)
}
