package audience

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
)

// ErrNoEstimate is returned when not even a small sample could be judged in time.
var ErrNoEstimate = fault.New(fault.Unavailable, "estimate_unavailable", "this could not be estimated quickly; count it instead")

const (
	// smallTable is the number of pages up to which all rows are counted instead.
	smallTable = 64
	// estimateFor bounds the time of an estimate. A further sample is taken only while less than
	// enough of this time is used.
	estimateFor = 150 * time.Millisecond
	enough      = 50 * time.Millisecond
	// beforeGivingUp is allowed to a first sample whose pages are all cold.
	beforeGivingUp = 2 * time.Second
	// fewestPages is the smallest number of pages that counts as a sample: by chance a first
	// sample can have fewer pages, or none.
	fewestPages = 4
)

// samplePages are the sizes of the samples in pages, taken one after the other. The first sample
// is small, because the estimate waits for it beyond estimateFor.
var samplePages = []float64{8, 32, 128, 512, 2048}

// EstimateRule samples whole pages of the table of users, as many as fit into the time; see
// [segment.Store]. Users that were stored together are similar, so the margin is computed from
// the differences between pages. Differences between users would underestimate the margin.
func (s Segments) EstimateRule(ctx context.Context, r segment.Rule) (segment.Estimate, error) {
	s.DB = s.Reports(ctx)
	pages, perPage, err := s.size(ctx)
	if err != nil {
		return segment.Estimate{}, err
	}
	if pages <= smallTable {
		return count(ctx, s.Pool, r)
	}
	sum := sample{}
	began := time.Now()
	for _, want := range samplePages {
		left := estimateFor - time.Since(began)
		if len(sum) < fewestPages {
			left = beforeGivingUp
		}
		var all segment.Estimate
		if want < pages/2 {
			err = s.sample(ctx, sum, r, want/pages, left)
		} else { // reading all rows costs hardly more
			all, err = s.countWithin(ctx, r, left)
		}
		switch {
		case errors.Is(err, errOutOfTime):
			return sum.estimate(pages, perPage)
		case err != nil || all.Exact:
			return all, err
		case len(sum) >= fewestPages && time.Since(began) > enough:
			return sum.estimate(pages, perPage)
		}
	}
	return sum.estimate(pages, perPage)
}

// size returns the pages of the table of users, and how many users a page has; 0 = that is not known.
func (s Segments) size(ctx context.Context) (pages, perPage float64, err error) {
	err = s.Pool.QueryRow(ctx, `
		select pg_relation_size('users') / current_setting('block_size')::float8,
			case when relpages > 0 and reltuples > 0 then reltuples / relpages else 0 end
		from pg_class where oid = 'users'::regclass`).Scan(&pages, &perPage)
	return pages, perPage, pg.Translate(err)
}

// localePages are the pages of the sample from which locales are counted.
const localePages = 512

// Locales returns about how many users have each locale, among the users whom the rule selects. A
// small table is counted, of a large table whole pages are sampled. It returns [ErrNoEstimate] if
// that takes too long.
func (s Segments) Locales(ctx context.Context, r segment.Rule) (list map[string]int64, err error) {
	s.DB = s.Reports(ctx)
	pages, _, err := s.size(ctx)
	if err != nil {
		return nil, err
	}
	share, from := 1.0, `users u`
	if pages > localePages {
		share, from = localePages/pages, `users u tablesample system (100 * $1::float8)`
	}
	f := compile(r, share)
	err = s.within(ctx, beforeGivingUp, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select u.locale, round(count(*) / $1::float8)::bigint from `+from+` where `+f.text+` group by 1`, f.args...)
		if err != nil {
			return err
		}
		list, err = pg.Counts(rows)
		return err
	})
	if errors.Is(err, errOutOfTime) {
		err = ErrNoEstimate
	}
	return list, err
}

// AttributeNames reads the names from a sample of the table of users; see [segment.Store].
func (s Segments) AttributeNames(ctx context.Context, limit int) (list []string, err error) {
	s.DB = s.Reports(ctx)
	pages, _, err := s.size(ctx)
	if err != nil {
		return nil, err
	}
	from := `users u tablesample system (least(100, $2::float8))`
	err = s.within(ctx, beforeGivingUp, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select name from (select k.name, count(*) from `+from+`, jsonb_object_keys(u.attributes) as k (name) group by k.name order by 2 desc, 1 limit $1) as n order by name`,
			limit, 100*localePages/max(pages, 1))
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if errors.Is(err, errOutOfTime) {
		err = ErrNoEstimate
	}
	return list, err
}

func (s Segments) countWithin(ctx context.Context, r segment.Rule, within time.Duration) (e segment.Estimate, err error) {
	err = s.within(ctx, within, func(tx pgx.Tx) error {
		e, err = count(ctx, tx, r)
		return err
	})
	return e, err
}

func count(ctx context.Context, q pg.Querier, r segment.Rule) (segment.Estimate, error) {
	f := compile(r)
	var e segment.Estimate
	err := q.QueryRow(ctx, `select count(*) filter (where `+f.text+`), count(*) from users u`, f.args...).Scan(&e.Members, &e.Users)
	e.Exact, e.Looked = err == nil, e.Users
	return e, pg.Translate(err)
}

var errOutOfTime = errors.New("out of time")

// A sampledPage is how many of a page's users are members.
type sampledPage struct{ users, members float64 }

// A sample has each of its pages once, however often chance has chosen it.
type sample map[int64]sampledPage

// sample judges the users of a share of all pages, and adds them to sum.
func (s Segments) sample(ctx context.Context, sum sample, r segment.Rule, share float64, within time.Duration) error {
	f := compile(r, 100*share)
	return s.within(ctx, within, func(tx pgx.Tx) error {
		// The page is the first part of ctid.
		rows := pg.Rows(ctx, tx, `
			select (u.ctid::text::point)[0]::bigint as page, count(*)::float8, (count(*) filter (where `+f.text+`))::float8
			from users u tablesample system ($1::float8) group by page`, f.args...)
		var page int64
		var p sampledPage
		_, err := pgx.ForEachRow(rows, []any{&page, &p.users, &p.members}, func() error {
			sum[page] = p
			return nil
		})
		return err
	})
}

// within runs do in a transaction whose statements may each take as long as limit. If a
// statement takes longer, it returns [errOutOfTime].
func (s Segments) within(ctx context.Context, limit time.Duration, do func(pgx.Tx) error) error {
	if limit < 5*time.Millisecond {
		return errOutOfTime
	}
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true)`, fmt.Sprintf("%dms", limit.Milliseconds())); err != nil {
			return err
		}
		return do(tx)
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "57014" && ctx.Err() == nil {
		return errOutOfTime
	}
	return pg.Translate(err)
}

// estimate extrapolates the sample to a table with the given number of pages: a ratio estimate
// with the variance between clusters.
func (s sample) estimate(pages, perPage float64) (segment.Estimate, error) {
	var users, members float64
	for _, p := range s {
		users, members = users+p.users, members+p.members
	}
	n := float64(len(s))
	if n < fewestPages || users == 0 {
		return segment.Estimate{}, ErrNoEstimate
	}
	if perPage == 0 { // never analysed
		perPage = users / n
	}
	share, total := members/users, pages*perPage
	var squares float64
	for _, p := range s {
		d := p.members - share*p.users
		squares += d * d
	}
	variance := squares / (n - 1) / n / (users / n * users / n) * max(0, 1-n/pages)
	return segment.Estimate{Members: int64(math.Round(share * total)), Margin: int64(math.Ceil(margin(share, variance, n) * total)),
		Users: int64(math.Round(total)), Looked: int64(users)}, nil
}

// margin is the largest error of a share in 95 of 100 samples of n pages with this variance. The
// variance gives the effective sample size: the number of independent users with the same
// information. If the pages do not differ because all users are members or no user is, a page
// may count as one user. Source: Wilson's score interval on the effective sample size, with
// Student's quantile of n-1 degrees of freedom (the first term of its expansion around the
// normal quantile).
func margin(share, variance, n float64) float64 {
	effective := n
	if variance > 0 {
		effective = max(1, share*(1-share)/variance)
	} else if share > 0 && share < 1 {
		return 0 // every page agrees on a share that is neither
	}
	const z = 1.96
	t := z + (z*z*z+z)/(4*(n-1))
	t2 := t * t
	middle := (share + t2/(2*effective)) / (1 + t2/effective)
	half := t / (1 + t2/effective) * math.Sqrt(share*(1-share)/effective+t2/(4*effective*effective))
	return max(share-max(0, middle-half), min(1, middle+half)-share)
}
