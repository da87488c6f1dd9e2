package postgres_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	accessdb "dropbell/adapters/postgres/access"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	messagesdb "dropbell/adapters/postgres/messages"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/campaign"
	"dropbell/domain/cell"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/job"
	"dropbell/domain/message"
	"dropbell/domain/redeemcode"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/migrations"
	"dropbell/musttest"
)

// freezeVariable is the environment variable with the name of a release, such as 0.1.0.
// TestRowsForEveryTable writes that release's database to testdata/releases.
const freezeVariable = "DROPBELL_FREEZE"

// twoUsers is the bitmap of the users 1001 and 1002.
const twoUsers = `'\x0100000000000000000000003a3000000100000000000100` + `10000000e903ea03'`

// TestRowsForEveryTable: testdata/rows.sql fits the schema of this version and has a row for
// every table. If DROPBELL_FREEZE names a release, the test writes the filled database to
// testdata/releases, for the upgrades of all later versions.
func TestRowsForEveryTable(t *testing.T) {
	url := localstack.Database(t)
	conn := connected(t, url)
	rows, err := os.ReadFile("testdata/rows.sql")
	musttest.OK(t, err)
	load(t, conn, strings.ReplaceAll(string(rows), "{set}", twoUsers))
	for table, n := range rowCounts(t, conn) {
		if n == 0 {
			t.Errorf("%s has no row in testdata/rows.sql", table)
		}
	}
	release := os.Getenv(freezeVariable)
	if release == "" || t.Failed() {
		return
	}
	text, err := localstack.Dump(t.Context(), url, "--no-owner", "--inserts")
	musttest.OK(t, err)
	// Without comments and commands of psql.
	text = regexp.MustCompile(`(?m)^(--.*|\\.*|)\n`).ReplaceAll(text, nil)
	file, err := os.OpenFile(filepath.Join("testdata/releases", release+".sql"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	musttest.OK(t, err)
	if _, err := file.Write(text); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

// TestUpgradesFromReleases upgrades the database of every release, with rows in it. The upgraded
// database has the schema of a new database, the stores read its rows, and its next ids name cell
// 0, as its old ids do.
func TestUpgradesFromReleases(t *testing.T) {
	releases, err := filepath.Glob("testdata/releases/*.sql")
	if err != nil || len(releases) == 0 {
		t.Fatalf("no releases: %v", err)
	}
	want := schemaOf(t, connected(t, localstack.Database(t)))
	for _, file := range releases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			url := localstack.Database(t)
			conn := connected(t, url)
			text, err := os.ReadFile(file)
			musttest.OK(t, err)
			load(t, conn, `drop schema public cascade; create schema public`)
			load(t, conn, string(text))
			load(t, conn, `reset all`)
			before := rowCounts(t, conn)
			for _, contract := range []bool{false, true} {
				if _, err := migrations.Released.UpTelling(t.Context(), url, contract, func(string) {}); err != nil {
					t.Fatal(err)
				}
			}
			got := schemaOf(t, conn)
			for _, line := range want {
				if !slices.Contains(got, line) {
					t.Errorf("only a new database has %s", line)
				}
			}
			for _, line := range got {
				if !slices.Contains(want, line) {
					t.Errorf("only the upgraded database has %s", line)
				}
			}
			after := rowCounts(t, conn)
			for table, n := range before {
				if m, still := after[table]; still && m < n && table != "goose_db_version" {
					t.Errorf("%s had %d rows, and has %d", table, n, m)
				}
			}
			nameCellZero(t, conn)
			readAll(pgtest.On(t, url))
		})
	}
}

// nameCellZero checks that all ids of the upgraded database are of cell 0, the next ones by
// themselves.
func nameCellZero(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, table := range column(t, conn, `select name from cell_identities`) {
		var used []int64
		musttest.OK(t, conn.QueryRow(t.Context(), `select array(select id from `+pgx.Identifier{table}.Sanitize()+`)`).Scan(&used))
		since, ids := drawn(t, conn, table, 2)
		if cell.Of(ids[0], 1) != 0 || cell.Of(ids[1], 1) != 0 || ids[0] != since {
			t.Errorf("%s: the next ids are %v, named since %d", table, ids, since)
		}
		for _, id := range used {
			if id >= since || cell.Of(id, since) != 0 {
				t.Errorf("%s: the id %d is of cell %d; ids name cells since %d", table, id, cell.Of(id, since), since)
			}
		}
	}
}

// readAll reads the rows of testdata/rows.sql with the stores.
func readAll(w *pgtest.Fixture) {
	ctx := w.Context()
	check := func(what string, got any, err error, want string) {
		w.Helper()
		if text := fmt.Sprint(got); err != nil || text != want {
			w.Errorf("%s: %s, %v; want %s", what, text, err, want)
		}
	}
	drop, err := w.Templates.Template(ctx, 1)
	check("the drop", fmt.Sprint(drop.Name, " ", drop.Issued, " of ", drop.Stock), err, "Moon cake night 3 of 1000")
	reserved, err := w.Reservations.Reservation(ctx, 1, 1001)
	check("the reservation", reserved.TemplateID, err, "1")
	board, err := w.Boards.Board(ctx, 1)
	check("the board", len(board.Rows), err, "2")
	models, err := dropsdb.NewModels(w.DB).Models(ctx, nil)
	check("the models", len(models), err, "1")
	links, err := dropsdb.NewReports(w.DB).Links(ctx, 1, 10)
	check("the links to reports", len(links), err, "1")
	deleted, err := w.Templates.DeletedDraft(ctx, 900)
	check("the deleted draft", deleted.Name, err, "Second thoughts")

	texts, err := messagesdb.NewMessages(w.DB).Current(ctx, message.Place{Shop: 10}, 1)
	check("the texts", len(texts), err, "1")
	page, err := w.Inbox.Page(ctx, 1001, time.Time{}, 10)
	check("the inbox", len(page.Items), err, "1")
	batch, err := w.Ledger.Batch(ctx, 1)
	check("the batch", batch.ID, err, "1")
	dead, err := w.DeadLetters.DeadLetters(ctx, delivery.DeadLetterFilter{}, 0, 0, 10)
	check("the dead letters", len(dead), err, "2")
	post, err := deliverydb.NewConfigured(w.DB).Provider(ctx, 1)
	check("the provider", post.Name, err, "Post office")
	address, err := deliverydb.NewSuppressions(w.DB).Suppression(ctx, "gone@tea.example")
	check("the suppression", address.Cause, err, "no such mailbox")

	person, err := w.Users.User(ctx, 1001)
	check("the user", fmt.Sprint(person.Name, " ", len(person.Devices)), err, "Li Wei 1")
	guests, err := w.Segments.Members(ctx, 2, 0, 10)
	check("the list", guests, err, "[1001 1002]")
	campaigns := campaignsdb.NewCampaigns(w.DB, w.Segments)
	thanks, err := campaigns.Campaigns(ctx, campaign.Query{Limit: 10})
	check("the campaigns", len(thanks), err, "1")
	asked, err := campaigns.Requests(ctx, 1, 10)
	check("the requests for approval", len(asked), err, "1")

	owned, err := w.CouponSteps.Listed(ctx, coupon.Query{TemplateID: 1, Limit: 10})
	check("the coupons", len(owned), err, "4")
	off, err := w.Tallies.Off(ctx, 1)
	check("the difference of the tallies", off, err, "0")
	plan, err := couponsdb.NewGates(w.DB).Plan(ctx, 1)
	check("the shards", len(plan.Parts), err, "2")
	codes, err := couponsdb.NewCodes(w.DB).Batches(ctx, redeemcode.Query{Limit: 10})
	check("the codes", len(codes), err, "1")
	pass, err := couponsdb.NewWallet(w.DB).Sheet(ctx, 2)
	check("the pass", pass.Drop, err, "Moon cake night")

	team := accessdb.NewStaff(w.DB)
	members, err := team.Members(ctx)
	check("the members", len(members), err, "2")
	keys, err := team.Keys(ctx)
	check("the keys", len(keys), err, "1")
	views, err := team.Views(ctx, 1, "templates")
	check("the views", len(views), err, "1")
	log, err := accessdb.NewAudit(w.DB).Search(ctx, staff.AuditQuery{Limit: 10})
	check("the audit log", len(log.List), err, "1")
	grant, err := w.Jobs.Job(ctx, 1)
	check("the job", grant.State, err, string(job.Done))
	box, err := seal.New("test")
	w.Must(err)
	alerts := workdb.NewAlerts(w.DB, box)
	told, err := alerts.Alerts(ctx, staff.Member{ID: 1}, 0, 10)
	check("the alerts", len(told), err, "1")
	groups, err := alerts.Destinations(ctx, nil)
	check("the destinations", len(groups), err, "1")
	hooks, err := workdb.NewHooks(w.DB).Endpoints(ctx, nil)
	check("the endpoints", len(hooks), err, "1")
}

func connected(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// load executes the statements of a file.
func load(t *testing.T, conn *pgx.Conn, text string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(t.Context(), text).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// rowCounts returns how many rows each table has. The tables per day are counted as one table.
func rowCounts(t *testing.T, conn *pgx.Conn) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	for _, table := range column(t, conn, `select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
		and not (relispartition and relname ~ '^handled_events_[0-9]+$')`) {
		var n int64
		musttest.OK(t, conn.QueryRow(t.Context(), `select count(*) from `+pgx.Identifier{table}.Sanitize()).Scan(&n))
		counts[table] = n
	}
	return counts
}

// schemaOf describes all columns, constraints, indexes, functions, triggers and views of the
// database, one line each, without the tables per day.
func schemaOf(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	return column(t, conn, `
		with things as (
			select oid, relname, relkind, relpersistence, reloptions from pg_class where relnamespace = 'public'::regnamespace and relname !~ '^handled_events_[0-9]+'
		)
		select format('%s %s %s %s', relkind, relname, relpersistence, reloptions) from things
		union all
		select format('column %s.%s %s %s %s %s %s', t.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attstorage, pg_get_expr(d.adbin, d.adrelid))
			from things t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped left join pg_attrdef d on d.adrelid = t.oid and d.adnum = a.attnum
			where t.relkind in ('r', 'p', 'v')
		union all
		select format('constraint %s %s %s', t.relname, c.conname, pg_get_constraintdef(c.oid)) from things t join pg_constraint c on c.conrelid = t.oid
		union all
		select format('%s', pg_get_indexdef(i.indexrelid)) from things t join pg_index i on i.indexrelid = t.oid
		union all
		select pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
		union all
		select pg_get_triggerdef(g.oid) from things t join pg_trigger g on g.tgrelid = t.oid and not g.tgisinternal
		union all
		select format('view %s %s', t.relname, pg_get_viewdef(t.oid)) from things t where t.relkind = 'v'
		order by 1`)
}

func column(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	musttest.OK(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	musttest.OK(t, err)
	return list
}
