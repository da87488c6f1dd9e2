// Package lookup caches templates in the process for the hot paths. The cache is bounded, and at
// most one load per template runs at a time. Callers cannot fill it with ids that do not exist.
package lookup

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"dropbell/domain/template"
)

// Source is where templates really are.
type Source interface {
	// Template returns [template.ErrNotFound] if there is none.
	Template(ctx context.Context, id int64) (template.Template, error)
	// TemplatesNow returns the existing templates among ids, in any order.
	TemplatesNow(ctx context.Context, ids []int64) ([]template.Template, error)
	// NewestTemplate returns the greatest id there is, 0 if there is none.
	NewestTemplate(ctx context.Context) (int64, error)
}

const (
	// life bounds how stale an answer can be even if no event arrives.
	life = 900 * time.Millisecond
	// refreshAfter is the age at which a template in use is reloaded before it expires. Callers
	// do not wait for the reload.
	refreshAfter = 500 * time.Millisecond
	// newestEvery limits the cost of look-ups of unknown ids: one cheap query per interval, for
	// any number of callers.
	newestEvery = 50 * time.Millisecond
	maxEntries  = 20_000
	// loadFor is when a query is given up: end users wait for it.
	loadFor = 500 * time.Millisecond
	// lastFor is how long the last result is reused without the cache. In a rush all requests
	// look up the same template. A cache that counts accesses in order to evict costs more than
	// the remaining steps of the look-up.
	lastFor = 10 * time.Millisecond
)

// entry is a template or the knowledge that there is none (a gap in the ids).
type entry struct {
	template template.Template
	missing  bool
}

// A finding is a result of the cache. It is valid until an instant, or until Forget is called.
type finding struct {
	id        int64
	until     time.Time
	forgotten int64
	entry     *entry
}

// Templates looks templates up.
type Templates struct {
	source Source
	cache  *otter.Cache[int64, *entry]
	now    func() time.Time

	last      atomic.Pointer[finding]
	forgotten atomic.Int64 // how often

	newest  atomic.Int64
	asking  sync.Mutex
	askedAt time.Time
	askErr  error // of the last time; it holds for as long as an answer

	rounds rounds
}

// New returns an empty cache in front of source.
func New(source Source, now func() time.Time) (*Templates, error) {
	cache, err := otter.New(&otter.Options[int64, *entry]{
		MaximumSize:       maxEntries,
		ExpiryCalculator:  otter.ExpiryWriting[int64, *entry](life),
		RefreshCalculator: otter.RefreshWriting[int64, *entry](refreshAfter),
		Logger:            &otter.NoopLogger{}, // a failed refresh shows when the entry expires
	})
	return &Templates{source: source, cache: cache, now: now}, err
}

// Template returns the template, at most a second old, or [template.ErrNotFound]. An id beyond
// the newest id is refused without a question to the database or the cache; ids begin at 1 and
// have no large gaps.
func (t *Templates) Template(ctx context.Context, id int64) (template.Template, error) {
	found, err := t.Shared(ctx, id)
	if err != nil {
		return template.Template{}, err
	}
	return *found, nil
}

// Shared is [Templates.Template] without a copy: callers must not change the
// result.
func (t *Templates) Shared(ctx context.Context, id int64) (*template.Template, error) {
	if id <= 0 {
		return nil, template.ErrNotFound
	}
	if err := t.checkNewest(ctx, id); err != nil {
		return nil, err
	}
	e, err := t.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if e.missing {
		return nil, template.ErrNotFound
	}
	return &e.template, nil
}

// find returns the last finding if it is valid, and otherwise the entry of the cache.
func (t *Templates) find(ctx context.Context, id int64) (*entry, error) {
	now, forgotten := t.now(), t.forgotten.Load()
	if f := t.last.Load(); f != nil && f.id == id && f.forgotten == forgotten && now.Before(f.until) && !now.Before(f.until.Add(-lastFor)) {
		return f.entry, nil
	}
	return t.findCached(ctx, id, now, forgotten)
}

func (t *Templates) findCached(ctx context.Context, id int64, now time.Time, forgotten int64) (*entry, error) {
	e, err := t.cache.Get(ctx, id, otter.LoaderFunc[int64, *entry](t.load))
	if err != nil {
		return nil, err
	}
	// Loading may have taken long: it holds from before that.
	t.last.Store(&finding{id, now.Add(lastFor), forgotten, e})
	return e, nil
}

func (t *Templates) load(ctx context.Context, id int64) (*entry, error) {
	// One caller loads for many: its hanging up must not fail the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadFor)
	defer cancel()
	found, err := t.source.Template(ctx, id)
	if errors.Is(err, template.ErrNotFound) {
		return &entry{missing: true}, nil
	}
	return &entry{template: found}, err
}

// checkNewest returns [template.ErrNotFound] for ids that no template has yet.
func (t *Templates) checkNewest(ctx context.Context, id int64) error {
	if id <= t.newest.Load() {
		return nil
	}
	t.asking.Lock()
	defer t.asking.Unlock()
	if now := t.now(); now.Sub(t.askedAt) >= newestEvery || now.Before(t.askedAt) {
		t.ask(ctx)
	}
	switch {
	case id <= t.newest.Load():
		return nil
	case t.askErr != nil:
		return t.askErr
	}
	return template.ErrNotFound
}

// ask reads the newest id for all waiting look-ups. An error also ends their wait: a database
// that does not answer must not be queried by each of them in turn.
func (t *Templates) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadFor)
	defer cancel()
	newest, err := t.source.NewestTemplate(ctx)
	if err == nil {
		t.newest.Store(max(t.newest.Load(), newest))
	}
	t.askErr, t.askedAt = err, t.now()
}

// Forget makes the next look-up load the template again. Call Forget when this process or
// another has changed the template. The template then exists, so its id counts as known even if
// the newest id was read a moment before.
func (t *Templates) Forget(id int64) {
	for newest := t.newest.Load(); newest < id && !t.newest.CompareAndSwap(newest, id); {
		newest = t.newest.Load()
	}
	t.cache.Invalidate(id)
	t.forgotten.Add(1)
}

// Size returns how many templates are cached, about.
func (t *Templates) Size() int { return t.cache.EstimatedSize() }
