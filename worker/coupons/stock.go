package coupons

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
)

const (
	// sellingWindow and sellingTemplates bound whose stock is accounted for.
	sellingWindow    = 10 * time.Minute
	sellingTemplates = 20
	// sellingOwners is for how many coupons per recount the per-user counts are compared with
	// the rows: a second of work or less.
	sellingOwners = 100_000
)

// stockCensus accounts for the coupons of the drops that are selling.
type stockCensus struct {
	ledgers     couponsdb.Ledgers
	differences *prometheus.GaugeVec
	recounted   prometheus.Gauge
}

func newStockCensus(d Deps) stockCensus {
	c := stockCensus{ledgers: d.Stock,
		differences: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_stock_difference",
			Help: "Coupons that a stock ledger is off by; only ledgers that do not add up."}, []string{"template"}),
		recounted: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_stock_ledgers", Help: "Templates selling now whose stock was accounted for."})}
	d.Registry.MustRegister(c.differences, c.recounted)
	return c
}

func (c stockCensus) count(ctx context.Context) error {
	list, err := c.ledgers.Selling(ctx, sellingWindow, sellingTemplates, sellingOwners)
	if err != nil {
		return err
	}
	c.differences.Reset()
	for _, l := range list {
		if off := l.Difference(); off != 0 {
			c.differences.WithLabelValues(strconv.FormatInt(l.TemplateID, 10)).Set(float64(off))
		}
	}
	c.recounted.Set(float64(len(list)))
	return nil
}

func (c stockCensus) forget() {
	c.differences.Reset()
	c.recounted.Set(0)
}
