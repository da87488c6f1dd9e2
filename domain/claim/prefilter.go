package claim

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// TemplateCache is where a [Prefilter] looks templates up: the entry of a template in
// use is renewed at least once a second.
type TemplateCache interface {
	// Shared returns the template, or [template.ErrNotFound] if there is none.
	// Callers share it, so that thousands of waiting requests need no copy each;
	// they must not change it.
	Shared(ctx context.Context, id int64) (*template.Template, error)
	// Current returns the template like Shared, but as it was stored at some moment
	// after the call began. Concurrent calls share one read.
	Current(ctx context.Context, id int64) (*template.Template, error)
	// Forget drops the cached template, so that the next call reads the stored one.
	Forget(id int64)
}

// Record is how a [Prefilter] reads earlier claims.
type Record interface {
	// Repetition returns the claim that was issued for the key, or [ErrNotFound].
	Repetition(ctx context.Context, k RepeatKey) (Claim, error)
	// Holders returns the set of users who were given a coupon of the template, as a
	// function that reports membership.
	Holders(ctx context.Context, templateID int64) (func(user.ID) bool, error)
	// Clock reads the database's clock.
	Clock(ctx context.Context) (time.Time, error)
}

// A Prefilter is a [Gate] in front of another gate. It returns those refusals that the
// gate behind it could not decide differently, so that refused requests cost no
// transaction.
//
// The template's cached state, up to a second old, only tells which requests are
// likely to be refused. The refusal is decided by a read of the template that began
// after the request arrived; all requests of the moment share this read. Without it a
// repetition could be refused although another process has granted the claim since,
// from raised stock or after the opening was moved. A template that is closed or
// cancelled stays so and is not read again.
//
// It answers "too early" and "too late" only at a safe distance from the opening and
// the end: the precision to which this machine's clock has been compared with the
// database's. Closer to them the database decides.
//
// A repetition is answered with its coupon even when the template is sold out. It is
// recognised by its key. The key is looked up unless the user is known to hold no
// coupon of the template; a user without a coupon is refused even if the key was once
// used for another template.
type Prefilter struct {
	Gate Gate
	// Others are the gates of other claim modes. The prefilter passes requests to
	// them without judging them.
	Others    map[template.ClaimMode]Gate
	Templates TemplateCache
	Record    Record
	Now       func() time.Time
	// Admit, if set, is asked about each tap of a protected drop that the gate is to decide.
	Admit func(t *template.Template, by user.ID, pass string) error
	// Answered, if set, is called with each refusal that the gate was not asked for.
	Answered func(error)

	drift     atomic.Pointer[drift]
	comparing atomic.Bool
	holders   holderSets
}

// Claim is part of [Gate].
func (d *Prefilter) Claim(ctx context.Context, r Request) (Claim, error) {
	at, err := d.look(ctx, &r, d.Templates.Shared)
	if err == nil && at.refusal != nil && !at.final {
		at, err = d.lookAgain(ctx, &r)
	}
	switch {
	case err != nil:
		return Claim{}, err
	case at.refusal != nil:
		return d.refuse(ctx, &r, &at)
	}
	if at.protected != nil && r.Origin == ByTap && d.Admit != nil {
		if err := d.Admit(at.protected, r.UserID, r.Pass); err != nil {
			return Claim{}, err
		}
	}
	c, err := at.gate.Claim(ctx, r)
	if at.own && errors.Is(err, ErrSoldOut) {
		d.hearSoldOut(ctx, r.TemplateID)
	}
	return c, err
}

// A view is the prefilter's judgement of a request by one state of its template.
type view struct {
	refusal error // nil if no refusal is certain
	final   bool  // whether the refusal cannot change any more
	gate    Gate  // decides the request if refusal is nil
	// protected is the template if its taps need a pass, otherwise nil.
	protected *template.Template
	own       bool // whether gate is the prefilter's Gate
	stock     holderStock
}

// look finds the request's template with find and judges it.
func (d *Prefilter) look(ctx context.Context, r *Request, find func(context.Context, int64) (*template.Template, error)) (view, error) {
	t, err := find(ctx, r.TemplateID)
	if errors.Is(err, template.ErrNotFound) {
		return view{refusal: err}, nil
	}
	if err != nil {
		return view{}, err
	}
	if other, ok := d.Others[t.ClaimMode]; ok {
		return view{gate: other, protected: protected(t)}, nil
	}
	early, late := d.span(ctx)
	v := view{refusal: certain(t, r, early, late), gate: d.Gate, own: true, stock: holderStock{stockFor(t, r.Origin, late), t.Returned}, protected: protected(t)}
	v.final = t.Stored == template.Cancelled || t.Stored == template.Closed && errors.Is(v.refusal, ErrEnded) && !t.MayReopen(d.Now())
	return v, nil
}

// protected returns t if its taps need a pass, otherwise nil.
func protected(t *template.Template) *template.Template {
	if t.Protected() {
		return t
	}
	return nil
}

// lookAgain judges the request by the template as it is now, after the cached state
// refused the request. An outdated cached state is dropped once, for all requests
// that find it outdated.
func (d *Prefilter) lookAgain(ctx context.Context, r *Request) (view, error) {
	now, err := d.look(ctx, r, d.Templates.Current)
	if err != nil || now.refusal != nil {
		return now, err
	}
	if cached, err := d.look(ctx, r, d.Templates.Shared); err == nil && cached.refusal != nil {
		d.Templates.Forget(r.TemplateID)
	}
	return now, nil
}

func (d *Prefilter) refuse(ctx context.Context, r *Request, at *view) (Claim, error) {
	if r.Key != "" && d.mayRepeat(ctx, r, at) {
		known, err := d.Record.Repetition(ctx, RepeatKey{r.Origin, r.Key})
		switch {
		case err == nil && (known.TemplateID != r.TemplateID || known.UserID != r.UserID):
			return Claim{}, ErrIdempotency
		case err == nil || !errors.Is(err, ErrNotFound):
			return known, err
		}
	}
	if d.Answered != nil {
		d.Answered(at.refusal)
	}
	return Claim{}, at.refusal
}

// hearSoldOut drops the cached template if it still shows stock although the gate has
// none left.
func (d *Prefilter) hearSoldOut(ctx context.Context, id int64) {
	if now, err := d.Templates.Shared(ctx, id); err == nil && now.StockLeft() > 0 && now.Issued < now.SellableAt(d.Now()) {
		d.Templates.Forget(id)
	}
}

// certain returns the refusal that the gate would give at every instant from early to
// late; nil if there is no such refusal.
func certain(t *template.Template, r *Request, early, late time.Time) error {
	first, last := offer(t, r.Origin, r.Door, early), offer(t, r.Origin, r.Door, late)
	if first == nil || last == nil || fault.CodeOf(first) != fault.CodeOf(last) {
		return nil
	}
	return first
}

// mayRepeat reports whether the key could have won a coupon before.
func (d *Prefilter) mayRepeat(ctx context.Context, r *Request, at *view) bool {
	switch {
	case errors.Is(at.refusal, ErrSoldOut):
		return d.holders.mayHold(ctx, d.Record, r, at.stock)
	case errors.Is(at.refusal, template.ErrNotFound), errors.Is(at.refusal, ErrNotStarted):
		// The key may still have been used for another template. That mistake is
		// reported once this template opens.
		return false
	}
	return true
}

const (
	// driftFor is how long a comparison of clocks is used; a quartz clock drifts by
	// less than a millisecond in this time.
	driftFor = 10 * time.Second
	// slack allows for clocks that are stepped and for the resolution of both clocks.
	slack = 200 * time.Millisecond
	// unsure is the distance while clocks have not been compared.
	unsure = time.Hour
)

// drift is how far the database's clock was ahead, and how well that is known.
type drift struct {
	at            time.Time
	offset, doubt time.Duration
}

// olderThan reports whether k is nil or was measured longer than age before now.
func (k *drift) olderThan(age time.Duration, now time.Time) bool {
	return k == nil || now.Before(k.at) || now.Sub(k.at) > age
}

// span returns the earliest and the latest instant that the database's clock may
// show now.
func (d *Prefilter) span(ctx context.Context) (early, late time.Time) {
	known, now := d.drift.Load(), d.Now()
	// One caller compares the clocks; the others use the known difference.
	if known.olderThan(driftFor/2, now) && d.comparing.CompareAndSwap(false, true) {
		known = d.compare(ctx)
		d.comparing.Store(false)
		now = d.Now()
	}
	if known.olderThan(driftFor, now) {
		return now.Add(-unsure), now.Add(unsure)
	}
	now = now.Add(known.offset)
	return now.Add(-known.doubt - slack), now.Add(known.doubt + slack)
}

// compare measures the difference between the clocks. If the database's time cannot
// be read, the gate decides, or reports that it cannot.
func (d *Prefilter) compare(ctx context.Context) *drift {
	asked := d.Now()
	theirs, err := d.Record.Clock(ctx)
	told := d.Now()
	known := &drift{at: told, offset: theirs.Sub(asked.Add(told.Sub(asked) / 2)), doubt: told.Sub(asked) / 2}
	if err != nil {
		known.offset, known.doubt = 0, unsure
	}
	d.drift.Store(known)
	return known
}

// holderSets remembers the holders of coupons of templates that are sold out: with the
// stock used up, no further user joins them.
type holderSets struct {
	mu   sync.Mutex
	sets map[int64]holderSet
}

type holderSet struct {
	stock holderStock
	holds func(user.ID) bool // nil while it is being loaded
}

// holderStock is the state of the stock for which a set of holders is valid: until
// the stock is raised or a coupon is returned to it, no user joins the set.
type holderStock struct{ stock, returned int64 }

const (
	maxHolderSets = 64
	maxHolders    = 2_000_000 // above, a key is looked up rather than the set loaded
	// loadHoldersFor bounds the loading of a set. A request waits for the set only
	// until its own context ends.
	loadHoldersFor = 30 * time.Second
)

// mayHold reports whether the requesting user may hold a coupon of the sold-out
// template.
func (h *holderSets) mayHold(ctx context.Context, from Record, r *Request, stock holderStock) bool {
	if stock.stock > maxHolders {
		return true
	}
	h.mu.Lock()
	set, known := h.sets[r.TemplateID]
	load := !known || set.stock != stock
	if load {
		h.remember(r.TemplateID, holderSet{stock: stock})
	}
	h.mu.Unlock()
	if load {
		set.holds = h.load(ctx, from, r.TemplateID, stock)
	}
	return set.holds == nil || set.holds(r.UserID)
}

// load returns the set of holders, or nil if ctx ends before the set is loaded.
// Loading continues then, since later requests use the set.
func (h *holderSets) load(ctx context.Context, from Record, templateID int64, stock holderStock) func(user.ID) bool {
	loaded := make(chan func(user.ID) bool, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadHoldersFor)
		defer cancel()
		holds, err := from.Holders(ctx, templateID)
		h.mu.Lock()
		defer h.mu.Unlock()
		if err != nil {
			delete(h.sets, templateID)
		} else if h.sets[templateID].stock == stock {
			h.remember(templateID, holderSet{stock, holds})
		}
		loaded <- holds
	}()
	select {
	case holds := <-loaded:
		return holds
	case <-ctx.Done():
		return nil
	}
}

func (h *holderSets) remember(id int64, set holderSet) {
	if h.sets == nil {
		h.sets = map[int64]holderSet{}
	}
	for old := range h.sets {
		if len(h.sets) < maxHolderSets {
			break
		}
		delete(h.sets, old) // any of them: it is loaded again when asked for
	}
	h.sets[id] = set
}
