package claims

import (
	"context"
	"math/rand/v2"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/claim"
	"dropbell/lab/bench/serve"
	"dropbell/web/api/coupons"
)

// acceptingGate grants every claim and stores nothing.
type acceptingGate struct{}

func (acceptingGate) Claim(_ context.Context, r claim.Request) (claim.Claim, error) {
	return claim.Claim{ID: r.ID, TemplateID: r.TemplateID, UserID: r.UserID, State: claim.Issued, CouponID: int64(r.ID), At: time.Now()}, nil
}

// The kinds of servers of [answer].
const parses, inserts = "parse", "insert"

// answer answers claims without deciding them. It stores the claims only if inserting is set.
func answer(inserting bool) error {
	return serve.Coupons("claims", func(ctx context.Context, db *postgres.DB) (coupons.Deps, error) {
		var decided claim.Gate = acceptingGate{}
		if inserting {
			decided = newInsertingGate(ctx, db.Pool)
		}
		return coupons.Deps{Claims: &claim.Service{Gate: decided, Random: rand.Uint64}}, nil
	})
}
