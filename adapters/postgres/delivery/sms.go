package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/feedback"
)

// today is the day of budgets by the database's clock.
const today = `(clock_timestamp() at time zone 'utc')::date`

// SMSBudget counts the parts of text messages of a day, over all workers.
type SMSBudget struct {
	*pg.DB
	perDay int64
}

// NewSMSBudget returns a budget of so many parts a day.
func NewSMSBudget(db *pg.DB, perDay int) SMSBudget { return SMSBudget{db, int64(perDay)} }

// takeSQL returns a row if there was room for the parts.
const takeSQL = `
insert into sms_spent as s (day, parts) select ` + today + `, @parts::bigint where @parts <= @budget::bigint
on conflict (day) do update set parts = s.parts + excluded.parts where s.parts + excluded.parts <= @budget
returning day`

// Take takes the parts from what is left of the day, all or nothing. That it did not
// is noted for staff.
func (b SMSBudget) Take(ctx context.Context, parts int64) (day time.Time, taken bool, err error) {
	err = b.Pool.QueryRow(ctx, takeSQL, pgx.StrictNamedArgs{"parts": parts, "budget": b.perDay}).Scan(&day)
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = b.Pool.Exec(ctx, `insert into sms_spent as s (day, parts, refused_at) values (`+today+`, 0, clock_timestamp())
			on conflict (day) do update set refused_at = clock_timestamp() where s.refused_at is null`)
		return day, false, pg.Translate(err)
	}
	return day, err == nil, pg.Translate(err)
}

// GiveBack returns parts that were taken from the day and not sent.
func (b SMSBudget) GiveBack(ctx context.Context, day time.Time, parts int64) error {
	_, err := b.Pool.Exec(ctx, `update sms_spent set parts = greatest(0, parts - $2) where day = $1::date`, day, parts)
	return pg.Translate(err)
}

// SMSSpent is how much of today's budget is spent.
type SMSSpent struct {
	Parts int64
	// RefusedAt is when there first was no room for a message; nil = there was.
	RefusedAt *time.Time
}

// Spent returns what was spent today.
func (b SMSBudget) Spent(ctx context.Context) (s SMSSpent, err error) {
	err = b.Pool.QueryRow(ctx, `select parts, refused_at from sms_spent where day = `+today).Scan(&s.Parts, &s.RefusedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return SMSSpent{}, nil
	}
	return s, pg.Translate(err)
}

// Serials keeps the names that providers give to messages; see [feedback.Serials].
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
