package audience

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// Everything returns every row that names the user; see [user.ErasureStore]. The tables are read
// from the database's catalog: a new table with a column user_id is included automatically.
func (s Users) Everything(ctx context.Context, id user.ID, e staff.Entry) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	err := s.Instant(ctx, func(tx pgx.Tx) error {
		tables, err := tablesOfUsers(ctx, tx)
		if err != nil {
			return err
		}
		queries := map[string]string{
			"users":         `select to_jsonb(t) from users t where id = $1`,
			"audit":         `select to_jsonb(t) from audit t where object_kind = 'user' and object_id = $1::bigint::text order by id`,
			"channel_tests": `select to_jsonb(t) from channel_tests t where by_user and recipient = $1::bigint::text order by id`,
		}
		for _, table := range tables {
			queries[table] = `select to_jsonb(t) from ` + pgx.Identifier{table}.Sanitize() + ` t where user_id = $1`
		}
		for name, sql := range queries {
			var rows []byte
			if err := tx.QueryRow(ctx, `select coalesce(jsonb_agg(q.to_jsonb), '[]') from (`+sql+`) q`, id).Scan(&rows); err != nil {
				return err
			}
			all[name] = rows
		}
		if all["deliveries"], err = deliveriesOf(ctx, tx, id); err != nil {
			return err
		}
		if all["lists"], err = listsOf(ctx, tx, id); err != nil {
			return err
		}
		all["doors"], err = doorsOf(ctx, tx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.Tx(ctx, func(tx pgx.Tx) error { return pg.InsertAudit(ctx, tx, e) }); err != nil {
		return nil, err
	}
	all["user_id"], _ = json.Marshal(id.String())
	return json.MarshalIndent(all, "", " ")
}

// tablesOfUsers are the tables with a column user_id.
func tablesOfUsers(ctx context.Context, tx pgx.Tx) ([]string, error) {
	rows := pg.Rows(ctx, tx, `select c.table_name from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
		where c.table_schema = current_schema() and t.table_type = 'BASE TABLE' and c.column_name = 'user_id' order by 1`)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// A deliveryOf is one batch that contains the user.
type deliveryOf struct {
	Batch      int64  `json:"batch_id"`
	Kind       string `json:"kind"`
	Owner      int64  `json:"owner_id"`
	TemplateID int64  `json:"template_id"`
	Channel    int    `json:"channel"`
	DueAt      any    `json:"due_at"`
	Sent       bool   `json:"sent"`
}

func deliveriesOf(ctx context.Context, tx pgx.Tx, id user.ID) (json.RawMessage, error) {
	rows, err := tx.Query(ctx, `select id, kind, owner_id, template_id, channel, due_at, due, sent from batches where $1 between from_user and to_user order by id`, id)
	if err != nil {
		return nil, err
	}
	list := []deliveryOf{}
	var d deliveryOf
	var due, sent []byte
	if _, err = pgx.ForEachRow(rows, []any{&d.Batch, &d.Kind, &d.Owner, &d.TemplateID, &d.Channel, &d.DueAt, &due, &sent}, func() error {
		in, err := pg.SetHolds(due, id)
		if err != nil || !in {
			return err
		}
		if d.Sent, err = pg.SetHolds(sent, id); err == nil {
			list = append(list, d)
		}
		return err
	}); err != nil {
		return nil, err
	}
	return json.Marshal(list)
}

func listsOf(ctx context.Context, tx pgx.Tx, id user.ID) (json.RawMessage, error) {
	rows, err := tx.Query(ctx, `select s.id, s.name, m.members from segment_members m join segments s on s.id = m.segment_id where m.chunk = $1 order by s.id`, int64(id)>>chunkBits)
	if err != nil {
		return nil, err
	}
	type listOf struct {
		ID   int64  `json:"list_id"`
		Name string `json:"name"`
	}
	list := []listOf{}
	var l listOf
	var raw []byte
	if _, err = pgx.ForEachRow(rows, []any{&l.ID, &l.Name, &raw}, func() error {
		set, err := readChunk(raw)
		if err == nil && set.Contains(uint64(id)) {
			list = append(list, l)
		}
		return err
	}); err != nil {
		return nil, err
	}
	return json.Marshal(list)
}
