// Package redisgate is the claim gate in Redis: the shards that decide claims in
// scripts, one script call per group of claims, and the streams of accepted
// claims that the writer stores in the database. See [gate].
package redisgate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
)

const (
	// maxGroup is how many claims one script call decides. Such a call takes two milliseconds; a
	// larger group would block Redis for too long.
	maxGroup = 256
	// maxQueue is how many claims may wait for one shard.
	maxQueue = 16384
	// callTimeout bounds one script call. A decision is not lost after a time-out: a repeated
	// request with the same key gets it.
	callTimeout = redisclient.CallTimeout
	// restockTimeout bounds the search for stock on other shards, which takes
	// several calls.
	restockTimeout = 2 * time.Second
	// soldOutFor is how long a proof that nothing is left is believed without looking at the
	// shards again; an event ends it earlier.
	soldOutFor = time.Second
	// lookRounds bounds how often a claim is decided again when all shards look empty although
	// stock is left. After that the claim is answered overloaded.
	lookRounds = 40
)

// Info is the gate's read access to the database.
type Info interface {
	// Shards returns the number of shards of the template's stock: 0 while the shards do not
	// exist yet, and after the template no longer needs them.
	Shards(ctx context.Context, templateID int64) (int, error)
	// Active returns the number of shards of each template that has shards, by template id.
	Active(ctx context.Context) (map[int64]int, error)
	// Retired reports whether the template had shards and has none any more.
	Retired(ctx context.Context, templateID int64) (bool, error)
	// Template returns the template, at most a second old, or
	// [template.ErrNotFound].
	Template(ctx context.Context, id int64) (template.Template, error)
	// Known returns the claim of an earlier request with the same key, or [claim.ErrNotFound].
	Known(ctx context.Context, r claim.Request) (claim.Claim, error)
	// Held returns, for each of the users that has coupons of the template, the number of these
	// coupons, and the requests that led to the coupons. Entries without a user have the number of coupons of
	// each of the households.
	Held(ctx context.Context, templateID int64, users []user.ID, households []int64) ([]gate.UserCount, []gate.IdempotencyRecord, error)
	// Household returns the number of the household for which the user's coupons of the template count; 0 = none.
	Household(ctx context.Context, templateID int64, by user.ID) (int64, error)
	// Ready returns after what time the shards that are being built will be open; 0 = unknown.
	Ready(ctx context.Context, templateID int64) (time.Duration, error)
	// Decided returns the user's claim if the database has its outcome, or
	// [claim.ErrNotFound].
	Decided(ctx context.Context, by user.ID, id claim.ID) (claim.Claim, error)
}

// Options tune a gate; the zero values are the values that performed best in measurements.
type Options struct {
	MaxGroup int // claims per script call, 0 = 256, at most 512
	// Observe, if set, is called with the size and duration of every script call.
	Observe func(size int, took time.Duration)
	// Later, if set, decides claims of coupons that staff give away after the shards were
	// removed.
	Later claim.Gate
	// Now is a clock for timestamps of answers; nil = time.Now.
	Now func() time.Time
	// Patience is how long a claim waits for shards that are being built
	// before it is answered overloaded; 0 = two seconds.
	Patience time.Duration
	Silent   bool // no call of writers and keepers: a rehearsal's look by themselves
}

// A Gate decides claims in Redis. Claims that arrive together at one shard are
// decided by one script call, and accepted claims are on a stream before Claim
// returns. It implements [claim.Gate].
type Gate struct {
	client  goredis.UniversalClient
	scripts scripts
	info    Info
	options Options

	mu     sync.Mutex
	drops  map[int64]*drop
	none   map[int64]time.Time      // templates that had no shards, until when that is believed
	rooms  map[roomKey]*waitingRoom // where claims wait for shards
	asked  singleflight.Group       // reads of the number of shards, shared by concurrent callers
	waited sync.Pool                // of *waiting that were answered

	active activeGates
	caller caller
}

// noneFor is how long it is believed that a template has no shards.
const noneFor = 200 * time.Millisecond

// maxNone bounds how many templates without shards are remembered.
const maxNone = 10_000

// drop is this process's cached state of one template.
type drop struct {
	id     int64
	shards int
	lanes  []*lane
	// households is set if the template has a household limit.
	households bool

	mu      sync.Mutex
	empty   []bool    // shards that had nothing left
	soldOut time.Time // believed until
}

// New returns a gate that uses client and does not close it.
func New(client goredis.UniversalClient, info Info, o Options) *Gate {
	if o.MaxGroup <= 0 || o.MaxGroup > maxGroup*2 {
		o.MaxGroup = maxGroup
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Patience = cmp.Or(o.Patience, patience)
	return &Gate{client: client, scripts: newScripts(), info: info, options: o, drops: map[int64]*drop{}, none: map[int64]time.Time{},
		rooms: map[roomKey]*waitingRoom{}, caller: caller{client: client, silent: o.Silent, pending: map[string]struct{}{}}}
}

// Claim returns an accepted claim, or the outcome of the first claim with the request's key; see
// [claim.Gate] for the refusals. While the shards are being built Claim waits for them, and
// returns [claim.ErrOverloaded] if that takes too long.
func (g *Gate) Claim(ctx context.Context, r claim.Request) (claim.Claim, error) {
	for end := time.Now().Add(g.options.Patience); ; {
		c, err := g.decide(ctx, r)
		if !errors.Is(err, errNoShards) {
			if ctx.Err() != nil && err != nil && fault.KindOf(err) == 0 { // the caller has hung up
				err = overloaded("it takes too long")
			}
			return c, err
		}
		if !g.await(ctx, r, end) {
			return claim.Claim{}, g.comeAgain(ctx, r.TemplateID)
		}
	}
}

// decide makes one attempt; it returns errNoShards while there are no shards.
func (g *Gate) decide(ctx context.Context, r claim.Request) (claim.Claim, error) {
	d, err := g.drop(ctx, r.TemplateID)
	if err != nil {
		return claim.Claim{}, err
	}
	if d == nil {
		return g.withoutShards(ctx, r)
	}
	// A repeated request must get its first answer even when the drop is sold out. Only requests
	// without a key cannot be repeated requests and are answered from memory.
	if r.Key == "" && d.isSoldOut() && !g.mayBeJudgedOtherwise(ctx, r) {
		return claim.Claim{}, claim.ErrSoldOut
	}
	if d.households {
		if r.Household, err = g.info.Household(ctx, r.TemplateID, r.UserID); err != nil {
			return claim.Claim{}, err
		}
	}
	word, err := d.lanes[gate.HomeShard(r.UserID, r.Household, d.shards)].do(ctx, r)
	if err != nil {
		return claim.Claim{}, err
	}
	return g.answer(ctx, d, r, word)
}

// mayBeJudgedOtherwise reports whether the template's last known state may lead to a refusal
// that has precedence over "sold out".
func (g *Gate) mayBeJudgedOtherwise(ctx context.Context, r claim.Request) bool {
	t, err := g.info.Template(ctx, r.TemplateID)
	return err != nil || t.Stored != template.Published || !g.options.Now().Before(t.EndsAt()) ||
		r.Door > 0 && g.options.Now().Before(t.OpensFor(r.Door)) ||
		r.Origin == claim.ByTap && t.Obtain != template.ByClaim || r.Origin == claim.ByCode && t.Obtain != template.ByCode
}

// Forget drops the cached facts that the template is sold out or has no shards. Call Forget when
// stock was raised or given back.
func (g *Gate) Forget(templateID int64) {
	g.mu.Lock()
	d := g.drops[templateID]
	delete(g.none, templateID)
	g.mu.Unlock()
	if d != nil {
		d.forget()
	}
}

// drop returns the memory of the template, nil if it has no shards.
func (g *Gate) drop(ctx context.Context, id int64) (*drop, error) {
	g.mu.Lock()
	d, none := g.drops[id], g.none[id]
	g.mu.Unlock()
	if d != nil || time.Now().Before(none) {
		return d, nil
	}
	shards, err := g.shards(ctx, id)
	if err != nil {
		return nil, err
	}
	var t template.Template
	if shards > 0 {
		if t, err = g.info.Template(ctx, id); err != nil {
			return nil, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if shards == 0 {
		if len(g.none) > maxNone {
			clear(g.none)
		}
		g.none[id] = time.Now().Add(noneFor)
		return nil, nil
	}
	delete(g.none, id)
	if d = g.drops[id]; d != nil {
		return d, nil
	}
	d = &drop{id: id, shards: shards, empty: make([]bool, shards), households: t.HouseholdLimit > 0}
	for i := range shards {
		d.lanes = append(d.lanes, &lane{gate: g, drop: d, shard: i})
	}
	g.drops[id] = d
	return d, nil
}

// withoutShards answers a claim of a template that has no shards, or lost them: from the
// database if the database can decide the claim; otherwise the claim waits for the shards.
func (g *Gate) withoutShards(ctx context.Context, r claim.Request) (claim.Claim, error) {
	if r.Key != "" {
		known, err := g.info.Known(ctx, r)
		if err == nil && (known.TemplateID != r.TemplateID || known.UserID != r.UserID) {
			return claim.Claim{}, claim.ErrIdempotency
		}
		if !errors.Is(err, claim.ErrNotFound) {
			return known, err
		}
	}
	t, err := g.info.Template(ctx, r.TemplateID)
	switch {
	case err != nil:
		return claim.Claim{}, err
	case t.Stored == template.Draft:
		return claim.Claim{}, template.ErrNotFound
	case t.Stored == template.Cancelled:
		return claim.Claim{}, claim.ErrCancelled
	case t.Stored == template.Closed:
		return g.afterTheEnd(ctx, r)
	}
	return claim.Claim{}, errNoShards
}

func (g *Gate) afterTheEnd(ctx context.Context, r claim.Request) (claim.Claim, error) {
	if r.Origin.Windowed() || g.options.Later == nil {
		return claim.Claim{}, claim.ErrEnded
	}
	retired, err := g.info.Retired(ctx, r.TemplateID)
	if err != nil {
		return claim.Claim{}, err
	}
	if !retired {
		return claim.Claim{}, overloaded("its shards are being cleared")
	}
	return g.options.Later.Claim(ctx, r)
}

// answer converts the script's word about one claim into an answer.
func (g *Gate) answer(ctx context.Context, d *drop, r claim.Request, word string) (claim.Claim, error) {
	switch word {
	case wordDraft:
		return claim.Claim{}, template.ErrNotFound
	case wordCancelled:
		return claim.Claim{}, claim.ErrCancelled
	case wordPaused:
		return claim.Claim{}, claim.ErrPaused
	case wordOtherWay:
		if r.Origin == claim.ByTap {
			return claim.Claim{}, claim.ErrNeedsCode
		}
		return claim.Claim{}, claim.ErrTakesNoCode
	case wordEnded:
		return claim.Claim{}, claim.ErrEnded
	case wordEarly:
		return claim.Claim{}, claim.ErrNotStarted
	case wordSoldOut:
		return claim.Claim{}, claim.ErrSoldOut
	case wordLimit:
		return claim.Claim{}, claim.ErrLimit
	case wordHousehold:
		return claim.Claim{}, claim.ErrHousehold
	case wordMoved:
		return g.withoutShards(ctx, r)
	case wordMissing, wordSealed:
		c, err := g.withoutShards(ctx, r)
		if !errors.Is(err, errNoShards) {
			g.markEmpty(d)
		}
		return c, err
	}
	if first, ok := strings.CutPrefix(word, "was "); ok {
		return g.repeated(ctx, r, first)
	}
	if at, ok := strings.CutPrefix(word, wordOK+" "); ok {
		ms, err := strconv.ParseInt(at, 10, 64)
		return claim.Claim{ID: r.ID, TemplateID: r.TemplateID, UserID: r.UserID, State: claim.Accepted, At: time.UnixMilli(ms).UTC()}, err
	}
	return claim.Claim{}, fmt.Errorf("gate: unexpected word %q", word)
}

// markEmpty drops the cached state of a template whose shards are gone; the next claim reads the
// number of shards from the database again.
func (g *Gate) markEmpty(d *drop) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.drops[d.id] == d {
		delete(g.drops, d.id)
	}
}

// repeated answers a request whose key was used before.
func (g *Gate) repeated(ctx context.Context, r claim.Request, first string) (claim.Claim, error) {
	idText, rest, _ := strings.Cut(first, " ")
	userText, at, _ := strings.Cut(rest, " ")
	id, err := claim.ParseID(idText)
	if err != nil {
		return claim.Claim{}, fmt.Errorf("gate: unreadable promise %q", first)
	}
	if userText != r.UserID.String() {
		return claim.Claim{}, claim.ErrIdempotency
	}
	found, err := g.info.Decided(ctx, r.UserID, id)
	if errors.Is(err, claim.ErrNotFound) {
		return claim.Claim{ID: id, TemplateID: r.TemplateID, UserID: r.UserID, State: claim.Accepted, At: g.acceptedAt(at)}, nil
	}
	return found, err
}

// acceptedAt parses the instant at which a claim was accepted. The shard forgets the instant
// once the claim is written.
func (g *Gate) acceptedAt(ms string) time.Time {
	if n, err := strconv.ParseInt(ms, 10, 64); err == nil {
		return time.UnixMilli(n).UTC()
	}
	return g.options.Now()
}

// comeAgain returns the answer to a claim that waited for shards in vain: overloaded, with the
// time after which the builder expects the shards to be open.
func (g *Gate) comeAgain(ctx context.Context, templateID int64) error {
	answer := g.asked.DoChan("ready "+strconv.FormatInt(templateID, 10), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		return g.info.Ready(ctx, templateID)
	})
	again := overloaded("its shards are being filled")
	select {
	case a := <-answer:
		if in, _ := a.Val.(time.Duration); in > again.After {
			again.After = in
		}
	case <-ctx.Done():
	}
	return again
}

func overloaded(why string) *fault.RetryAfter {
	return &fault.RetryAfter{Err: claim.ErrOverloaded.Because("claims of this drop cannot be decided right now: %s", why), After: time.Second}
}

func (d *drop) isSoldOut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.soldOut)
}

func (d *drop) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.soldOut = time.Time{}
	clear(d.empty)
}
