package program

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/app"
)

// campaignsRecounted bounds how many campaigns' accounts are recomputed each time.
const campaignsRecounted = 20

// campaignCensus recomputes the accounts of recent campaigns.
type campaignCensus struct {
	campaigns   campaignsdb.Campaigns
	differences *prometheus.GaugeVec
	recounted   prometheus.Gauge
}

func newCampaignCensus(p *program) *campaignCensus {
	c := &campaignCensus{campaigns: p.campaigns,
		differences: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_campaign_difference",
			Help: "Recipients that a recent campaign's account is off by; only accounts that do not balance."}, []string{"campaign"}),
		recounted: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_campaigns_recounted", Help: "Recent campaigns whose account was recounted."})}
	p.metrics.registry.MustRegister(c.differences, c.recounted)
	return c
}

func (c *campaignCensus) count(ctx context.Context) error {
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

func (c *campaignCensus) forget() {
	c.differences.Reset()
	c.recounted.Set(0)
}

// auditCampaign prints a campaign's account as the rows add up.
func auditCampaign(ctx context.Context, stores app.Stores, id int64, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	b, err := stores.Campaigns.Balance(ctx, id)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "audience\tsent\tskipped\texpired\tdead\tin flight\ttwice\tdifference\t")
	c := b.Counted
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", c.Reserved, c.Sent, c.Skipped, c.Expired, c.Dead, c.InFlight, b.Twice, b.Difference())
	if err := w.Flush(); err != nil {
		return err
	}
	if d := b.Difference(); d != 0 {
		return difference(fmt.Sprintf("the account of campaign %d is off by %d", id, d))
	}
	_, err = fmt.Fprintf(out, "campaign %d balances\n", id)
	return err
}
