package delivery

import (
	"strconv"
	"time"
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

// changesSQL is the part of a page's statement that reads the present snapshot, the history and
// the database's time; whether the snapshot $2 with the history $3 and the time $4 can be used;
// and up to $6 changes since. The changes since a snapshot are those of transactions that began
// later, and of transactions that were under way, however long they stay so.
func (m *inboxMemory) changesSQL() (with, columns string) {
	return `
here as materialized (select pg_current_snapshot() as now, ` + m.history + ` as history),
changed as materialized (
    (select changed, topic, topic_id, batch_id from inbox_changes, here
    where changed >= pg_snapshot_xmax($2::text::pg_snapshot) and changed < pg_snapshot_xmax(now) limit $6::int)
    union all
    (select changed, topic, topic_id, batch_id from inbox_changes
    where changed = any(array(select pg_snapshot_xip($2::text::pg_snapshot))) limit $6::int)
)`, `
here.now::text, coalesce(here.history, ''), clock_timestamp(), coalesce(here.history = $3 and clock_timestamp() < $4::timestamptz + $5::interval, false),
array(select changed::text from changed), array(select topic from changed), array(select topic_id from changed), array(select batch_id from changed)`
}

// changes are the answer of changesSQL.
type changes struct {
	since, now snapshot
	usable     bool
	list       []change
}

// asks returns the parameters of changesSQL, from $2 on.
func (m *inboxMemory) asks() (*changes, []any) {
	m.mu.Lock()
	c := &changes{since: m.since}
	m.mu.Unlock()
	var since any // null is no snapshot
	if c.since.text != "" {
		since = c.since.text
	}
	return c, []any{since, c.since.history, c.since.at, sinceFor, m.most + 1}
}

// columns are the values of the columns of changesSQL.
type columns struct {
	transactions []string
	kinds        []int16
	ids, batches []int64
}

func (c *changes) fields(of *columns) []any {
	return []any{&c.now.text, &c.now.history, &c.now.at, &c.usable, &of.transactions, &of.kinds, &of.ids, &of.batches}
}

func (c *changes) read(of columns) error {
	for i, text := range of.transactions {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		c.list = append(c.list, change{n, topic{of.kinds[i], of.ids[i]}, of.batches[i]})
	}
	return nil
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
