package pgtest

import "dropbell/adapters/postgres/pgtest/rows"

// Drop, Row and SQL are the types in which a test writes its rows.
type (
	Drop = rows.Drop
	Row  = rows.Row
	SQL  = rows.SQL
)

// Drop inserts a drop without the stores, for states that no transition leads to, and returns
// the drop's id. Missing shops are inserted, too.
func (w *Fixture) Drop(d Drop) int64 {
	w.Helper()
	return d.Add(w, w.SQL)
}

// Insert inserts rows into a table without the stores. Columns that a row does not name get the
// default values of package rows.
func (w *Fixture) Insert(table string, list ...Row) {
	w.Helper()
	rows.Insert(w, w.SQL, table, list...)
}

// Fill inserts a row for each row of the source, such as generate_series(1, 600) n.
func (w *Fixture) Fill(table, source string, row Row) {
	w.Helper()
	rows.Fill(w, w.SQL, table, source, row)
}

// ID inserts a row and returns its id.
func (w *Fixture) ID(table string, row Row) int64 {
	w.Helper()
	return rows.ID(w, w.SQL, table, row)
}

// Shops inserts shops whose clocks show UTC, unless they are there.
func (w *Fixture) Shops(numbers ...int64) {
	w.Helper()
	rows.Shops(w, w.SQL, numbers...)
}
