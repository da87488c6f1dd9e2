package campaigns

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	campaignsdb "dropbell/adapters/postgres/campaigns"
)

// recountWindow is how old campaigns may be whose accounts are recomputed each time.
const recountWindow = time.Hour

// campaignsRecounted bounds how many campaigns' accounts are recomputed each time.
const campaignsRecounted = 20

// census recomputes the accounts of recent campaigns.
type census struct {
	campaigns   campaignsdb.Campaigns
	differences *prometheus.GaugeVec
	recounted   prometheus.Gauge
}

func newCensus(d Deps) *census {
	c := &census{campaigns: d.Rows,
		differences: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_campaign_difference",
			Help: "Recipients that a recent campaign's account is off by; only accounts that do not balance."}, []string{"campaign"}),
		recounted: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_campaigns_recounted", Help: "Recent campaigns whose account was recounted."})}
	d.Registry.MustRegister(c.differences, c.recounted)
	return c
}

func (c *census) count(ctx context.Context) error {
	off, looked, err := c.campaigns.RecentDifferences(ctx, recountWindow, campaignsRecounted)
	if err != nil {
		return err
	}
	c.differences.Reset()
	for id, d := range off {
		c.differences.WithLabelValues(strconv.FormatInt(id, 10)).Set(float64(d))
	}
	c.recounted.Set(float64(looked))
	return nil
}

func (c *census) forget() {
	c.differences.Reset()
	c.recounted.Set(0)
}
