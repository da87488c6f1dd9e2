package program

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/worker/shell"
)

const (
	censusEvery = 30 * time.Second
	// censusTerm is how long one worker counts for all of them. The term is
	// limited because a lost connection, and the lock with it, is noticed at its
	// end only; two concurrent counts do no harm.
	censusTerm = 10 * time.Minute
	// recountWindow and recountSlots bound what is recounted each time.
	recountWindow = time.Hour
	recountSlots  = 100
	// forecastHorizon is how far ahead missed openings are looked for.
	forecastHorizon = 24 * time.Hour
)

// census is what one worker counts for all of them, because it is the same
// for all and costs the database something.
type census struct {
	boards     dropsdb.Boards
	forecaster *reminder.Forecaster
	leader     workdb.Housekeeping
	balances   balances
	campaigns  *campaignCensus
	figures    figures
	counts     []shell.Count

	differences *prometheus.GaugeVec
	recounted   prometheus.Gauge
	countedAt   prometheus.Gauge
	expired     *prometheus.GaugeVec
	misses      *prometheus.GaugeVec
}

func newCensus(p *program) *census {
	perChannel := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"channel"})
	}
	c := &census{
		campaigns: newCampaignCensus(p),
		figures:   p.figures,
		counts:    p.roles.Counts,
		balances:  balances{&p.balances, p.Stores.Templates},
		boards:    p.Stores.Boards, leader: p.Stores.Housekeeping,
		forecaster: p.Forecaster(),
		differences: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_balance_difference",
			Help: "Recipients that a recent balance sheet is off by; only sheets that do not balance."}, []string{"template", "slot", "channel"}),
		recounted: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_balance_slots", Help: "Recent slots whose balance sheet was recounted."}),
		countedAt: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_census_timestamp_seconds", Help: "When this worker last counted for all."}),
		expired:   perChannel("dropbell_expired_reminders", "Reminders of recent slots that were not sent before the opening."),
		misses:    perChannel("dropbell_forecast_misses", "Messages due within 24 hours that would not go out before their opening."),
	}
	p.metrics.registry.MustRegister(c.differences, c.recounted, c.countedAt, c.expired, c.misses)
	return c
}

// takeCensus counts every 30 s for a while if no other worker does.
func (p *program) takeCensus(ctx context.Context) error {
	return p.census.leader.Leader(ctx, "census", func(ctx context.Context) error {
		defer p.census.forget()
		for end := time.Now().Add(censusTerm); time.Now().Before(end); {
			if err := p.census.count(ctx); err != nil || !shell.Sleep(ctx, censusEvery) {
				return err
			}
		}
		return nil
	})
}

func (c *census) count(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, censusEvery)
	defer cancel()
	if err := errors.Join(c.recount(ctx), c.campaigns.count(ctx), c.forecast(ctx), c.figures.correct(ctx), c.take(ctx)); err != nil {
		return err
	}
	c.countedAt.SetToCurrentTime()
	return nil
}

func (c *census) recount(ctx context.Context) error {
	r, err := c.boards.Recount(ctx, recountWindow, recountSlots)
	if err != nil {
		return err
	}
	if err := c.balances.found(ctx, r.Differences); err != nil {
		return err
	}
	c.differences.Reset()
	for _, l := range r.Differences {
		c.differences.WithLabelValues(strconv.FormatInt(l.Slot.TemplateID, 10), strconv.Itoa(int(l.Slot.Slot)), l.Channel.String()).
			Add(float64(l.Difference())) // a moved opening has one slot twice
	}
	c.recounted.Set(float64(r.Slots))
	setAll(c.expired, r.Expired)
	return nil
}

func (c *census) forecast(ctx context.Context) error {
	channels, err := c.forecaster.Forecast(ctx, forecastHorizon)
	if err == nil {
		err = c.forecaster.Keep(ctx, channels)
	}
	if err != nil {
		return err
	}
	var sums [delivery.Channels]int64
	for _, f := range channels {
		sums[f.Channel] = f.Missed
	}
	setAll(c.misses, sums)
	return nil
}

func (c *census) take(ctx context.Context) (err error) {
	for _, one := range c.counts {
		err = errors.Join(err, one.Take(ctx))
	}
	return err
}

// forget removes what the next worker will say, so that nothing stale stays.
func (c *census) forget() {
	for _, v := range []*prometheus.GaugeVec{c.differences, c.expired, c.misses} {
		v.Reset()
	}
	c.recounted.Set(0)
	c.campaigns.forget()
	for _, one := range c.counts {
		one.Forget()
	}
}

func setAll(v *prometheus.GaugeVec, values [delivery.Channels]int64) {
	for i, n := range values {
		v.WithLabelValues(delivery.Channel(i).String()).Set(float64(n))
	}
}
