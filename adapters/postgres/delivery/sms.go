package delivery

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// today is the day of budgets by the database's clock.
const today = `(clock_timestamp() at time zone 'utc')::date`

// SMSBudget counts the parts of text messages by day and by drop, over all workers, and keeps what
// drops and campaigns cost.
type SMSBudget struct {
	*pg.DB
	perDay, perDrop, microsPerDay int64
	currency                      string // of the price list; empty = there is none
}

// NewSMSBudget returns a budget of so many parts a day and a drop; 0 = any number.
func NewSMSBudget(db *pg.DB, perDay, perDrop int) SMSBudget {
	return SMSBudget{db, orAny(perDay), orAny(perDrop), orAny(0), ""}
}

// WithMoney returns the budget with the currency of the price list, and with a limit on the cost of
// a day's parts, in millionths of a unit; 0 = no limit.
func (b SMSBudget) WithMoney(microsPerDay int64, currency string) SMSBudget {
	b.microsPerDay, b.currency = orAny(microsPerDay), currency
	return b
}

func orAny[N int | int64](n N) int64 {
	if n == 0 {
		return math.MaxInt64 / 2
	}
	return int64(n)
}

// takeSQL returns the day and the hour if the day had room for the parts and their cost, and whether
// the drop had room. If the drop has no room, the day is not charged; if the day has none, the owner
// has no cost. Rows are locked in the order drop, day, cost.
const takeSQL = `
with of_drop as (
	insert into sms_spent_drops as s (template_id, parts) select @drop::bigint, @parts::bigint where @drop <> 0 and @parts <= @per_drop::bigint
	on conflict (template_id) do update set parts = s.parts + excluded.parts where s.parts + excluded.parts <= @per_drop
	returning template_id
), of_day as (
	insert into sms_spent as s (day, parts, micros) select ` + today + `, @parts, @micros::bigint
	where @parts <= @per_day::bigint and @micros <= @micros_per_day::bigint and (@drop = 0 or exists (select from of_drop))
	on conflict (day) do update set parts = s.parts + excluded.parts, micros = s.micros + excluded.micros
	where s.parts + excluded.parts <= @per_day and s.micros + excluded.micros <= @micros_per_day
	returning day, date_trunc('hour', clock_timestamp(), 'utc') as hour
), drop_cost as (
	insert into sms_drop_costs as s (template_id, hour, currency, parts, micros) select @drop, hour, @currency, @parts, @micros from of_day where @drop <> 0
	on conflict (template_id, hour, currency) do update set parts = s.parts + excluded.parts, micros = s.micros + excluded.micros
), campaign_cost as (
	insert into sms_campaign_costs as s (campaign_id, hour, currency, parts, micros) select @campaign::bigint, hour, @currency, @parts, @micros from of_day where @campaign <> 0
	on conflict (campaign_id, hour, currency) do update set parts = s.parts + excluded.parts, micros = s.micros + excluded.micros
)
select (select day from of_day), (select hour from of_day), @drop = 0 or exists (select from of_drop)`

// errNoRoom rolls back the charge of one budget when the other budget has no room.
var errNoRoom = errors.New("no room")

// Take takes parts from the budgets of the day and of the drop, all or nothing, and adds them to the
// owner's cost; see [delivery.BudgetTaking]. A refusal is recorded for staff.
func (b SMSBudget) Take(ctx context.Context, owner delivery.BudgetOwner, size delivery.BudgetSize) (delivery.BudgetTaking, delivery.BudgetShort, error) {
	var day, hour *time.Time
	var ofDrop bool
	err := b.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, takeSQL, pgx.StrictNamedArgs{"drop": owner.Drop, "campaign": owner.Campaign, "currency": b.currency, "parts": size.Parts, "micros": size.Micros,
			"per_day": b.perDay, "micros_per_day": b.microsPerDay, "per_drop": b.perDrop}).Scan(&day, &hour, &ofDrop)
		if err == nil && day == nil {
			err = errNoRoom
		}
		return err
	})
	switch {
	case err == nil:
		return delivery.BudgetTaking{Day: *day, Hour: *hour, BudgetOwner: owner}, delivery.BudgetEnough, nil
	case !errors.Is(err, errNoRoom):
		return delivery.BudgetTaking{}, delivery.BudgetEnough, pg.Translate(err)
	case !ofDrop:
		_, err = b.Pool.Exec(ctx, `insert into sms_spent_drops as s (template_id, parts, refused_at) values ($1, 0, clock_timestamp())
			on conflict (template_id) do update set refused_at = clock_timestamp() where s.refused_at is null`, owner.Drop)
		return delivery.BudgetTaking{}, delivery.BudgetDropShort, pg.Translate(err)
	}
	short := delivery.BudgetDayShort
	var inParts bool
	if err = b.Pool.QueryRow(ctx, `insert into sms_spent as s (day, parts, refused_at) values (`+today+`, 0, clock_timestamp())
		on conflict (day) do update set refused_at = coalesce(s.refused_at, clock_timestamp()) returning s.parts + $1 > $2::bigint`, size.Parts, b.perDay).Scan(&inParts); !inParts && b.microsPerDay < orAny(0) {
		short = delivery.BudgetMoneyShort
	}
	return delivery.BudgetTaking{}, short, pg.Translate(err)
}

// GiveBack returns parts that were taken and not sent to the drop, to the day and to the owner's cost,
// all or nothing. Rows are locked in the order of [SMSBudget.Take], so that two calls cannot deadlock.
func (b SMSBudget) GiveBack(ctx context.Context, from delivery.BudgetTaking, size delivery.BudgetSize) error {
	args := pgx.NamedArgs{"drop": from.Drop, "campaign": from.Campaign, "day": from.Day, "hour": from.Hour, "currency": b.currency, "parts": size.Parts, "micros": size.Micros}
	var steps pgx.Batch // one transaction
	if from.Drop != 0 {
		steps.Queue(`update sms_spent_drops set parts = greatest(0, parts - @parts) where template_id = @drop`, args)
	}
	steps.Queue(`update sms_spent set parts = greatest(0, parts - @parts), micros = greatest(0, micros - @micros) where day = @day::date`, args)
	if from.Drop != 0 {
		steps.Queue(`update sms_drop_costs set parts = greatest(0, parts - @parts), micros = greatest(0, micros - @micros)
			where template_id = @drop and hour = @hour and currency = @currency`, args)
	}
	if from.Campaign != 0 {
		steps.Queue(`update sms_campaign_costs set parts = greatest(0, parts - @parts), micros = greatest(0, micros - @micros)
			where campaign_id = @campaign and hour = @hour and currency = @currency`, args)
	}
	return pg.Translate(b.Pool.SendBatch(ctx, &steps).Close())
}

// A DropOverBudget is a drop whose budget had no room for a message.
type DropOverBudget struct {
	TemplateID, Shop int64
	Name             string
}

// DropsOver returns the drops that are not closed yet and whose budgets had no room for a
// message.
func (b SMSBudget) DropsOver(ctx context.Context) ([]DropOverBudget, error) {
	return pg.Collect(ctx, b.Pool, pgx.RowToStructByPos[DropOverBudget], `select t.id, t.shop_number, t.name from sms_spent_drops s join templates t on t.id = s.template_id
		where s.refused_at is not null and t.closes_at > clock_timestamp() order by t.id`)
}

// SMSSpent is how much of today's budget is spent.
type SMSSpent struct {
	delivery.BudgetSize
	// RefusedAt is when there first was no room for a message; nil = there was.
	RefusedAt *time.Time
}

// Spent returns the parts and money spent today.
func (b SMSBudget) Spent(ctx context.Context) (s SMSSpent, err error) {
	err = b.Pool.QueryRow(ctx, `select parts, micros, refused_at from sms_spent where day = `+today).Scan(&s.Parts, &s.Micros, &s.RefusedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return SMSSpent{}, nil
	}
	return s, pg.Translate(err)
}

// Serials stores the names that providers give to messages; see [feedback.Serials].
type Serials struct{ *pg.DB }

// NewSerials returns the serials of db.
func NewSerials(db *pg.DB) Serials { return Serials{db} }

// Keep stores serials.
func (s Serials) Keep(ctx context.Context, provider string, serials []feedback.Serial) error {
	ids, references := make([]string, len(serials)), make([]string, len(serials))
	for i, one := range serials {
		ids[i], references[i] = one.ID, one.Reference
	}
	_, err := s.Pool.Exec(ctx, `insert into sms_serials (provider, serial, reference)
		select $1, i.serial, i.reference from unnest($2::text[], $3::text[]) as i (serial, reference) on conflict do nothing`, provider, ids, references)
	return pg.Translate(err)
}

// Find returns the references of serials.
func (s Serials) Find(ctx context.Context, provider string, ids []string) (map[string]string, error) {
	rows := pg.Rows(ctx, s.Pool, `select serial, reference from sms_serials where provider = $1 and serial = any($2)`, provider, ids)
	found := map[string]string{}
	var serial, reference string
	_, err := pgx.ForEachRow(rows, []any{&serial, &reference}, func() error {
		found[serial] = reference
		return nil
	})
	return found, pg.Translate(err)
}
