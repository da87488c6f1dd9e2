package drops

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/reminder"
	"dropbell/domain/staff/alert"
	"dropbell/domain/template"
)

const (
	// recountWindow and recountSlots bound the slots of one recount.
	recountWindow = time.Hour
	recountSlots  = 100
	// forecastHorizon is how far ahead missed openings are looked for.
	forecastHorizon = 24 * time.Hour
	// balancesLife is how old a recount may be from which alerts are made.
	balancesLife = 90 * time.Second
)

// census recounts the balance sheets of recent slots and forecasts coming slots.
type census struct {
	boards     dropsdb.Boards
	forecaster *forecast.Forecaster
	balances   balances

	differences *prometheus.GaugeVec
	recounted   prometheus.Gauge
	expired     *prometheus.GaugeVec
	misses      *prometheus.GaugeVec
}

func newCensus(d Deps) *census {
	perChannel := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"channel"})
	}
	c := &census{boards: d.Boards, forecaster: d.Forecaster, balances: balances{&alert.Memo{}, d.Templates.Store},
		differences: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_balance_difference",
			Help: "Recipients that a recent balance sheet is off by; only sheets that do not balance."}, []string{"template", "slot", "channel"}),
		recounted: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_balance_slots", Help: "Recent slots whose balance sheet was recounted."}),
		expired:   perChannel("dropbell_expired_reminders", "Reminders of recent slots that were not sent before the opening."),
		misses:    perChannel("dropbell_forecast_misses", "Messages due within 24 hours that would not go out before their opening."),
	}
	d.Registry.MustRegister(c.differences, c.recounted, c.expired, c.misses)
	return c
}

// off returns the balance sheets that the last recount found off.
func (c *census) off(context.Context) ([]alert.Condition, error) {
	return c.balances.memo.Get(app.Clock(), balancesLife)
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

func (c *census) forget() {
	for _, v := range []*prometheus.GaugeVec{c.differences, c.expired, c.misses} {
		v.Reset()
	}
	c.recounted.Set(0)
}

func setAll(v *prometheus.GaugeVec, values [delivery.Channels]int64) {
	for i, n := range values {
		v.WithLabelValues(delivery.Channel(i).String()).Set(float64(n))
	}
}

// balances says which drops' balance sheets do not add up.
type balances struct {
	memo  *alert.Memo
	drops template.Store
}

// found notes the lines that a recount found off.
func (b balances) found(ctx context.Context, lines []reminder.BalanceLine) error {
	off := map[int64]int64{}
	for _, l := range lines {
		off[l.Slot.TemplateID] += l.Difference()
	}
	list := []alert.Condition{}
	for id, n := range off {
		t, err := b.drops.Template(ctx, id)
		if err != nil {
			return err
		}
		number := strconv.FormatInt(id, 10)
		list = append(list, alert.Condition{Kind: alert.Balance, Object: number, Shop: t.ShopNumber, Template: id, Name: t.Name, Count: n, Path: "/templates/" + number + "/balance"})
	}
	b.memo.Set(list, app.Clock())
	return nil
}
