package program

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/domain/pause"
	"dropbell/worker/shell"
)

const (
	censusEvery = 30 * time.Second
	// censusTerm is how long one worker counts for all workers. The term is limited because a
	// worker notices a lost connection, and with it the lost lock, only at the end of the term.
	// Two concurrent counts do no harm.
	censusTerm = 10 * time.Minute
)

// census is the set of counts that one worker takes for all workers, because the counts are the
// same for all and cost the database time.
type census struct {
	counts    []shell.Count
	countedAt prometheus.Gauge
}

func newCensus(counts []shell.Count, r *prometheus.Registry) *census {
	c := &census{counts: counts, countedAt: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_census_timestamp_seconds", Help: "When this worker last counted for all."})}
	r.MustRegister(c.countedAt)
	return c
}

// takeCensus counts every 30 s for a while if no other worker does.
func (p *program) takeCensus(ctx context.Context) error {
	return p.Stores.Housekeeping.Leader(ctx, "census", func(ctx context.Context) error {
		defer p.census.forget()
		for end := time.Now().Add(censusTerm); time.Now().Before(end); {
			if err := p.census.count(ctx); err != nil || !pause.For(ctx, censusEvery) {
				return err
			}
		}
		return nil
	})
}

func (c *census) count(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, censusEvery)
	defer cancel()
	for _, one := range c.counts {
		err = errors.Join(err, one.Take(ctx))
	}
	if err == nil {
		c.countedAt.SetToCurrentTime()
	}
	return err
}

// forget removes what the next worker will say, so that nothing stale stays.
func (c *census) forget() {
	for _, one := range c.counts {
		one.Forget()
	}
}
