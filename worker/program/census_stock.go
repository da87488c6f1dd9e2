package program

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
)

const (
	// sellingWindow and sellingTemplates bound whose stock is recounted.
	sellingWindow    = 10 * time.Minute
	sellingTemplates = 20
)

// stockCensus recounts the coupons of what is being sold.
type stockCensus struct {
	ledgers     couponsdb.Ledgers
	differences *prometheus.GaugeVec
	recounted   prometheus.Gauge
}

func newStockCensus(db *postgres.DB, r *prometheus.Registry) stockCensus {
	c := stockCensus{ledgers: couponsdb.NewLedgers(db),
		differences: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_stock_difference",
			Help: "Coupons that a stock ledger is off by; only ledgers that do not add up."}, []string{"template"}),
		recounted: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_stock_ledgers", Help: "Templates selling now whose stock was recounted."})}
	r.MustRegister(c.differences, c.recounted)
	return c
}

func (c stockCensus) count(ctx context.Context) error {
	list, err := c.ledgers.Selling(ctx, sellingWindow, sellingTemplates)
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
