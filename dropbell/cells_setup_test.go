package main

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
)

// TestCellsThatAreNotAsCELLSSays: while the address of a cell leads nowhere, or to a database that is not
// the cell, both programs start, home's shops are served and /readyz names the cell. No request reaches it,
// and nothing is copied. A cell that is put right is served without a restart, and names of cells may change.
func TestCellsThatAreNotAsCELLSSays(t *testing.T) {
	home, further := localstack.Database(t), localstack.Database(t)
	w, o := pgtest.On(t, home), pgtest.On(t, further)
	w.Shops(10)
	serve := func(t *testing.T, cells string) *twoCells {
		c := &twoCells{T: t}
		c.address = serveAll(t, "DATABASE_URL", "", "CELLS", cells, "AUTH_JWT_SECRET", "0123456789abcdef0123456789abcdef", "LINK_SECRET", "a secret of tests with 32 bytes and more")
		return c
	}
	const unserved = "cell b: "
	changed := func(address string, change func(*url.URL, url.Values)) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		change(u, q)
		u.RawQuery = q.Encode()
		return u.String()
	}
	port, err := localstack.FreePort(0)
	if err != nil {
		t.Fatal(err)
	}
	const newest = `(select max(version_id) from goose_db_version)`
	var version int64
	for _, one := range []struct {
		name, b string
		before  func()
		repair  func() // nil = a restart is needed
	}{
		{"nothing answers", changed(further, func(u *url.URL, _ url.Values) { u.Host = "127.0.0.1:" + strconv.Itoa(port) }), func() {}, nil},
		{"there is no such database", changed(further, func(u *url.URL, _ url.Values) { u.Path = "/nowhere" }), func() {}, nil},
		{"home's own database", changed(home, func(_ *url.URL, q url.Values) { q.Set("application_name", "b") }), func() {}, nil},
		{"a database without its number", further, func() {}, func() {
			_, err := workdb.NewCells(o.DB).Number(t.Context(), 1, 0)
			o.Must(err)
		}},
		{"an older schema", further, func() {
			version = o.Number(`select max(version_id) from goose_db_version`)
			o.Exec(`delete from goose_db_version where version_id = ` + newest)
		}, func() { o.Exec(`insert into goose_db_version (version_id, is_applied) values ($1, true)`, version) }},
	} {
		t.Run(one.name, func(t *testing.T) {
			one.before()
			c := serve(t, "a="+home+",b="+one.b)
			if text := body(t, c.address+"/readyz"); !strings.Contains(text, unserved) {
				t.Errorf("/readyz says %q", text)
			}
			c.drop("10", 3*time.Hour)
			if status, o := c.call("GET", "/admin/templates", 0, nil); status != http.StatusOK || len(o["templates"].([]any)) == 0 {
				t.Errorf("drops of home: %d %v", status, o)
			}
			if status, o := c.call("GET", "/admin/templates/130", 0, nil); status == http.StatusOK {
				t.Errorf("a drop of the other cell: %d %v", status, o)
			}
			if one.repair == nil {
				if n := w.Number(`select count(*) from copying_cells`); n != 0 {
					t.Error("home notes changes for a cell that there is not")
				}
				return
			}
			one.repair()
			c.until("the cell is not served", func() bool { return !strings.Contains(body(t, c.address+"/readyz"), unserved) })
		})
	}
	t.Run("other names", func(t *testing.T) {
		c := serve(t, "north="+home+",south="+further)
		c.until("the cell is not served", func() bool { return !strings.Contains(body(t, c.address+"/readyz"), "cell ") })
		c.b = o.SQL
		c.drop("20", 3*time.Hour)
		if n := c.number(c.b, `select count(*) from templates where shop_number = 20`); n != 1 {
			t.Error("the new shop is not in the cell with fewer shops")
		}
	})
}
