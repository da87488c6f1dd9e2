package pg

import "github.com/jackc/pgx/v5"

// Counts reads rows of a name and a number.
func Counts(rows pgx.Rows) (map[string]int64, error) {
	list := map[string]int64{}
	var name string
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		list[name] = n
		return nil
	})
	return list, Translate(err)
}
