package drops

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/template"
)

// Setups reads how far an installation is set up.
type Setups struct{ *pg.DB }

// NewSetups returns the store of db.
func NewSetups(db *pg.DB) Setups { return Setups{db} }

// setupSQL asks for one row of each kind, however many there are. Channel tests
// are removed after a while; then a delivered reminder counts instead.
const setupSQL = `
select exists (select from shops where @all or number = any(@shops)),
	exists (select from channel_tests where result = 'delivered') or exists (select from slot_results where sent > 0) or exists (select from drop_archives where reminded > 0),
	exists (select from users),
	exists (select from templates where state <> 'draft' and (@all or shop_number = any(@shops))),
	exists (select from slot_results r join slots s on s.id = r.slot_id join templates t on t.id = s.template_id
		where r.sent > 0 and (@all or t.shop_number = any(@shops)))
	or exists (select from drop_archives a join templates t on t.id = a.template_id where a.reminded > 0 and (@all or t.shop_number = any(@shops)))`

// Setup reads how far the shops are set up; see [template.SetupStore].
func (s Setups) Setup(ctx context.Context, shops []int64) (found template.Setup, err error) {
	err = s.Pool.QueryRow(ctx, setupSQL, pgx.StrictNamedArgs{"all": len(shops) == 0, "shops": shops}).
		Scan(&found.Shop, &found.Channel, &found.Users, &found.Drop, &found.Reminder)
	return found, pg.Translate(err)
}
