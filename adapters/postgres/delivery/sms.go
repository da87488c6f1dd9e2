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

// SMSBudget counts the parts of text messages by day and by drop, over all workers.
type SMSBudget struct {
	*pg.DB
	perDay, perDrop, microsPerDay int64
}

// NewSMSBudget returns a budget of so many parts a day and a drop; 0 = any number.
func NewSMSBudget(db *pg.DB, perDay, perDrop int) SMSBudget {
	return SMSBudget{db, orAny(perDay), orAny(perDrop), orAny(0)}
}

// WithMoney returns the budget with a limit on the cost of a day's parts, in millionths of a
// unit; 0 = no limit.
func (b SMSBudget) WithMoney(microsPerDay int64) SMSBudget {
	b.microsPerDay = orAny(microsPerDay)
	return b
}

func orAny[N int | int64](n N) int64 {
	if n == 0 {
		return math.MaxInt64 / 2
	}
	return int64(n)
}

// takeSQL returns the day if the day had room for the parts and their cost, and whether the
// drop had room. If the drop has no room, the day is not charged.
const takeSQL = `
with of_drop as (
	insert into sms_spent_drops as s (template_id, parts, micros) select @drop::bigint, @parts::bigint, @micros::bigint where @drop <> 0 and @parts <= @per_drop::bigint
	on conflict (template_id) do update set parts = s.parts + excluded.parts, micros = s.micros + excluded.micros where s.parts + excluded.parts <= @per_drop
	returning template_id
), of_day as (
	insert into sms_spent as s (day, parts, micros) select ` + today + `, @parts, @micros::bigint
	where @parts <= @per_day::bigint and @micros <= @micros_per_day::bigint and (@drop = 0 or exists (select from of_drop))
	on conflict (day) do update set parts = s.parts + excluded.parts, micros = s.micros + excluded.micros
	where s.parts + excluded.parts <= @per_day and s.micros + excluded.micros <= @micros_per_day
	returning day
)
select (select day from of_day), @drop = 0 or exists (select from of_drop)`

// errNoRoom rolls back the charge of one budget when the other budget has no room.
var errNoRoom = errors.New("no room")

// Take takes parts from the budgets of the day and of the drop, all or nothing; see
// [delivery.BudgetTaking]. A refusal is recorded for staff.
func (b SMSBudget) Take(ctx context.Context, drop int64, size delivery.BudgetSize) (delivery.BudgetTaking, delivery.BudgetShort, error) {
	var day *time.Time
	var ofDrop bool
	err := b.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, takeSQL, pgx.StrictNamedArgs{"drop": drop, "parts": size.Parts, "micros": size.Micros,
			"per_day": b.perDay, "micros_per_day": b.microsPerDay, "per_drop": b.perDrop}).Scan(&day, &ofDrop)
		if err == nil && day == nil {
			err = errNoRoom
		}
		return err
	})
	switch {
	case err == nil:
		return delivery.BudgetTaking{Day: *day, Drop: drop}, delivery.BudgetEnough, nil
	case !errors.Is(err, errNoRoom):
		return delivery.BudgetTaking{}, delivery.BudgetEnough, pg.Translate(err)
	case !ofDrop:
		_, err = b.Pool.Exec(ctx, `insert into sms_spent_drops as s (template_id, parts, refused_at) values ($1, 0, clock_timestamp())
			on conflict (template_id) do update set refused_at = clock_timestamp() where s.refused_at is null`, drop)
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

// GiveBack returns parts that were taken and not sent, first to the drop and then to the day.
// Each step is a transaction of its own, so that two calls cannot deadlock.
func (b SMSBudget) GiveBack(ctx context.Context, from delivery.BudgetTaking, size delivery.BudgetSize) error {
	if from.Drop != 0 {
		_, err := b.Pool.Exec(ctx, `update sms_spent_drops set parts = greatest(0, parts - $2), micros = greatest(0, micros - $3) where template_id = $1`, from.Drop, size.Parts, size.Micros)
		if err != nil {
			return pg.Translate(err)
		}
	}
	_, err := b.Pool.Exec(ctx, `update sms_spent set parts = greatest(0, parts - $2), micros = greatest(0, micros - $3) where day = $1::date`, from.Day, size.Parts, size.Micros)
	return pg.Translate(err)
}

// A DropOverBudget is a drop whose budget had no room for a message.
type DropOverBudget struct {
	TemplateID, Shop int64
	Name             string
}

// DropsOver returns the drops that are not closed yet and whose budgets had no room for a
// message.
func (b SMSBudget) DropsOver(ctx context.Context) ([]DropOverBudget, error) {
	rows, err := b.Pool.Query(ctx, `select t.id, t.shop_number, t.name from sms_spent_drops s join templates t on t.id = s.template_id
		where s.refused_at is not null and t.closes_at > clock_timestamp() order by t.id`)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[DropOverBudget])
	return list, pg.Translate(err)
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
	rows, err := s.Pool.Query(ctx, `select serial, reference from sms_serials where provider = $1 and serial = any($2)`, provider, ids)
	if err != nil {
		return nil, pg.Translate(err)
	}
	found := map[string]string{}
	var serial, reference string
	_, err = pgx.ForEachRow(rows, []any{&serial, &reference}, func() error {
		found[serial] = reference
		return nil
	})
	return found, pg.Translate(err)
}
