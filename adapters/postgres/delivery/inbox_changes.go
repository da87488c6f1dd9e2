package delivery

import (
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
)

// A snapshot is a state of the database up to which the memory knows all changes; the zero
// snapshot knows none.
type snapshot struct {
	text    string // of type pg_snapshot; empty = none
	history string
	at      time.Time // by the database's clock
}

// A change is one batch that a transaction changed; batch 0 stands for all batches of the topic.
type change struct {
	transaction uint64
	topic       topic
	batch       int64
}

// inboxHistorySQL names the server's transaction history and the stored table, so that a table
// that was truncated or restored has another name. It is null until a program has written the
// name; see migration 00145. Each page reads it: [historySQL] would cost a third of the page.
const inboxHistorySQL = `(select name || ' ' || pg_relation_filepath('batches') from inbox_history)`

// newHistorySQL names the history, unless another program has named it.
const newHistorySQL = `insert into inbox_history default values on conflict do nothing`

// newChangesSQL returns a statement that reads the present snapshot, the history and the
// database's time; whether the snapshot $1 with the history $2 and the time $3 can be used;
// and up to $5 changes since. The changes since a snapshot are those of transactions that began
// later, and of transactions that were under way, however long they stay so.
func (m *inboxMemory) newChangesSQL() string {
	return `
with here as materialized (select pg_current_snapshot() as now, ` + m.history + ` as history),
changed as materialized (
    (select changed, topic, topic_id, batch_id from inbox_changes, here
    where changed >= pg_snapshot_xmax($1::text::pg_snapshot) and changed < pg_snapshot_xmax(now) limit $5::int)
    union all
    (select changed, topic, topic_id, batch_id from inbox_changes
    where changed = any(array(select pg_snapshot_xip($1::text::pg_snapshot))) limit $5::int)
)
select here.now::text, coalesce(here.history, ''), clock_timestamp(), coalesce(here.history = $2 and clock_timestamp() < $3::timestamptz + $4::interval, false),
    array(select changed::text from changed), array(select topic from changed), array(select topic_id from changed), array(select batch_id from changed)
from here`
}

// changes are the answer of newChangesSQL.
type changes struct {
	since, now snapshot
	usable     bool
	list       []change
}

// changes returns the changes since the snapshot of the memory, and the statement that reads them.
func (m *inboxMemory) changes() (*changes, pg.Read) {
	m.mu.Lock()
	c := &changes{since: m.since}
	m.mu.Unlock()
	var since any // null is no snapshot
	if c.since.text != "" {
		since = c.since.text
	}
	return c, pg.Read{SQL: m.changesSQL(), Args: []any{since, c.since.history, c.since.at, sinceFor, m.most + 1}, Rows: c.read}
}

// read reads the row of newChangesSQL.
func (c *changes) read(rows pgx.Rows) error {
	var transactions []string
	var kinds []int16
	var ids, batches []int64
	_, err := pgx.ForEachRow(rows, []any{&c.now.text, &c.now.history, &c.now.at, &c.usable, &transactions, &kinds, &ids, &batches}, func() error {
		for i, text := range transactions {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return err
			}
			c.list = append(c.list, change{n, topic{kinds[i], ids[i]}, batches[i]})
		}
		return nil
	})
	return err
}

// parseSnapshot returns the parts of a pg_snapshot: all transactions before first have ended, all
// from last on had not begun, and running were under way.
func parseSnapshot(text string) (first, last uint64, running []uint64) {
	at, parts := 0, [2]uint64{}
	for n := range splitNumbers(text) {
		if at < len(parts) {
			parts[at] = n
		} else {
			running = append(running, n)
		}
		at++
	}
	return parts[0], parts[1], running
}

func splitNumbers(text string) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		n, digits := uint64(0), false
		for i := 0; i <= len(text); i++ {
			if i < len(text) && text[i] >= '0' && text[i] <= '9' {
				n, digits = n*10+uint64(text[i]-'0'), true
				continue
			}
			if digits && !yield(n) {
				return
			}
			n, digits = 0, false
		}
	}
}
