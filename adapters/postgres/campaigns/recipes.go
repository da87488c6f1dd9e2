package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/fault"
	"dropbell/domain/recipe"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/killpoint"
)

// Recipes stores recipes and their rounds; see [recipe.Store] and [recipe.KeeperStore].
type Recipes struct{ *pg.DB }

// NewRecipes returns the recipes of db.
func NewRecipes(db *pg.DB) Recipes { return Recipes{db} }

const recipeColumns = `r.id, r.shop_number, s.name, s.timezone, r.form, r.settings, r.version`

func recipePlaces(r *recipe.Recipe, settings *[]byte) []any {
	return []any{&r.ID, &r.Shop, &r.ShopName, &r.Timezone, &r.Form, settings, &r.Version}
}

func scanRecipe(row pgx.CollectableRow) (r recipe.Recipe, err error) {
	var settings []byte
	if err := row.Scan(recipePlaces(&r, &settings)...); err != nil {
		return r, err
	}
	return r, json.Unmarshal(settings, &r.Settings)
}

// Recipes returns the stored recipes of a shop.
func (s Recipes) Recipes(ctx context.Context, shop int64) ([]recipe.Recipe, error) {
	return pg.Collect(ctx, s.Pool, scanRecipe, `select `+recipeColumns+` from recipes r join shops s on s.number = r.shop_number where r.shop_number = $1`, shop)
}

// Recipe returns one recipe, or [recipe.ErrNotFound].
func (s Recipes) Recipe(ctx context.Context, id int64) (recipe.Recipe, error) {
	return pg.One(ctx, s.Pool, scanRecipe, recipe.ErrNotFound, `select `+recipeColumns+` from recipes r join shops s on s.number = r.shop_number where r.id = $1`, id)
}

// Save stores settings; see [recipe.Store].
func (s Recipes) Save(ctx context.Context, r recipe.Recipe, e staff.Entry) error {
	settings, err := json.Marshal(r.Settings)
	if err != nil {
		return err
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `insert into recipes as r (shop_number, form, settings, is_on) select $1, $2, $3, $4 where $5::bigint = 0
			on conflict (shop_number, form) do nothing returning id`, r.Shop, r.Form, settings, r.On, r.Version).Scan(&r.ID)
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, `update recipes set settings = $3, is_on = $4, version = version + 1, due_at = clock_timestamp(),
				since = case when is_on then since else clock_timestamp() end
				where shop_number = $1 and form = $2 and version = $5 returning id`, r.Shop, r.Form, settings, r.On, r.Version).Scan(&r.ID)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.ErrStale
		}
		if pg.Violates(err, "recipes_shop_number_fkey") {
			return recipe.ErrNoShop
		}
		if err != nil {
			return err
		}
		e.ObjectID = pg.Itoa(r.ID)
		return pg.InsertAudit(ctx, tx, e)
	})
}

// HasDrop implements [recipe.Store].
func (s Recipes) HasDrop(ctx context.Context, shop, drop int64) (has bool, err error) {
	err = s.Pool.QueryRow(ctx, `select exists (select from templates where id = $1 and shop_number = $2)`, drop, shop).Scan(&has)
	return has, pg.Translate(err)
}

const roundColumns = `o.id, o.recipe_id, r.form, o.key, o.state, coalesce(o.template_id, 0), o.until, o.at, o.users, coalesce(o.segment_id, 0), coalesce(o.campaign_id, 0), o.why, o.settings`

func scanRound(row pgx.CollectableRow, more ...any) (o recipe.Round, err error) {
	var why, settings []byte
	if err := row.Scan(append([]any{&o.ID, &o.RecipeID, &o.Form, &o.Key, &o.State, &o.Drop, &o.Until, &o.At, &o.Users, &o.SegmentID, &o.CampaignID, &why, &settings}, more...)...); err != nil {
		return o, err
	}
	if why != nil {
		err = json.Unmarshal(why, &o.Why)
	}
	return o, errors.Join(err, json.Unmarshal(settings, &o.Settings))
}

// roundsSQL returns the last $2 rounds of each recipe of shop $1 with the accounts of their campaigns. Of a campaign whose
// audience is being cut the counts are those of what is cut.
const roundsSQL = `
select ` + roundColumns + `, coalesce((select name from templates t where t.id = o.template_id), ''), coalesce(c.state, ''), c.approval_asked_at is not null and c.state = 'draft',
	coalesce(n.due, 0), coalesce(n.sent, 0), coalesce(n.skipped, 0), coalesce(n.expired, 0), coalesce(n.dead, 0),
	least(coalesce(n.skipped, 0), coalesce((select assigned from campaign_results h where h.campaign_id = c.id and h.variant = -1), 0))
from recipes r cross join lateral (select * from recipe_rounds o where o.recipe_id = r.id order by o.id desc limit $2) o
left join campaigns c on c.id = o.campaign_id
left join lateral (select sum(b.due_count)::bigint as due, sum(b.sent_count)::bigint as sent, sum(b.skipped_count)::bigint as skipped, sum(b.expired_count)::bigint as expired,
	sum(b.dead_count)::bigint as dead
	from batches b where b.kind = 'campaign' and b.owner_id = c.id and b.channel = c.channel) n on true
where r.shop_number = $1 order by o.at desc, o.id desc`

// Rounds returns the last rounds; see [recipe.Store].
func (s Recipes) Rounds(ctx context.Context, shop int64, each int) ([]recipe.Listed, error) {
	list, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, roundsSQL, shop, each), func(row pgx.CollectableRow) (l recipe.Listed, err error) {
		l.Round, err = scanRound(row, &l.DropName, &l.Campaign, &l.Asked, &l.Counts.Reserved, &l.Counts.Sent, &l.Counts.Skipped, &l.Counts.Expired, &l.Counts.Dead, &l.HeldOut)
		l.Counts.InFlight = l.Counts.Reserved - l.Counts.Sent - l.Counts.Skipped - l.Counts.Expired - l.Counts.Dead
		return l, err
	})
	return list, pg.Translate(err)
}

// Notified counts drops that tell owners before their coupons expire; see [recipe.Store].
func (s Recipes) Notified(ctx context.Context, shop int64) (drops, telling int64, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*), count(*) filter (where notify_days <> 0) from templates
		where shop_number = $1 and state in ('published', 'paused') and closes_at > now()`, shop).Scan(&drops, &telling)
	return drops, telling, pg.Translate(err)
}

// RecipesWait asks for recipes that are due, and for rounds that are not done.
const RecipesWait pg.Question = `
(select from recipes where is_on and due_at <= statement_timestamp() limit 1)
union all
(select from recipe_rounds where state <> 'done' limit 1)`

// Claim claims a recipe that is due; see [recipe.KeeperStore].
func (s Recipes) Claim(ctx context.Context, lease time.Duration) (c recipe.Claim, found bool, err error) {
	var settings []byte
	err = s.Pool.QueryRow(ctx, `with r as (
			update recipes set due_at = clock_timestamp() + $1::interval
			where id = (select id from recipes where is_on and due_at <= clock_timestamp() order by due_at limit 1 for update skip locked) returning *
		)
		select r.due_at, clock_timestamp(), `+recipeColumns+` from r join shops s on s.number = r.shop_number`, lease).
		Scan(append([]any{&c.Until, &c.Now}, recipePlaces(&c.Recipe, &settings)...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, false, nil
	}
	if err != nil {
		return c, false, pg.Translate(err)
	}
	err = json.Unmarshal(settings, &c.Settings)
	return c, err == nil, err
}

// Settle ends a claim; see [recipe.KeeperStore].
func (s Recipes) Settle(ctx context.Context, c recipe.Claim, next time.Time) error {
	return pg.Translate(killpoint.Around("recipes.settle", func() error {
		_, err := s.Pool.Exec(ctx, `update recipes set due_at = $4 where id = $1 and version = $2 and due_at = $3`, c.ID, c.Version, c.Until, next)
		return err
	}))
}

// candidatesSQL returns drops of the shop of recipe $1 that opened at least $2 and at most two days ago, after the recipe
// was turned on, without a round.
var candidatesSQL = map[recipe.Form]string{
	recipe.Missed: candidates + ` and t.opening_mode = 'first_come' and t.obtain = 'claim' and t.state = 'published' and t.closes_at > clock_timestamp() + interval '10 minutes'
		and t.issued + t.held < t.stock order by t.opens_at limit $3`,
	recipe.Lost: candidates + ` and case when t.opening_mode = 'first_come' then t.issued + t.held >= t.stock and t.state in ('published', 'closed')
			else exists (select from draws d where d.template_id = t.id and d.state = 'done') end order by t.opens_at limit $3`,
}

const candidates = `select t.id, t.closes_at from recipes r join templates t on t.shop_number = r.shop_number
	where r.id = $1 and t.opens_at <= clock_timestamp() - $2::interval and t.opens_at > greatest(clock_timestamp() - interval '2 days', r.since)
		and not exists (select from recipe_rounds o where o.recipe_id = r.id and o.key = 'drop:' || t.id)`

// Candidates returns drops for which a round is due; see [recipe.KeeperStore].
func (s Recipes) Candidates(ctx context.Context, c recipe.Claim, limit int) ([]recipe.Candidate, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[recipe.Candidate], candidatesSQL[c.Form], c.ID, time.Duration(c.AfterMinutes)*time.Minute, limit)
}

// Begin stores a round; see [recipe.KeeperStore].
func (s Recipes) Begin(ctx context.Context, o recipe.Round) error {
	settings, err := json.Marshal(o.Settings)
	if err != nil {
		return err
	}
	return pg.Translate(killpoint.Around("recipes.begin", func() error {
		_, err := s.Pool.Exec(ctx, `insert into recipe_rounds (recipe_id, key, template_id, until, settings) values ($1, $2, nullif($3::bigint, 0), $4, $5)
			on conflict (recipe_id, key) do nothing`, o.RecipeID, o.Key, o.Drop, o.Until, settings)
		return err
	}))
}

// Unfinished returns rounds that are not done; see [recipe.KeeperStore].
func (s Recipes) Unfinished(ctx context.Context, limit int) ([]recipe.Round, error) {
	return pg.Collect(ctx, s.Pool, func(row pgx.CollectableRow) (recipe.Round, error) { return scanRound(row) }, `select `+roundColumns+` from recipe_rounds o join recipes r on r.id = o.recipe_id where o.state <> 'done' order by o.id limit $1`, limit)
}

// Note stores how far a round is; see [recipe.KeeperStore]. A round that is done stays so.
func (s Recipes) Note(ctx context.Context, o recipe.Round) error {
	var why []byte
	if o.Why != nil {
		var err error
		if why, err = json.Marshal(o.Why); err != nil {
			return err
		}
	}
	return pg.Translate(killpoint.Around("recipes.note", func() error {
		_, err := s.Pool.Exec(ctx, `update recipe_rounds set state = $2, campaign_id = nullif($3::bigint, 0), why = $4 where id = $1 and state <> 'done'`, o.ID, o.State, o.CampaignID, why)
		return err
	}))
}

// Ahead returns the published drops of a shop that open between two instants; see [recipe.KeeperStore].
func (s Recipes) Ahead(ctx context.Context, shop int64, from, to time.Time) ([]template.Template, error) {
	return pg.Collect(ctx, s.Pool, pg.ScanTemplate, `select `+pg.TemplateColumns+pg.TemplateFrom+`where t.shop_number = $1 and t.state = 'published' and t.opens_at >= $2 and t.opens_at < $3
		order by t.opens_at, t.id limit 50`, shop, from, to)
}
