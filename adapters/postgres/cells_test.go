package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
)

// shared are the tables with identities that do not name a cell: tables of the whole installation,
// and tables that only their own database reads.
var shared = strings.Fields(`alert_deliveries alert_destinations alert_pushes alerts api_keys audit channel_tests dead_messages goose_db_version job_errors
	outbox phone_verifications providers second_factors segments staff staff_browsers saved_views user_changes`)

// TestIdentitiesNameTheCell: each identity is that of a table in cell_identities, or is shared. The
// ids of an empty database are of cell 0 and begin with 1.
func TestIdentitiesNameTheCell(t *testing.T) {
	conn := connected(t, localstack.Database(t))
	named := column(t, conn, `select name from cell_identities`)
	known := map[string]bool{}
	for _, table := range append(named, shared...) {
		known[table] = true
	}
	for _, table := range column(t, conn, `select c.relname from pg_attribute a join pg_class c on c.oid = a.attrelid
		where a.attidentity <> '' and a.attname = 'id' and c.relnamespace = 'public'::regnamespace`) {
		if !known[table] {
			t.Errorf("%s has an identity: a table of shops is numbered by name_cell in its migration, another table is listed in this test", table)
		}
	}
	for _, table := range named {
		since, ids := drawn(t, conn, table, 3)
		if since != 1 || ids[0] != 1 || ids[1] != 65 || ids[2] != 129 {
			t.Errorf("%s: ids %v since %d", table, ids, since)
		}
	}
}

// TestNameCellAgain: name_cell keeps the numbers of a table that it has numbered.
func TestNameCellAgain(t *testing.T) {
	conn := connected(t, localstack.Database(t))
	drawn(t, conn, "templates", 2)
	load(t, conn, `select name_cell(array['templates'])`)
	if since, ids := drawn(t, conn, "templates", 1); since != 1 || ids[0] != 129 {
		t.Errorf("since %d, then %v", since, ids)
	}
}

// drawn draws n ids of the table. since is the first id that names its cell.
func drawn(t *testing.T, conn *pgx.Conn, table string, n int) (since int64, ids []int64) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `select (select since from cell_identities where name = $1), array(select nextval(pg_get_serial_sequence($1, 'id')) from generate_series(1, $2))`,
		table, n).Scan(&since, &ids)
	if err != nil {
		t.Fatal(err)
	}
	return since, ids
}
