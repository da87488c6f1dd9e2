package program

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/musttest"
)

// member is a member signed in to the console of a node.
type member struct {
	*testing.T
	node
	*http.Client
}

const memberPassword = "ring the bell at noon"

func (n node) signIn(t *testing.T) member {
	t.Helper()
	jar, err := cookiejar.New(nil)
	musttest.OK(t, err)
	m := member{t, n, &http.Client{Jar: jar}}
	m.send("/signin", url.Values{"email": {"ada@dropbell.test"}, "password": {memberPassword}})
	return m
}

func (m member) send(path string, form url.Values) {
	m.Helper()
	answer, err := m.PostForm("http://"+m.address+path, form)
	if err != nil {
		m.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK { // behind the redirect
		body, _ := io.ReadAll(answer.Body)
		m.Fatalf("POST %s: %d %s", path, answer.StatusCode, body)
	}
}

// look returns a page, and whether it was read from the replica alone.
func (m member) look(path string) (page string, fromReplica bool) {
	m.Helper()
	replica, primary := m.reports()
	answer, err := m.Get("http://" + m.address + path)
	if err != nil {
		m.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		m.Fatalf("GET %s: %d %v %s", path, answer.StatusCode, err, body)
	}
	toReplica, toPrimary := m.reports()
	return string(body), toReplica == replica+1 && toPrimary == primary
}

var reportsLine = regexp.MustCompile(`(?m)^dropbell_reports_total\{database="(replica|primary)"\} (\d+)`)

func (m member) reports() (replica, primary int) {
	m.Helper()
	answer, err := http.Get("http://" + m.address + "/metrics")
	if err != nil {
		m.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		m.Fatal(err)
	}
	for _, line := range reportsLine.FindAllStringSubmatch(string(body), -1) {
		n, _ := strconv.Atoi(line[2])
		if line[1] == "replica" {
			replica = n
		} else {
			primary = n
		}
	}
	return replica, primary
}

// reportPages are the console's routes that are a [shell.Report], with the ids of replicaRows.
var reportPages = []string{"/audit", "/audit.csv", "/users?q=Lin", "/users.csv?q=Lin", "/segments", "/segments.csv", "/segments/1?estimate=1", "/campaigns", "/campaigns.csv",
	"/campaigns?view=calendar", "/campaigns/1/recipients", "/campaigns/1/recipients.csv", "/grants", "/grants.csv", "/templates/1/grants", "/codes.csv",
	"/coupons", "/coupons.csv?q=7", "/coupons/locks", "/coupons/locks.csv", "/dead-letters", "/dead-letters/list", "/dead-letters.csv", "/deliveries", "/deliveries.csv",
	"/deliveries/1", "/deliveries/1/recipients.csv", "/templates", "/templates.csv", "/templates/1/balance", "/templates/1/slots/1/receipt.csv"}

// replicaRows inserts the rows that the report pages show.
func replicaRows(t *testing.T, db rows.DB) {
	t.Helper()
	drop := rows.Drop{Name: "Half price"}.Add(t, db)
	rows.Insert(t, db, "slots", rows.Row{"template_id": drop, "state": "firing", "fired_at": rows.SQL("now()")})
	rows.Insert(t, db, "users", rows.Row{"id": 7, "name": "Lin"})
	rows.Insert(t, db, "segments", rows.Row{"name": "All of them", "kind": "rules", "rule": `{"all":[{"field":"locale","op":"is","values":["en"]}]}`, "created_by": "staff:1"})
	rows.Insert(t, db, "campaigns", rows.Row{"shop_number": 10, "name": "Monday", "audience": `{"kind":"everybody"}`, "state": "running"})
	rows.Insert(t, db, "batches", rows.Row{"template_id": drop, "from_user": 7, "to_user": 7, "state": "done", "due_count": 0})
}

// TestReportsOfTheConsoleReadTheReplica: a whole program with a streaming standby serves every
// report, with replay running and paused.
func TestReportsOfTheConsoleReadTheReplica(t *testing.T) {
	primary := localstack.Primary(t)
	standby := localstack.Standby(t, primary)
	open := func(url string) *pgxpool.Pool {
		pool, err := pgxpool.New(t.Context(), url)
		musttest.OK(t, err)
		t.Cleanup(pool.Close)
		return pool
	}
	exec := func(pool *pgxpool.Pool, sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	first, second := open(primary.URL()), open(standby.URL())
	replicaRows(t, first)
	n := startNode(t, map[string]string{"DATABASE_URL": primary.URL(), "DATABASE_REPLICA_URL": standby.URL(), "DATABASE_REPLICA_MAX_LAG": "1h",
		"REDIS_URL": localstack.RedisServer(t).URL(), "HTTP_ADDR": "127.0.0.1:0", "ADMIN_EMAIL": "ada@dropbell.test", "ADMIN_PASSWORD": memberPassword,
		"CONSOLE_SECOND_FACTOR": "optional"})
	writer, reader := n.signIn(t), n.signIn(t)
	served := func(m member) bool { _, from := m.look("/templates"); return from }
	eventually(t, "both members' reports are read from the replica", func() bool { return served(writer) && served(reader) })
	for _, path := range reportPages {
		if page, from := reader.look(path); !from {
			t.Errorf("%s was not read from the replica\n%.300s", path, page)
		}
	}

	// The replica stops replaying. A member who has just changed something reads the primary.
	// Other members read the replica, and the page tells them how old its data is.
	exec(second, `select pg_wal_replay_pause()`)
	rows.Drop{Name: "Second thought"}.Add(t, first)
	writer.send("/preferences", url.Values{"theme": {"dark"}})
	if page, from := writer.look("/templates"); from || !strings.Contains(page, "Second thought") || strings.Contains(page, "behind-note") {
		t.Errorf("after a change, read from the replica %v: %.200s", from, page)
	}
	eventually(t, "the reader is told of the lag", func() bool {
		page, from := reader.look("/templates")
		if !from || strings.Contains(page, "Second thought") {
			t.Errorf("without a change, read from the replica %v", from)
		}
		return strings.Contains(page, "behind-note")
	})
	exec(second, `select pg_wal_replay_resume()`)
	eventually(t, "both see the replica's newest state", func() bool {
		page, from := reader.look("/templates")
		return from && strings.Contains(page, "Second thought") && served(writer)
	})

	// Without a standby pages come from the primary.
	musttest.OK(t, standby.Kill())
	for _, path := range reportPages {
		reader.look(path) // any failure ends the test
	}
	eventually(t, "reports are read from the primary", func() bool { return !served(reader) })
}
