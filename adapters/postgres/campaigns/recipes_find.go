package campaigns

import (
	"context"
	"errors"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/recipe"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// notClaimed is the exit condition of the forms about a drop $1: the user of the row r has a coupon of it.
const notClaimed = `not exists (select from claim_counts c where c.template_id = $1 and c.user_id = r.user_id)`

// findSQL returns the users of a round, each once. $1 is the drop or, for forms about none, the shop; $2 the days of a win back.
var findSQL = map[recipe.Form]string{
	recipe.Missed: `select r.user_id from reservations r where r.template_id = $1 and $2::int >= 0 and ` + notClaimed,
	recipe.Lost: `select r.user_id from reservations r where r.template_id = $1 and $2::int >= 0 and ` + notClaimed + `
		union select r.user_id from draw_entries r where r.template_id = $1 and r.state in ('entered', 'lapsed') and ` + notClaimed,
	recipe.WinBack: `select c.user_id from coupons c join templates t on t.id = c.template_id where t.shop_number = $1
		group by c.user_id having max(c.issued_at) < clock_timestamp() - make_interval(days => $2)`,
	recipe.Calendar: `select r.user_id from reservations r join templates t on t.id = r.template_id where t.shop_number = $1 and $2::int >= 0
		union select c.user_id from coupons c join templates t on t.id = c.template_id where t.shop_number = $1 and c.issued_at > clock_timestamp() - interval '90 days'`,
}

// chunkBits is how many ids share a row of segment_members, as a power of two; see the lists of package audience.
const chunkBits = 16

// Find finds the users of a round and stores them as a list; see [recipe.KeeperStore]. Users of earlier rounds of a win
// back are left out for the days that its settings say, whether they were sent a message or held out.
func (s Recipes) Find(ctx context.Context, o recipe.Round) (recipe.Round, error) {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		var shop int64
		var state recipe.RoundState
		if err := tx.QueryRow(ctx, `select r.shop_number, o.state, o.users, coalesce(o.segment_id, 0) from recipe_rounds o join recipes r on r.id = o.recipe_id where o.id = $1 for no key update of o`, o.ID).
			Scan(&shop, &state, &o.Users, &o.SegmentID); err != nil {
			return err
		}
		if o.State = state; state != recipe.Begun {
			return nil
		}
		about := o.Drop
		if about == 0 {
			about = shop
		}
		set, err := found(ctx, tx, o, about)
		if err != nil {
			return err
		}
		o.State, o.Users = recipe.Found, int64(set.GetCardinality())
		if o.Users > 0 {
			if err := tx.QueryRow(ctx, `insert into segments (name, kind, rule, members, counted_at, created_by, hidden)
				values ($1, 'list', '{"all": []}', $2, now(), $3, true) returning id`, o.ListName(), o.Users, pg.AuditActor(staff.System())).Scan(&o.SegmentID); err != nil {
				return err
			}
			if err := storeList(ctx, tx, o.SegmentID, set); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `update recipe_rounds set state = $2, users = $3, segment_id = nullif($4::bigint, 0) where id = $1`, o.ID, o.State, o.Users, o.SegmentID)
		return err
	})
	return o, err
}

// found returns the users of the round.
func found(ctx context.Context, tx pgx.Tx, o recipe.Round, about int64) (*roaring64.Bitmap, error) {
	set := roaring64.New()
	rows, err := tx.Query(ctx, findSQL[o.Form], about, o.Settings.Days)
	if err != nil {
		return nil, err
	}
	var id user.ID
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { set.Add(uint64(id)); return nil }); err != nil {
		return nil, err
	}
	// Erased users, and those of earlier rounds.
	rows, err = tx.Query(ctx, `select user_id from erased_users`)
	if err != nil {
		return nil, err
	}
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { set.Remove(uint64(id)); return nil }); err != nil {
		return nil, err
	}
	if o.Form != recipe.WinBack {
		return set, nil
	}
	rows = pg.Rows(ctx, tx, `select m.members from recipe_rounds o join segment_members m on m.segment_id = o.segment_id
		where o.recipe_id = $1 and o.id <> $2 and o.at > clock_timestamp() - make_interval(days => $3)`, o.RecipeID, o.ID, o.Settings.EveryDays)
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&raw}, func() error {
		earlier, err := pg.DecodeSet(raw)
		if err == nil {
			set.AndNot(earlier)
		}
		return err
	})
	return set, err
}

// suitsSQL returns the last drop of shop $1 that a round of the form is about.
var suitsSQL = map[recipe.Form]string{
	recipe.Missed: suits + ` and t.opening_mode = 'first_come' and t.obtain = 'claim' and t.issued + t.held < t.stock order by t.opens_at desc limit 1`,
	recipe.Lost:   suits + ` and (t.opening_mode <> 'first_come' or t.issued + t.held >= t.stock) order by t.opens_at desc limit 1`,
}

const suits = `select t.id from templates t where t.shop_number = $1 and t.state in ('published', 'closed') and t.opens_at <= clock_timestamp()`

// reachWithin is how long counting the users of a round may take.
const reachWithin = "1s"

// Reach counts the users that a round would find; see [recipe.Store].
func (s Recipes) Reach(ctx context.Context, r recipe.Recipe) (n int64, known bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true)`, reachWithin); err != nil {
			return err
		}
		about := r.Shop
		if r.Form.AboutDrop() {
			if err := tx.QueryRow(ctx, suitsSQL[r.Form], r.Shop).Scan(&about); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, `select count(*) from (`+findSQL[r.Form]+`) f (user_id) where not exists (select from erased_users e where e.user_id = f.user_id)`, about, r.Days).Scan(&n)
	})
	if late, ok := errors.AsType[*pgconn.PgError](err); errors.Is(err, pgx.ErrNoRows) || ok && late.Code == "57014" && ctx.Err() == nil {
		return 0, false, nil
	}
	return n, err == nil, pg.Translate(err)
}

// storeList stores the members of a list, of which there are none yet.
func storeList(ctx context.Context, tx pgx.Tx, segmentID int64, set *roaring64.Bitmap) error {
	parts := map[int64]*roaring64.Bitmap{}
	for it := set.Iterator(); it.HasNext(); {
		id := it.Next()
		chunk := int64(id >> chunkBits)
		if parts[chunk] == nil {
			parts[chunk] = roaring64.New()
		}
		parts[chunk].Add(id)
	}
	chunks, contents, counts := make([]int64, 0, len(parts)), make([][]byte, 0, len(parts)), make([]int64, 0, len(parts))
	for chunk, part := range parts {
		part.RunOptimize()
		raw, err := part.ToBytes()
		if err != nil {
			return err
		}
		chunks, contents, counts = append(chunks, chunk), append(contents, raw), append(counts, int64(part.GetCardinality()))
	}
	_, err := tx.Exec(ctx, `insert into segment_members (segment_id, chunk, members, count)
		select $1, i.chunk, i.members, i.count from unnest($2::bigint[], $3::bytea[], $4::int[]) as i (chunk, members, count)`, segmentID, chunks, contents, counts)
	return err
}

// goneSQL returns the users among $2 of whom the condition of the round of campaign $1 no longer holds. Coupons that the
// round itself gives do not count: a message may be tried again after its coupon was given.
const goneSQL = `
with o as (
	select o.template_id, r.form, r.shop_number, coalesce((o.settings ->> 'days')::int, 0) as days, coalesce((o.settings ->> 'grant_template')::bigint, 0) as gives
	from recipe_rounds o join recipes r on r.id = o.recipe_id where o.campaign_id = $1
)
select i from o cross join unnest($2::bigint[]) i
where case o.form
	when 'missed' then exists (select from claim_counts c where c.template_id = o.template_id and c.user_id = i)
		or not exists (select from templates t where t.id = o.template_id and t.state = 'published' and t.closes_at > clock_timestamp() and t.issued + t.held < t.stock)
	when 'lost' then exists (select from claim_counts c where c.template_id = o.template_id and c.user_id = i)
	when 'win_back' then exists (select from coupons c join templates t on t.id = c.template_id where c.user_id = i and t.shop_number = o.shop_number
		and c.template_id <> o.gives and c.issued_at > clock_timestamp() - make_interval(days => o.days))
	else false end`

// gone returns the recipients of a recipe's campaign of whom its condition no longer holds; see [campaign.Facts].
func (s Campaigns) gone(ctx context.Context, campaignID int64, ids []user.ID) (map[user.ID]bool, error) {
	rows := pg.Rows(ctx, s.Pool, goneSQL, campaignID, ids)
	list := map[user.ID]bool{}
	var id user.ID
	_, err := pgx.ForEachRow(rows, []any{&id}, func() error { list[id] = true; return nil })
	return list, err
}
