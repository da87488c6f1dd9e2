package program

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/coupon"
	"dropbell/domain/fault"
)

// countedCoupons counts the operations of payment.
type countedCoupons struct {
	couponsdb.CouponSteps
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
