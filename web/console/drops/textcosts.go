package drops

import (
	"context"
	"maps"
	"sync"
	"time"

	"dropbell/domain/forecast"
	"dropbell/domain/template"
	"dropbell/web/console/shell"
)

// textCostLife is the greatest age of the estimated cost of a drop's text messages: the page of a
// drop is read every second.
const textCostLife = time.Minute

// textCosts are the estimates of the drops that are looked at.
type textCosts struct {
	*handlers

	mu sync.Mutex
	of map[int64]*textCost
}

// textCost is the estimate of one version of a drop.
type textCost struct {
	version int64
	read    time.Time
	recent  *shell.Recent[*forecast.TextCost]
}

// get returns the estimate; nil if there are no text messages to come. A failed estimate is cached
// as nil for textCostLife too, so that the page shows no cost for that time.
func (c *textCosts) get(ctx context.Context, t template.Template) *forecast.TextCost {
	cost, err := c.known(t).recent.Get(ctx)
	if err != nil { // the request has ended
		return nil
	}
	return cost
}

func (c *textCosts) known(t template.Template) *textCost {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(c.of, func(_ int64, o *textCost) bool { return now.Sub(o.read) > textCostLife })
	o := c.of[t.ID]
	if o == nil || o.version != t.Version {
		o = &textCost{version: t.Version, recent: shell.NewRecent(textCostLife, func(ctx context.Context) (*forecast.TextCost, error) {
			cost, err := c.TextCosts.Of(ctx, t)
			if err != nil {
				c.Log.WarnContext(ctx, "the cost of text messages cannot be estimated", "template", t.ID, "error", err)
				return nil, nil
			}
			return cost, nil
		})}
		c.of[t.ID] = o
	}
	o.read = now
	return o
}
