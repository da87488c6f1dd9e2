// Package coupons stores coupons and every operation that issues or changes them:
// claims, accepted claims of the gate, redeem codes, grants, orders that use
// coupons, and the notices before a coupon expires. Ledgers and tallies count the
// coupons.
package coupons

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/killpoint"
)

// Claims is the durable gate: one transaction decides and stores all requests
// that arrive together; see committer. Taps are decided by lastTerms first,
// without reading. Requests that this fast path leaves undecided are decided
// again by a group that reads.
type Claims struct {
	*pg.DB
	last   lastTerms
	fast   *pg.Committer[struct{}, claim.Request, claim.Verdict]
	groups *pg.Committer[struct{}, claim.Request, claim.Verdict]
	looks  *pg.Committer[struct{}, claim.RepeatKey, claim.Claim]
	homes  *pg.Committer[struct{}, claim.Holder, int64]
}

// NewClaims starts the gate. Its groups have at most 512 requests, and 2,048
// requests under heavy load, unless g says otherwise.
func NewClaims(db *pg.DB, g pg.Grouping) *Claims {
	s := &Claims{DB: db}
	crowd := 0
	if g.MaxGroup == 0 {
		g.MaxGroup, crowd = 512, 2048 // 512 was measured better than 256 and 1,024 with 1,024 callers
	}
	cfg := g.Config(db)
	cfg.MaxCrowd, cfg.LockWait, cfg.Name = crowd, pg.LockWait, "claim"
	one := cfg
	one.SideBySide = cfg.MaxGroup / 2 // measured better at 256 callers, and no worse at 1,024
	one.Locked, cfg.Locked = s.lockedOf(lockedShared), s.lockedOf(lockedExclusive)
	template := func(r claim.Request) int64 { return r.TemplateID }
	s.fast = pg.NewFairCommitter[struct{}](one, nil, template, s.decideFast)
	s.groups = pg.NewFairCommitter[struct{}](cfg, nil, template, s.decide)
	cfg.Observe, cfg.LockWait = nil, 0
	s.looks = pg.NewCommitter[struct{}](cfg, nil, s.repetitions)
	s.homes = pg.NewCommitter[struct{}](cfg, nil, s.households)
	return s
}

// Close answers everything that was accepted and stops.
func (s *Claims) Close() {
	s.fast.Close()
	s.groups.Close()
	s.looks.Close()
	s.homes.Close()
}

// Claim decides r together with the other requests that arrive; see [claim.Gate].
func (s *Claims) Claim(ctx context.Context, r claim.Request) (claim.Claim, error) {
	if len(r.Key) > claim.MaxKey {
		return claim.Claim{}, fault.ErrInvalid.Because("a claim's key has at most %d bytes", claim.MaxKey)
	}
	var v claim.Verdict
	var err error
	if !needsLock(r) && s.last.knows(r.TemplateID) {
		v, err = s.fast.Do(ctx, r)
	}
	if err == nil && v == (claim.Verdict{}) {
		v, err = s.groups.Do(ctx, r)
	}
	switch {
	case err != nil:
		return claim.Claim{}, err
	case v.Err != nil:
		return claim.Claim{}, v.Err
	}
	return *v.Claim, nil
}

// Group decides requests in their order, in one transaction of their own. Either
// all coupons that it issues are stored, or an error says that none is. Group is
// for writers that have gathered a group themselves; 500 requests are a good
// size.
func (s *Claims) Group(ctx context.Context, group []claim.Request) ([]claim.Verdict, error) {
	verdicts, err := s.decide(ctx, group)
	return verdicts, pg.Translate(err)
}

// keyConflicts bounds how often a group is decided again after a violation of the
// unique key of requests. The violation means that a request with the same key
// for another template was committed first; the locks of this group do not
// exclude such a request. The repeated group finds the committed coupon.
const keyConflicts = 3

func (s *Claims) decide(ctx context.Context, group []claim.Request) (verdicts []claim.Verdict, err error) {
	if !slices.ContainsFunc(group, needsLock) && !s.last.limitsHouseholds(group) {
		if verdicts, err = s.decideOptimistically(ctx, group); !errors.Is(err, errChanged) {
			return verdicts, err
		}
	}
	for range keyConflicts {
		verdicts, err = s.decideLocked(ctx, group)
		if !pg.Violates(err, "coupons_origin") {
			break
		}
	}
	return verdicts, err
}

// decideLocked is one transaction in two round trips. The first round trip locks
// the templates and reads the rows needed to decide. The second writes the
// decisions.
func (s *Claims) decideLocked(ctx context.Context, group []claim.Request) ([]claim.Verdict, error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release() // closes a connection whose transaction is not over
	decider, err := lockAndRead(ctx, conn.Conn(), group)
	if err != nil {
		return nil, errors.Join(err, rollback(conn.Conn()))
	}
	s.last.learn(decider)
	verdicts := make([]claim.Verdict, len(group))
	for i, r := range group {
		verdicts[i] = decider.Decide(r)
	}
	if err := killpoint.Around("claims.decided", func() error { return storeDecided(ctx, conn.Conn(), decider) }); err != nil {
		return nil, errors.Join(err, rollback(conn.Conn()))
	}
	return verdicts, nil
}

// rollback ends the transaction if the connection is still usable.
func rollback(conn *pgx.Conn) error {
	if conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := conn.Exec(ctx, `rollback`)
	return err
}
