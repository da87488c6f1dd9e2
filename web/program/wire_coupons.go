package program

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/postgres"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/app"
	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/job"
)

// coupons returns the steps of payment, counted.
func (p *program) coupons() *coupon.Service {
	taken := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_coupon_steps_total",
		Help: "Steps of payment that changed a coupon (done) or were refused."}, []string{"step", "result"})
	for _, s := range []coupon.Step{coupon.StepLock, coupon.StepConfirm, coupon.StepRelease, coupon.StepRefund} {
		taken.WithLabelValues(string(s), coupon.Done)
		taken.WithLabelValues(string(s), "refused")
	}
	p.Registry.MustRegister(taken)
	return &coupon.Service{Store: countedCoupons{postgres.NewCouponSteps(p.DB), taken}, LockFor: p.Config.LockFor}
}

// grants are the lists of users who are given coupons.
func (p *program) grants() *coupon.Grants {
	return &coupon.Grants{Store: postgres.NewGrants(p.DB), Jobs: &job.Service{Store: workdb.NewJobs(p.DB)}, Now: app.Clock}
}

// countedCoupons counts what payment does.
type countedCoupons struct {
	postgres.CouponSteps
	taken *prometheus.CounterVec
}

func (s countedCoupons) Save(ctx context.Context, m coupon.Move) (coupon.Coupon, error) {
	c, err := s.CouponSteps.Save(ctx, m)
	if err == nil {
		s.taken.WithLabelValues(string(m.Ops[len(m.Ops)-1].Step), coupon.Done).Inc()
	}
	return c, err
}

func (s countedCoupons) Refused(ctx context.Context, op coupon.Operation) error {
	err := s.CouponSteps.Refused(ctx, op)
	if err == nil || errors.Is(err, context.Canceled) || fault.KindOf(err) != 0 {
		s.taken.WithLabelValues(string(op.Step), "refused").Inc()
	}
	return err
}
