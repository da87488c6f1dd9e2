package app

import (
	"context"
	"fmt"
	"math/rand/v2"

	"dropbell/adapters/beacon"
	"dropbell/adapters/config"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/draw"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Draws are the keys and sources of draws of an installation.
type Draws struct {
	Keys    draw.Keys
	Sources draw.Sources
	local   *beacon.Local
}

// NewDraws returns the keys and sources that cfg names. The local beacon follows from the last key, which
// stays when a new key is put in front.
func NewDraws(cfg config.Config) (d Draws, err error) {
	if d.Keys, err = draw.NewKeys(cfg.DrawKeys); err != nil {
		return d, fmt.Errorf("DRAW_KEY: %w", err)
	}
	d.Sources.Drand = len(cfg.DrandURLs) > 0
	if !cfg.LocalBeacon || len(d.Keys) == 0 {
		return d, nil
	}
	d.local, err = beacon.NewLocal(d.Keys[len(d.Keys)-1].Beacon())
	if err == nil {
		d.Sources.Local = d.local.Public()
	}
	return d, err
}

// Check is [template.Service.Draws]; it is nil without keys.
func (d Draws) Check() func(template.Opening) error {
	if len(d.Keys) == 0 {
		return nil
	}
	return d.Sources.Check
}

// DrawOperator returns what takes the steps of draws; their coupons pass gate.
func (a *App) DrawOperator(d Draws, gate claim.Gate) *draw.Operator {
	coupons := &coupon.Admin{Store: a.Stores.CouponSteps}
	revoke := func(ctx context.Context, couponID int64, reason string) error {
		_, err := coupons.Revoke(ctx, staff.System(), couponID, reason, true)
		return err
	}
	return &draw.Operator{Revoke: revoke, Store: a.Stores.Draws, Keys: d.Keys, Sources: d.Sources, Judge: beacon.Judge{}, Gate: gate, Random: rand.Uint64,
		Beacon: beacon.Rounds{Relays: a.Config.DrandURLs, Local: d.local}}
}
