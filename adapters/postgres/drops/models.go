package drops

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Models stores templates from which new drops are created; see [template.ModelStore].
type Models struct{ *pg.DB }

// NewModels returns the models of db.
func NewModels(db *pg.DB) Models { return Models{db} }

const modelSQL = `select m.id, m.name, m.content, m.shop_number, s.name, s.timezone, s.claim_url from drop_models m join shops s on s.number = m.shop_number `

func scanModel(row pgx.CollectableRow) (m template.Model, err error) {
	var content []byte
	var shop int64
	if err := row.Scan(&m.ID, &m.Name, &content, &shop, &m.Drop.ShopName, &m.Drop.ShopTimezone, &m.Drop.ShopClaimURL); err != nil {
		return m, err
	}
	m.Drop.Spec, err = template.Fields.Unmarshal(content)
	m.Drop.ShopNumber = shop
	return m, err
}

// Models returns the models of the shops, ordered by name.
func (s Models) Models(ctx context.Context, shops []int64) ([]template.Model, error) {
	if shops == nil {
		shops = []int64{}
	}
	return pg.Collect(ctx, s.Pool, scanModel, modelSQL+`where m.deleted_at is null and (cardinality($1::bigint[]) = 0 or m.shop_number = any($1))
		order by lower(m.name), m.id limit 500`, shops)
}

// Model returns one model. deleted selects between deleted and existing models.
func (s Models) Model(ctx context.Context, id int64, deleted bool) (template.Model, error) {
	return pg.One(ctx, s.Pool, scanModel, template.ErrModelNotFound, modelSQL+`where m.id = $1 and (m.deleted_at is not null) = $2
		and (m.deleted_at is null or m.deleted_at > clock_timestamp() - $3::interval)`, id, deleted, staff.DraftsKept)
}

// change runs f while no other change to the models of the shop is running.
func (s Models) change(ctx context.Context, shop int64, f func(pgx.Tx) error) error {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('drop_models', $1))`, shop); err != nil {
			return err
		}
		return f(tx)
	})
	if pg.Violates(err, "drop_models_name") {
		return template.ErrModelTaken
	}
	return err
}

func roomForModel(ctx context.Context, tx pgx.Tx, shop int64, most int) error {
	var n int
	if err := tx.QueryRow(ctx, `select count(*) from drop_models where shop_number = $1 and deleted_at is null`, shop).Scan(&n); err != nil {
		return err
	}
	if n >= most {
		return template.ErrTooManyModels
	}
	return nil
}

// SaveModel stores m. A form that is sent twice saves one model: the second request finds the
// name taken by a model with the same content and returns this model.
func (s Models) SaveModel(ctx context.Context, m template.Model, most int, e staff.Entry) (template.Model, error) {
	content, err := template.Fields.Marshal(m.Drop.Spec)
	if err != nil {
		return m, err
	}
	shop := m.Drop.ShopNumber
	err = s.change(ctx, shop, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select id from drop_models where shop_number = $1 and name = $2 and content = $3 and deleted_at is null`, shop, m.Name, content).Scan(&m.ID)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if err := roomForModel(ctx, tx, shop, most); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `insert into drop_models (shop_number, name, content, saved_by) values ($1, $2, $3, $4) returning id`,
			shop, m.Name, content, e.Actor.Label+" "+e.Actor.Name).Scan(&m.ID); err != nil {
			return err
		}
		e.ObjectID = pg.Itoa(m.ID)
		return pg.InsertAudit(ctx, tx, e)
	})
	return m, err
}

// changeModel changes one model by an update that names it as $1, with its audit entry.
func changeModel(ctx context.Context, tx pgx.Tx, e staff.Entry, update string, args ...any) error {
	if err := pg.Change(ctx, tx, template.ErrModelNotFound, update, args...); err != nil {
		return err
	}
	return pg.InsertAudit(ctx, tx, e)
}

// RenameModel returns [template.ErrModelNotFound] and [template.ErrModelTaken].
func (s Models) RenameModel(ctx context.Context, id int64, name string, e staff.Entry) error {
	return s.change(ctx, e.ShopNumber, func(tx pgx.Tx) error {
		return changeModel(ctx, tx, e, `update drop_models set name = $2 where id = $1 and deleted_at is null`, id, name)
	})
}

// DeleteModel deletes the model so that it can be restored.
func (s Models) DeleteModel(ctx context.Context, id int64, e staff.Entry) error {
	return s.change(ctx, e.ShopNumber, func(tx pgx.Tx) error {
		return changeModel(ctx, tx, e, `update drop_models set deleted_at = clock_timestamp() where id = $1 and deleted_at is null`, id)
	})
}

// RestoreModel restores a deleted model.
func (s Models) RestoreModel(ctx context.Context, id int64, most int, e staff.Entry) error {
	return s.change(ctx, e.ShopNumber, func(tx pgx.Tx) error {
		if err := roomForModel(ctx, tx, e.ShopNumber, most); err != nil {
			return err
		}
		return changeModel(ctx, tx, e, `update drop_models set deleted_at = null where id = $1 and deleted_at > clock_timestamp() - $2::interval`, id, staff.DraftsKept)
	})
}
