package program

import (
	"fmt"
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
	if err != nil {
		t.Fatal(err)
	}
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

// reportPages are the routes of the console that are [shell.Report]s, with the
// ids of replicaRows.
var reportPages = []string{"/audit", "/audit.csv", "/users?q=Lin", "/users.csv?q=Lin", "/segments", "/segments.csv", "/segments/1?estimate=1", "/campaigns", "/campaigns.csv",
	"/campaigns?view=calendar", "/campaigns/1/recipients", "/campaigns/1/recipients.csv", "/grants", "/grants.csv", "/templates/1/grants", "/codes.csv",
	"/coupons", "/coupons.csv?q=7", "/coupons/locks", "/coupons/locks.csv", "/dead-letters", "/dead-letters/list", "/dead-letters.csv", "/deliveries", "/deliveries.csv",
	"/deliveries/1", "/deliveries/1/recipients.csv", "/templates", "/templates.csv", "/templates/1/balance", "/templates/1/slots/1/receipt.csv"}

const insertTemplate = `insert into templates (shop_number, name, kind, amount_off, currency, target, stock, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state)
	select 10, '%s', 'amount_off', 100, 'CNY', 'shop', 10, 1, date_trunc('second', now()) + interval '1 day', now() + interval '2 days', 48, 'claim', 'durable', 'published'`

var replicaRows = []string{
	`insert into shops (number, name, timezone) values (10, 'Ten', 'UTC') on conflict do nothing`,
	fmt.Sprintf(insertTemplate, "Half price"),
	`insert into slots (template_id, slot, opens_at, due_at, state, fired_at) select id, 1, opens_at, opens_at - interval '5 minutes', 'firing', now() from templates`,
	`insert into users (id, name) values (7, 'Lin')`,
	`insert into segments (name, kind, rule, created_by) values ('All of them', 'rules', '{"all":[{"field":"locale","op":"is","values":["en"]}]}', 'staff:1')`,
	`insert into campaigns (id, shop_number, name, channel, content, audience, starts_at, ends_at, state, creator, created_by) overriding system value
		values (1, 10, 'Monday', 0, '{}', '{"kind":"everybody"}', now(), now() + interval '1 day', 'running', 1, 'staff:1')`,
	`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, due_count)
		values ('reminder', 1, 1, 0, 7, 7, 'done', now(), now() + interval '1 hour', '', 0)`,
}

// TestReportsOfTheConsoleReadTheReplica has a whole program with a streaming
// standby serve every report, with and without replaying.
func TestReportsOfTheConsoleReadTheReplica(t *testing.T) {
	primary := localstack.Primary(t)
	standby := localstack.Standby(t, primary)
	open := func(url string) *pgxpool.Pool {
		pool, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
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
	for _, sql := range replicaRows {
		exec(first, sql)
	}
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

	// The replica stops replaying. The writer sees the change, the reader does
	// not, and is told how old the page's data is.
	exec(second, `select pg_wal_replay_pause()`)
	exec(first, fmt.Sprintf(insertTemplate, "Second thought"))
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
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, path := range reportPages {
		reader.look(path) // any failure ends the test
	}
	eventually(t, "reports are read from the primary", func() bool { return !served(reader) })
}
