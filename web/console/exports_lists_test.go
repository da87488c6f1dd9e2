package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// Every list of the console can be exported. The file has every row that the filter selects and the
// viewer may see, over all pages, and no other row.
func TestListsAsFiles(t *testing.T) {
	g := consoletest.New(t)
	const many = shell.ExportPage + 7
	d, other := g.Published(10, time.Hour), g.Published(11, time.Hour)
	b, limited := g.As(staff.Marketer), g.As(staff.Viewer, 11)

	g.Exec(`insert into segments (name, kind, rule, members, counted_at, created_by, updated_at)
		select '=Fans ' || n, 'list', '{"all":[]}', n, now(), 'staff:9 Zoë', now() - (n / 3) * interval '1 minute' from generate_series(1, $1) n`, many)
	g.Exec(`insert into segments (name, kind, rule, created_by) values ('Gold', 'rules', '{"all":[]}', 'staff:9 Zoë')`)
	b.File("/segments.csv", many+1)
	if rows := b.File("/segments.csv?q=fans+507", 1); rows[1][1] != "'=Fans 507" || rows[1][3] != "507" {
		t.Errorf("%q", rows)
	}
	if rows := b.File("/segments.csv?q=gold", 1); rows[1][3] != "" || rows[1][4] != "" {
		t.Errorf("never counted, and yet %q", rows)
	}
	b.Get("/segments?q=fans").Is(200).Has(`href="/segments.csv?q=fans"`)

	for i := range many {
		g.Exec(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at, state, order_id, locked_at, locked_until, discount)
			values ($1, 7, $2::bigint, 'claim', now(), now() + interval '1 day', 'locked', 'A-' || $2::bigint, now(), date_trunc('minute', now()) + $3::int * interval '1 minute', 900)`, d.ID, 1000+i, i/3)
	}
	g.Locks(g.Gives(other, 7), "=B-1")
	b.File("/coupons/locks.csv", many+1)
	if rows := limited.File("/coupons/locks.csv", 1); rows[1][5] != "'=B-1" || rows[1][4] != "7" || rows[1][6] != "1000" || rows[1][9] == "" {
		t.Errorf("%q", rows)
	}
	b.Get("/coupons/locks").Is(200).Has(`href="/coupons/locks.csv"`)

	g.Exec(`insert into jobs (kind, title, shop_number, needs, params, state, created_by, actor)
		select 'coupons.grant', '=List ' || n, 10 + n % 2, 'users', jsonb_build_object('template_id', (1 + n % 2)::text, 'dry_run', n % 3 = 0), 'cancelled', 'staff:9 Zoë', '{}'
		from generate_series(1, $1) n`, 2*many)
	j := g.StartJob(staff.Actor{Label: "staff:99", Name: "Ada", Role: staff.Marketer}, "Pause", 0)
	g.Work(j.ID, job.Progress{Total: 40, Done: 10, Failed: 2})
	b.File("/jobs.csv", 2*many+1)
	b.File("/jobs.csv?state=cancelled&before=3", 2*many)
	if rows := b.File("/jobs.csv?state=running", 1); rows[1][2] != "Pause" || rows[1][5] != "40" || rows[1][7] != "2" || rows[1][13] != "" {
		t.Errorf("%q", rows)
	}
	limited.File("/jobs.csv", many)
	b.Get("/jobs?state=running").Is(200).Has(`href="/jobs.csv?state=running"`)

	b.File("/grants.csv", 2*many)
	if rows := b.File(fmt.Sprintf("/grants.csv?template=%d", d.ID), many); rows[1][1] != fmt.Sprint(d.ID) || rows[1][4] != "false" && rows[1][4] != "true" {
		t.Errorf("%q", rows[1])
	}
	limited.File("/grants.csv", many)
	limited.File(fmt.Sprintf("/grants.csv?template=%d", d.ID), 0)
	b.Get("/grants").Is(200).Has(`href="/grants.csv"`)
	b.Get(fmt.Sprintf("/templates/%d/grants", d.ID)).Is(200).Has(fmt.Sprintf(`href="/grants.csv?template=%d"`, d.ID))

	g.Exec(`insert into code_batches (template_id, first_serial, count, key_id, state, generated, used, created_by, ready_at)
		select 1 + n % 2 * 64, n * 10, 10, 1, 'ready', 10, n % 10, 'staff:9 Zoë', now() from generate_series(1, $1) n`, 2*many)
	g.Exec(`insert into code_batches (template_id, first_serial, count, key_id, created_by) values ($1, 1000000, 10, 1, 'staff:9 Zoë')`, d.ID)
	if rows := b.File("/codes.csv", 2*many+1); rows[1][4] != "stopped" || rows[2][4] != "ready" || rows[0][0] != "id" {
		t.Errorf("%q", rows[:3])
	}
	b.File(fmt.Sprintf("/codes.csv?template=%d", d.ID), many+1)
	limited.File("/codes.csv", many)
	b.Get("/codes").Is(200).Has(`href="/codes.csv"`, "List of batches as CSV")
	b.Get(fmt.Sprintf("/templates/%d/codes", d.ID)).Is(200).Has(fmt.Sprintf(`href="/codes.csv?template=%d"`, d.ID))
	for _, path := range []string{"/codes.csv?template=x", "/grants.csv?template=0", "/grants.csv?template=99999999999999999999"} {
		b.Get(path).Is(http.StatusNotFound)
	}

	b.File("/shops.csv", 2)
	if rows := limited.File("/shops.csv", 1); rows[1][0] != "11" || rows[1][2] != "Europe/Berlin" {
		t.Errorf("%q", rows)
	}
	limited.Get("/shops").Is(200).Has(`href="/shops.csv"`)
}

// The files about access are only for members who give access, and contain no secret.
func TestStaffAndKeysAsFiles(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	g.Shop(10)
	g.Shop(11)
	b.Post("/staff", consoletest.MemberTyped("ada@example.com", "marketer")).To("/staff/2")
	b.Post("/keys", url.Values{"name": {"=checkout"}, "scopes": {"payment", "read"}}).To("/keys")
	secret := b.Get("/keys").Is(200)
	rows := b.File("/staff.csv", 2)
	if rows[2][1] != "ada@example.com" && rows[1][1] != "ada@example.com" {
		t.Errorf("%q", rows)
	}
	b.Get("/staff.csv").Is(200).HasNot("password", "hash")
	b.Get("/staff").Is(200).Has(`href="/staff.csv"`)
	rows = b.File("/keys.csv", 1)
	if rows[1][1] != "'=checkout" || rows[1][3] != "payment, read" || len(rows[1][2]) > 12 {
		t.Errorf("%q", rows)
	}
	full := regexp.MustCompile(`dbk_[0-9a-z]{20,}`).FindString(secret.Body)
	if full == "" {
		t.Fatal("no secret was shown")
	}
	b.Get("/keys.csv").Is(200).HasNot(full, "hash")
	b.Get("/keys").Is(200).Has(`href="/keys.csv"`)
	for _, role := range []staff.Role{staff.Marketer, staff.Operator, staff.Viewer} {
		g.As(role).Get("/staff.csv").Is(http.StatusForbidden)
		g.As(role).Get("/keys.csv").Is(http.StatusForbidden)
	}
}
