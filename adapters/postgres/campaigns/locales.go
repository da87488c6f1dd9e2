package campaigns

import (
	"context"
	"math"
	"time"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/segment"
)

// EstimateLocales counts the locales of a small audience, and samples the locales of a segment. For
// any other audience it divides the estimated number of users as all users are divided. See
// [campaign.Store].
func (s Campaigns) EstimateLocales(ctx context.Context, a campaign.Audience) (map[string]int64, error) {
	s.DB = s.Reports(ctx)
	if a.Kind == campaign.Named {
		return s.locales(ctx, `unnest($1::bigint[])`, a.Users)
	}
	rule, users := segment.Rule{Match: segment.All}, int64(-1)
	switch sql := audienceSQL[a.Kind]; {
	case sql == "":
		g, err := currentSegment(ctx, s.Pool, a.ID)
		if err != nil {
			return nil, err
		}
		if g.Kind == segment.ByRules {
			rule = g.Rule
		} else if users = 0; g.Members != nil {
			users = *g.Members
		}
	case a.Kind != campaign.Everybody:
		all, exact, err := s.Estimate(ctx, a)
		if err != nil {
			return nil, err
		}
		if users = all; exact {
			return s.locales(ctx, `(`+sql+`)`, 0, all, time.Now(), a.ID)
		}
	}
	list, err := s.segments.Locales(ctx, rule)
	if err != nil || users < 0 {
		return list, err
	}
	var sum int64
	for _, n := range list {
		sum += n
	}
	for locale, n := range list {
		list[locale] = int64(math.Round(float64(n) / float64(sum) * float64(users)))
	}
	return list, nil
}

// locales counts the users with these ids by locale. A user without data has no locale.
func (s Campaigns) locales(ctx context.Context, ids string, args ...any) (map[string]int64, error) {
	rows, err := s.Pool.Query(ctx, `select coalesce(u.locale, ''), count(*) from `+ids+` as i (id) left join users u on u.id = i.id group by 1`, args...)
	if err != nil {
		return nil, pg.Translate(err)
	}
	return pg.Counts(rows)
}
