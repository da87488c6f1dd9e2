package program

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/app"
)

// noticeRunsRecounted bounds how many runs of notices are recounted each time:
// up to a thousand readers each.
const noticeRunsRecounted = 200

// noticeCensus recounts the notices before coupons expire that went out recently.
type noticeCensus struct {
	notices     couponsdb.Notices
	differences *prometheus.GaugeVec
	recounted   prometheus.Gauge
}

func newNoticeCensus(stores app.Stores, r *prometheus.Registry) noticeCensus {
	c := noticeCensus{notices: stores.Notices,
		differences: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_notice_difference",
			Help: "Readers of recent notices before coupons expire who are not accounted for; only what does not balance."}, []string{"template", "run"}),
		recounted: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_notice_runs_recounted", Help: "Recent runs of notices that were recounted."})}
	r.MustRegister(c.differences, c.recounted)
	return c
}

func (c noticeCensus) count(ctx context.Context) error {
	off, looked, err := c.notices.RecentRuns(ctx, recountWindow, noticeRunsRecounted)
	if err != nil {
		return err
	}
	c.differences.Reset()
	for _, b := range off {
		c.differences.WithLabelValues(strconv.FormatInt(b.TemplateID, 10), strconv.FormatInt(b.Run, 10)).Set(float64(b.Difference()))
	}
	c.recounted.Set(float64(looked))
	return nil
}

func (c noticeCensus) forget() {
	c.differences.Reset()
	c.recounted.Set(0)
}
