package drops

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
)

// mailsSampled is the number of users from which the shares of mail domains are estimated.
const mailsSampled = 20_000

// mailSharesSQL returns each of the domains that occurs in a sample of pages, with its share
// of the users who have a mail address.
const mailSharesSQL = `
with sample as (select lower(substring(email from '[^@]*$')) as domain from users tablesample system (@percent) where email <> '')
select domain, count(*)::float8 / (select count(*) from sample) from sample where domain = any(@domains::text[]) group by domain`

// MailShares estimates, from a sample of pages, the share of each domain among the users with
// a mail address. The cost does not depend on the number of users.
func (s Forecasts) MailShares(ctx context.Context, domains []string) (map[string]float64, error) {
	percent, err := s.SamplePercent(ctx, mailsSampled)
	if err != nil {
		return nil, err
	}
	rows := pg.Rows(ctx, s.Pool, mailSharesSQL, pgx.StrictNamedArgs{"percent": percent, "domains": domains})
	shares := map[string]float64{}
	var domain string
	var share float64
	_, err = pgx.ForEachRow(rows, []any{&domain, &share}, func() error {
		shares[domain] = share
		return nil
	})
	return shares, pg.Translate(err)
}
