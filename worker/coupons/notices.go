package coupons

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
)

// recountWindow is how old runs of notices may be that are recounted each time.
const recountWindow = time.Hour

// noticeRunsRecounted bounds how many runs of notices are recounted each time. A run has up to a
// thousand recipients.
const noticeRunsRecounted = 200

// noticeCensus recounts the notices before coupons expire that went out recently.
type noticeCensus struct {
	notices     couponsdb.Notices
	differences *prometheus.GaugeVec
	recounted   prometheus.Gauge
}

func newNoticeCensus(d Deps) noticeCensus {
	c := noticeCensus{notices: d.NoticeRuns,
		differences: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dropbell_notice_difference",
			Help: "Readers of recent notices before coupons expire who are not accounted for; only what does not balance."}, []string{"template", "run"}),
		recounted: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_notice_runs_recounted", Help: "Recent runs of notices that were recounted."})}
	d.Registry.MustRegister(c.differences, c.recounted)
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
