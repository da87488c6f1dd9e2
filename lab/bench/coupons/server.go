package coupons

import (
	"context"

	"dropbell/adapters/postgres"
	"dropbell/domain/coupon"
	"dropbell/lab/bench/serve"
	"dropbell/web/api/coupons"
)

// answer parses and answers steps of payment without deciding or storing them.
func answer() error {
	return serve.Coupons("coupons", func(context.Context, *postgres.DB) (coupons.Deps, error) {
		return coupons.Deps{Coupons: &coupon.Service{Store: answering{}, LockFor: coupon.DefaultLock}}, nil
	})
}
