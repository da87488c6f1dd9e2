package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/domain/pause"
)

// A wave is a part of the shoppers of a crowd, who come at random times after the opening.
type wave struct {
	share       float64 // of the shoppers
	from, until time.Duration
	// mean is the mean time between from and the claim; 0 = even over the time from from to until.
	mean time.Duration
}

// A Kind says how many shoppers come to a drop, and when.
type Kind struct {
	shoppers float64 // as a share of the stock
	waves    []wave
}

// Rush sells a drop out in about two minutes. Moderate leaves coupons: at most 60 % of the stock is
// claimed in the first minute and 80 % altogether.
var (
	Rush = Kind{1.15, []wave{{.42, 150 * time.Millisecond, 30 * time.Second, 5 * time.Second}, {.33, time.Second, 4 * time.Minute, 45 * time.Second},
		{.25, 5 * time.Second, 8 * time.Minute, 150 * time.Second}}}
	Moderate = Kind{.8, []wave{{.75, 400 * time.Millisecond, 55 * time.Second, 14 * time.Second}, {.25, time.Minute, 6 * time.Minute, 0}}}
)

// A visit is one shopper of a drop. follow is the time before the opening, claim the time after
// it, and every other time counts from the step before.
type visit struct {
	user    int64
	channel string        // of the reminder whose link is followed; "" = no link is followed
	follow  time.Duration // before the opening
	claim   time.Duration
	buys    bool
	lock    time.Duration
	amount  int64 // of the order, in minor units
	pays    bool  // false: the order is given up, and the coupon released
	settle  time.Duration
	returns bool // the order is refunded after back
	back    time.Duration
}

// visits draws the shoppers of a drop, the first claim first. The same drop has the same shoppers
// each time.
func visits(d Drop, k Kind, booked []booking) []visit {
	id, _ := strconv.ParseUint(d.ID, 10, 64) // an id that is no number has the seed 0
	r := rand.New(rand.NewPCG(97, id))
	total := int(math.Round(k.shoppers * float64(d.Stock)))
	list := make([]visit, 0, total)
	for _, at := range instants(r, k, total) {
		list = append(list, visit{claim: at})
	}
	reminded := map[int64]bool{}
	var others []int64
	for _, b := range booked {
		reminded[b.user] = true
	}
	for _, n := range r.Perm(LastUser - FirstUser) {
		if id := int64(FirstUser + 1 + n); !reminded[id] {
			others = append(others, id)
		}
	}
	// Users with a reminder come first: four of five early shoppers have one.
	for i := range list {
		v := &list[i]
		if len(booked) > 0 && (r.Float64() < .8 || len(others) == 0) {
			v.user = booked[0].user
			if one := booked[0].reminders[0]; one.Minutes == 5 && one.Channel != "webhook" && r.Float64() < .4 {
				v.channel, v.follow = one.Channel, time.Duration(20+r.IntN(240))*time.Second
			}
			booked = booked[1:]
		} else if len(others) > 0 {
			v.user, others = others[0], others[1:]
		}
		v.shops(r, d)
	}
	return slices.DeleteFunc(list, func(v visit) bool { return v.user == 0 })
}

// instants draws when the shoppers claim, in their order.
func instants(r *rand.Rand, k Kind, total int) (at []time.Duration) {
	for i, w := range k.waves {
		n := int(w.share * float64(total))
		if i == len(k.waves)-1 {
			n = total - len(at)
		}
		for range n {
			after := time.Duration(r.Float64() * float64(w.until-w.from))
			if w.mean > 0 {
				after = time.Duration(r.ExpFloat64() * float64(w.mean))
			}
			at = append(at, min(w.from+after, w.until))
		}
	}
	slices.Sort(at)
	return at
}

// shops draws what the shopper does with the coupon.
func (v *visit) shops(r *rand.Rand, d Drop) {
	v.buys, v.pays, v.returns = r.Float64() < .38, r.Float64() < .87, r.Float64() < .06
	v.lock = time.Duration(15+min(r.ExpFloat64()*90, 500)) * time.Second
	v.settle = time.Duration(8+r.IntN(40)) * time.Second
	v.back = time.Duration(60+r.IntN(120)) * time.Second
	usual := cmp.Or(float64(d.Threshold)*1.5, 9800)
	v.amount = max(int64(usual*math.Exp(.4*r.NormFloat64()))/100*100, d.Threshold+int64(r.IntN(40))*100, 3000)
}

// A Crowd lets simulated shoppers come to drops, through the API with tokens of the users.
type Crowd struct {
	Client *Client
	Tokens Issuer
	// Link returns the address in the user's reminder of five minutes; nil = no links are followed.
	Link func(drop string, user int64, channel string) string
	// Faster divides all times, for tests; 0 = 1.
	Faster int
}

// Came counts the outcomes of a crowd.
type Came struct{ Followed, Claimed, Refused, Paid, Released, Refunded, Failed atomic.Int64 }

func (c *Came) String() string {
	return fmt.Sprintf("%d coupons, %d refused claims, %d paid orders, %d given up, %d refunded", c.Claimed.Load(), c.Refused.Load(), c.Paid.Load(), c.Released.Load(), c.Refunded.Load())
}

// Come lets the shoppers of a drop come, and returns when the last of them is done or ctx has
// ended. Shoppers whose claim is more than five seconds ago do not come. A shopper does not wait
// for the answers to others: if the server is slow, more requests are under way.
func (c *Crowd) Come(ctx context.Context, d Drop, k Kind, booked []booking) *Came {
	came := &Came{}
	var all sync.WaitGroup
	for _, v := range visits(d, k, booked) {
		at := d.OpensAt.Add(v.claim / c.faster())
		if time.Since(at) > 5*time.Second {
			continue
		}
		if !pause.For(ctx, time.Until(at)) {
			break
		}
		all.Go(func() {
			if err := c.shop(ctx, d, v, came); err != nil && ctx.Err() == nil {
				came.Failed.Add(1)
			}
		})
	}
	all.Wait()
	return came
}

// shop takes one shopper from the claim to the order.
func (c *Crowd) shop(ctx context.Context, d Drop, v visit, came *Came) error {
	coupon, err := c.claim(ctx, d, v.user)
	if _, refused := errors.AsType[*refusal](err); refused {
		came.Refused.Add(1)
		return nil
	} else if err != nil {
		return err
	}
	came.Claimed.Add(1)
	if !v.buys || !c.pause(ctx, v.lock) {
		return nil
	}
	order := map[string]any{"order_id": "live-" + d.ID + "-" + strconv.FormatInt(v.user, 10)}
	step := func(name string, body map[string]any) error {
		return c.Client.call(ctx, request{method: "POST", path: "/coupons/" + coupon + "/" + name, body: body}, nil)
	}
	if err := step("lock", map[string]any{"order_id": order["order_id"], "order_amount": v.amount}); err != nil || !c.pause(ctx, v.settle) {
		return err
	}
	if !v.pays {
		came.Released.Add(1)
		return step("release", order)
	}
	if err := step("confirm", order); err != nil {
		return err
	}
	came.Paid.Add(1)
	if !v.returns || !c.pause(ctx, v.back) {
		return nil
	}
	came.Refunded.Add(1)
	return step("refund", order)
}

// claim returns the id of the user's coupon. A claim that the gate has accepted is repeated until
// the coupon is written.
func (c *Crowd) claim(ctx context.Context, d Drop, user int64) (string, error) {
	token, err := c.Tokens.Token(user, time.Now(), time.Hour)
	if err != nil {
		return "", err
	}
	q := request{method: "POST", path: "/claims", token: token, key: fmt.Sprintf("live-%s-%d", d.ID, user), body: map[string]string{"template_id": d.ID}}
	for range 20 {
		var got struct {
			ID string `json:"coupon_id"`
		}
		if err := c.Client.call(ctx, q, &got); err != nil || got.ID != "" {
			return got.ID, err
		}
		if !pause.For(ctx, time.Second/2) {
			break
		}
	}
	return "", fmt.Errorf("the claim of user %d for drop %s is not written", user, d.ID)
}

// Follow lets shoppers follow the links of their reminders before the opening.
func (c *Crowd) Follow(ctx context.Context, d Drop, k Kind, booked []booking) {
	list := slices.DeleteFunc(visits(d, k, booked), func(v visit) bool { return v.channel == "" })
	slices.SortStableFunc(list, func(a, b visit) int { return cmp.Compare(b.follow, a.follow) })
	for _, v := range list {
		at := d.OpensAt.Add(-v.follow / c.faster())
		if time.Since(at) > 5*time.Second {
			continue
		}
		if !pause.For(ctx, time.Until(at)) {
			return
		}
		c.follow(ctx, c.Link(d.ID, v.user, v.channel))
	}
}

// follow loads the page of a link, as a browser does. A failure costs one opening.
func (c *Crowd) follow(ctx context.Context, address string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return
	}
	r.Header.Set("User-Agent", "Mozilla/5.0 (Linux; Android 15) Chrome/140 Mobile")
	reader := http.Client{Transport: c.Client.http.Transport, Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // the claim page itself is not loaded
	answer, err := reader.Do(r)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body) // the page itself is of no use
	_ = answer.Body.Close()
}

func (c *Crowd) faster() time.Duration { return time.Duration(max(c.Faster, 1)) }

func (c *Crowd) pause(ctx context.Context, d time.Duration) bool { return pause.For(ctx, d/c.faster()) }
