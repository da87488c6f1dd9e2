package campaigns

import (
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/user"
)

// audienceSQL reads an audience by ascending id. $1 is the id after which it reads, $2 the
// limit, $3 the start of the campaign, $4 the template.
var audienceSQL = map[campaign.AudienceKind]string{
	campaign.Everybody: `select id from users where id > $1 and created_at <= $3 and $4::bigint = 0 order by id limit $2`,
	campaign.Reserved:  `select user_id from reservations where template_id = $4 and user_id > $1 and created_at <= $3 order by user_id limit $2`,
	campaign.Holds: `select distinct user_id from coupons where template_id = $4 and user_id > $1 and state in ('unused', 'locked') and issued_at <= $3
		and expires_at > now() order by user_id limit $2`,
}

// Audience reads the users who are not in the cut yet; see [campaign.LaunchStore].
func (s Campaigns) Audience(c campaign.Cut) campaign.AudienceReader {
	switch c.Audience.Kind {
	case campaign.Reserved:
		return &partedAudience{store: s, cut: c, sql: partedSQL{edges: reservedEdges, part: reservedPart}}
	case campaign.Holds:
		return &partedAudience{store: s, cut: c, sql: partedSQL{edges: heldEdges, part: heldPart}}
	}
	return &pagedAudience{store: s, cut: c, after: c.After}
}

// A partedAudience is the users of a template. Its rows are stored in the order in which users
// reserved or claimed. In the order of ids each row would be on a page of its own, so large
// parts are read in the order of the rows, as for slots.
type partedAudience struct {
	store   Campaigns
	cut     campaign.Cut
	sql     partedSQL
	divided bool
	parts   []delivery.Range
	left    []user.ID // read, not returned yet
}

// partedSQL has the statements of a parted audience. edges returns the first and the last user
// of template $1 and about how many users there are. part returns the users from $2 to $3 whose
// rows were created before $4, each with a constant 1 in place of channels.
type partedSQL struct{ edges, part string }

const (
	reservedEdges = `select
		coalesce((select user_id from reservations where template_id = $1 order by user_id limit 1), 1),
		coalesce((select user_id from reservations where template_id = $1 order by user_id desc limit 1), 1),
		coalesce((select sum(booked) from bookings where template_id = $1), 0)`
	reservedPart = `select user_id, 1::bigint from reservations where template_id = $1 and user_id between $2 and $3 and created_at <= $4`

	heldEdges = `select
		coalesce((select user_id from claim_counts where template_id = $1 order by user_id limit 1), 1),
		coalesce((select user_id from claim_counts where template_id = $1 order by user_id desc limit 1), 1),
		coalesce((select issued from templates where id = $1), 0)`
	heldPart = `select user_id, 1::bigint from coupons where template_id = $1 and user_id between $2 and $3 and issued_at <= $4
		and state in ('unused', 'locked') and expires_at > now()`
)

// Next returns the next users; see [campaign.AudienceReader].
func (a *partedAudience) Next(ctx context.Context, limit int) (users, strangers []user.ID, err error) {
	if !a.divided {
		if err := a.divide(ctx); err != nil {
			return nil, nil, err
		}
	}
	for len(a.left) < limit && len(a.parts) > 0 {
		found, err := pg.ReadUsers(ctx, a.store.DB, a.sql.part, a.cut.Audience.ID, a.parts[0].From, a.parts[0].To, a.cut.StartedAt)
		if err != nil {
			return nil, nil, err
		}
		a.left, a.parts = append(a.left, slices.Compact(found[0])...), a.parts[1:]
	}
	n := min(limit, len(a.left))
	users, a.left = a.left[:n:n], a.left[n:]
	strangers, err = a.store.unknown(ctx, users)
	return users, strangers, err
}

// divide makes parts of the users after the last user of the cut. The edges are read at that
// moment, so that no user beyond them is left out.
func (a *partedAudience) divide(ctx context.Context) error {
	if a.divided = a.cut.After == math.MaxInt64; a.divided {
		return nil // there are no more users
	}
	var first, last, expected int64
	if err := a.store.Pool.QueryRow(ctx, a.sql.edges, a.cut.Audience.ID).Scan(&first, &last, &expected); err != nil {
		return pg.Translate(err)
	}
	first = max(first, int64(a.cut.After)+1)
	a.parts = pg.Divide(first, max(first, last), expected)
	a.parts[0].From, a.parts[len(a.parts)-1].To = a.cut.After+1, math.MaxInt64
	a.divided = true
	return nil
}

// A pagedAudience is read in the order of ids.
type pagedAudience struct {
	store Campaigns
	cut   campaign.Cut
	after user.ID
}

// Next returns the next users; see [campaign.AudienceReader].
func (a *pagedAudience) Next(ctx context.Context, limit int) (users, strangers []user.ID, err error) {
	s, c := a.store, a.cut
	switch c.Audience.Kind {
	case campaign.Named:
		users = pageOf(c.Audience.Users, a.after, limit)
		strangers, err = s.unknown(ctx, users)
	case campaign.Segment, campaign.List:
		users, strangers, err = s.members(ctx, c, a.after, limit)
	default:
		users, err = s.everybody(ctx, c, a.after, limit)
	}
	if err == nil && len(users) > 0 {
		a.after = users[len(users)-1]
	}
	return users, strangers, err
}

func (s Campaigns) everybody(ctx context.Context, c campaign.Cut, after user.ID, limit int) ([]user.ID, error) {
	rows, err := s.Pool.Query(ctx, audienceSQL[campaign.Everybody], after, limit, c.StartedAt, c.Audience.ID)
	if err != nil {
		return nil, pg.Translate(err)
	}
	defer rows.Close()
	users := make([]user.ID, 0, limit)
	for rows.Next() {
		// The id is read from the wire format: at a million rows the generic scanner costs more
		// than the query.
		users = append(users, user.ID(pg.Uint64(rows.RawValues()[0])))
	}
	return users, pg.Translate(rows.Err())
}

func pageOf(ids []user.ID, after user.ID, limit int) []user.ID {
	at, found := slices.BinarySearch(ids, after)
	if found {
		at++
	}
	return ids[at:min(len(ids), at+limit)]
}

// members reads the members of a segment or list, by the rule of its publication. Users who
// joined after the campaign's start are left out, and further users are read in their place:
// only the last page is short. strangers are the users of whom nothing is known.
func (s Campaigns) members(ctx context.Context, c campaign.Cut, after user.ID, limit int) (users, strangers []user.ID, err error) {
	var rule *segment.Rule
	if c.Rule != nil && c.Rule.Kind == segment.ByRules {
		rule = &c.Rule.Rule
	}
	for len(users) < limit {
		ids, err := s.segments.MembersBy(ctx, c.Audience.ID, rule, after, limit-len(users))
		if fault.KindOf(err) == fault.NotFound {
			return nil, nil, campaign.ErrNoAudience
		}
		if err != nil || len(ids) == 0 {
			return users, strangers, err
		}
		after = ids[len(ids)-1]
		rows := pg.Rows(ctx, s.Pool, `select i, u.id is null from unnest($1::bigint[]) as i left join users u on u.id = i
			where u.created_at is null or u.created_at <= $2 order by i`, ids, c.StartedAt)
		var id user.ID
		var unknown bool
		if _, err := pgx.ForEachRow(rows, []any{&id, &unknown}, func() error {
			if users = append(users, id); unknown {
				strangers = append(strangers, id)
			}
			return nil
		}); err != nil {
			return nil, nil, pg.Translate(err)
		}
	}
	return users, strangers, nil
}

// unknown returns the ids, of the ascending ids, that no user has.
func (s Campaigns) unknown(ctx context.Context, ids []user.ID) ([]user.ID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	where, args := pg.UsersAmong(ids)
	rows, err := s.Pool.Query(ctx, knownIDs+where, args...)
	if err != nil {
		return nil, pg.Translate(err)
	}
	missing, err := missingFrom(rows, ids)
	return missing, pg.Translate(err)
}

// knownIDs selects the ids of users as one row.
const knownIDs = `select array_agg(id) from users where `

// missingFrom returns the ids, of the ascending ids, that are missing in the array; rows has one
// row with that array.
func missingFrom(rows pgx.Rows, ids []user.ID) (missing []user.ID, err error) {
	defer rows.Close()
	known, found := make([]bool, len(ids)), 0
	for rows.Next() {
		for id := range pg.WireIDs(rows.RawValues()[0]) {
			if at, asked := slices.BinarySearch(ids, id); asked {
				known[at] = true
				found++
			}
		}
	}
	if err := rows.Err(); err != nil || found == len(ids) {
		return nil, err
	}
	for i, id := range ids {
		if !known[i] {
			missing = append(missing, id)
		}
	}
	return missing, nil
}

// TemplateShops returns the shops of templates; see [segment.TemplateStore].
func (s Campaigns) TemplateShops(ctx context.Context, templates []int64) (map[int64]int64, error) {
	return pg.TemplateShops(ctx, s.DB, templates)
}
