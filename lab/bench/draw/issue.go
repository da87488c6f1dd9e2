package draw

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/draw"
	"dropbell/domain/job"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// issuing gives as many coupons in three ways, through one gate: to the winners of a draw, to a list of users by the
// job of a grant, and to bare claims of which nothing else is stored.
type issuing struct {
	*stack.Stack
	gate *couponsdb.Claims
	n    int
}

// issue compares the coupons of winners with the other ways, in turns.
func issue(ctx context.Context, s *stack.Stack, n, runs int) error {
	b := issuing{s, couponsdb.NewClaims(s.DB, postgres.Grouping{}), n}
	defer b.gate.Close()
	if err := s.Users(ctx, n); err != nil {
		return err
	}
	var granted, bare []float64
	for range runs {
		var rates [3]float64
		for i, way := range []func(context.Context) (time.Duration, error){b.winners, b.grants, b.claims} {
			took, err := way(ctx)
			if err != nil {
				return err
			}
			rates[i] = float64(n) / took.Seconds()
		}
		granted, bare = append(granted, rates[0]/rates[1]), append(bare, rates[0]/rates[2])
		fmt.Printf("%d coupons: of winners %8.0f/s   of a grant %8.0f/s (%.2f)   bare claims %8.0f/s (%.2f)\n", n, rates[0], rates[1], rates[0]/rates[1], rates[2], rates[0]/rates[2])
	}
	fmt.Printf("median winners/grants %.2f, winners/bare claims %.2f\n", stack.Median(granted), stack.Median(bare))
	return nil
}

// winners makes a draw that every entry wins. Its coupons are measured until all winners are told and the draw is done.
func (b issuing) winners(ctx context.Context) (time.Duration, error) {
	id, err := b.open(ctx, `opening_mode = 'draw', draw_source = 'commit', published_at = now() - interval '2 hours', opens_at = date_trunc('second', now()) + interval '1 hour'`)
	if err != nil {
		return 0, err
	}
	keys, err := draw.NewKeys("only this benchmark signs draws with it")
	if err != nil {
		return 0, err
	}
	operator := draw.Operator{Store: dropsdb.NewDraws(b.DB), Keys: keys, Gate: b.gate, Random: rand.Uint64}
	if err := operator.Sweep(ctx); err != nil { // publishes the card
		return 0, err
	}
	for _, sql := range []string{
		`insert into draw_entries (template_id, user_id, ticket, salt, entered_at) select $1, n, gen_random_uuid(), gen_random_uuid(), date_trunc('second', now()) from generate_series(1, $2::bigint) n`,
		`insert into draw_counts (template_id, shard, entered) values ($1, 0, $2)`} {
		if _, err := b.SQL.Exec(ctx, sql, id, b.n); err != nil {
			return 0, err
		}
	}
	if _, err := b.SQL.Exec(ctx, `update templates set opens_at = date_trunc('second', now()), version = version + 1 where id = $1`, id); err != nil {
		return 0, err
	}
	sweepUntil := func(state draw.State) error {
		for now := draw.Open; now != state; {
			if err := operator.Sweep(ctx); err != nil {
				return err
			}
			d, err := operator.Store.(dropsdb.Draws).Draw(ctx, id)
			if err != nil {
				return err
			}
			now = d.State
		}
		return nil
	}
	if err := sweepUntil(draw.Drawn); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := sweepUntil(draw.Done); err != nil {
		return 0, err
	}
	return time.Since(began), b.given(ctx, id, claim.ByDraw)
}

// grants gives the coupons to a list, as the job of a grant does.
func (b issuing) grants(ctx context.Context) (time.Duration, error) {
	id, err := b.open(ctx, `opens_at = date_trunc('second', now())`)
	if err != nil {
		return 0, err
	}
	store := couponsdb.NewGrants(b.DB)
	rows := make([]coupon.GrantRow, b.n)
	for i := range rows {
		rows[i] = coupon.GrantRow{Line: int64(i + 1), UserID: user.ID(i + 1)}
	}
	if err := store.StageGrants(ctx, id, rows); err != nil {
		return 0, err
	}
	params, _ := json.Marshal(coupon.GrantParams{TemplateID: id, Sheet: id}) // numbers
	granter := coupon.Granter{Store: store, Gate: b.gate, Random: rand.Uint64}
	began := time.Now()
	for j, p := (job.Job{ID: id, Params: params}), (job.Progress{}); !p.Finished; j.Cursor = p.Cursor {
		if p, err = granter.Step(ctx, j); err != nil {
			return 0, err
		}
	}
	return time.Since(began), b.given(ctx, id, claim.ByGrant)
}

// claims gives the coupons to as many callers at a time as the winners have.
func (b issuing) claims(ctx context.Context) (time.Duration, error) {
	id, err := b.open(ctx, `opens_at = date_trunc('second', now())`)
	if err != nil {
		return 0, err
	}
	const atOnce = 256
	began := time.Now()
	err = scenario.Each(b.n, atOnce, func(i int) error {
		_, err := b.gate.Claim(ctx, claim.Request{ID: claim.NewID(rand.Uint64(), id), TemplateID: id, UserID: user.ID(i + 1), Origin: claim.ByTap})
		return err
	})
	if err != nil {
		return 0, err
	}
	return time.Since(began), b.given(ctx, id, claim.ByTap)
}

// open publishes a drop with a coupon for each user, and sets columns of it.
func (b issuing) open(ctx context.Context, set string) (int64, error) {
	t, err := b.Drop(ctx, time.Hour)
	if err == nil {
		_, err = b.SQL.Exec(ctx, `update templates set stock = $2, `+set+` where id = $1`, t.ID, b.n)
	}
	if err == nil {
		_, err = b.SQL.Exec(ctx, `checkpoint`)
	}
	return t.ID, err
}

// given returns an error unless every user has one coupon of the origin.
func (b issuing) given(ctx context.Context, id int64, origin claim.Origin) error {
	var users int
	err := b.SQL.QueryRow(ctx, `select count(distinct user_id) from coupons where template_id = $1 and origin = $2`, id, origin).Scan(&users)
	if err == nil && users != b.n {
		err = fmt.Errorf("%d of %d users have a coupon", users, b.n)
	}
	return err
}
