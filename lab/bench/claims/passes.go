package claims

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"dropbell/domain/pass"
	"dropbell/domain/user"
	"dropbell/lab/bench/stack"
)

const passSecret = "a secret for passes in benchmarks"

// passed claims in a protected drop: each claim shows a pass, and leaves its signs. Signing the passes
// is part of the load.
func (b *bench) passed(ctx context.Context, key string, callers int) (r result, err error) {
	if _, err := b.SQL.Exec(ctx, `update templates set protection = 'standard' where id = $1`, b.template); err != nil {
		return r, err
	}
	now, keys := time.Now(), pass.NewKeys(passSecret)
	one := pass.Pass{Way: pass.Puzzle, IssuedAt: now, Opened: time.Minute, ExpiresAt: now.Add(time.Hour)}
	r, err = b.http(ctx, b.web.Addr, key, func(i int64) string {
		return fmt.Sprintf(`{"template_id":"%d","pass":"%s"}`, b.template, keys.Issue(one, user.ID(i+2), b.template))
	}, callers, http.StatusCreated)
	if err != nil {
		return r, err
	}
	var coupons, signs int64
	// The last signs are stored within a quarter of a second.
	err = stack.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		err := b.SQL.QueryRow(ctx, `select (select count(*) from coupons where template_id = $1), (select count(*) from claim_signs where template_id = $1)`, b.template).Scan(&coupons, &signs)
		return coupons == signs, err
	})
	if err != nil {
		return r, fmt.Errorf("%d signs of %d coupons: %w", signs, coupons, err)
	}
	_, err = b.SQL.Exec(ctx, `update templates set protection = 'off' where id = $1`, b.template)
	return r, err
}
