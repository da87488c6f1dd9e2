package delivery

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// inboxMemory remembers the in-app batches of topics that many readers ask for. After a fan-out
// a million users open their inboxes within minutes; without the memory each page looks up a
// batch for each slot and channel. Each page reads, in the round trip that it needs anyway, which
// batches have changed since the remembered snapshot, and the memory reads these batches again
// before it answers. So a page is as new as a page that reads all batches.
//
// Topics that are not remembered are read from the database; see [inboxMemory.split].
type inboxMemory struct {
	db *pg.DB
	// history is SQL that names the server's transaction history; see [historySQL].
	history string
	pageSQL func() string // with the history
	// enough is the number of pages within askedFor that makes the memory read a topic.
	enough int
	// most is the number of changes above which everything is forgotten.
	most int
	// room is the number of bytes of all remembered batches.
	room int

	// applying is held while changes are applied, so that concurrent pages do not read the same
	// changed batches again. It is taken before mu.
	applying sync.Mutex
	mu       sync.Mutex // of the fields below
	since    snapshot
	topics   map[topic]*topicBatches
	applied  map[change]bool
	size     int
	tidied   time.Time
	recent   recentCampaigns

	life    context.Context
	end     context.CancelFunc
	reading sync.WaitGroup
}

const (
	// askedFor is the time after which the pages that asked for a topic are counted anew.
	askedFor = time.Minute
	// unasked is the time after which a topic that no page asked for may be forgotten.
	unasked = time.Minute
	// sinceFor is the time for which a snapshot can be used, by the database's clock. It is
	// shorter than the time for which housekeeping keeps changes.
	sinceFor = 20 * time.Minute
	// appliedMost bounds the applied changes, of which a transaction that is open for hours
	// would keep more and more.
	appliedMost = 100_000
	// campaignsFor is how long the list of recent campaigns is used, unless a message of
	// another campaign is sent.
	campaignsFor = time.Second
)

func newInboxMemory(db *pg.DB) *inboxMemory {
	life, end := context.WithCancel(context.Background())
	m := &inboxMemory{db: db, history: inboxHistorySQL, enough: 64, most: 2000, room: 256 << 20, life: life, end: end}
	m.forget(snapshot{})
	m.pageSQL = sync.OnceValue(m.newPageSQL)
	return m
}

// close ends the reading of topics.
func (m *inboxMemory) close() {
	m.mu.Lock() // see begin
	m.end()
	m.mu.Unlock()
	m.reading.Wait()
}

// A topic is what the batches of an inbox are about.
type topic struct {
	kind int16
	id   int64
}

// The kinds of topics, as migration 00145 stores them.
const (
	dropTopic int16 = iota
	campaignTopic
	testTopic // the test messages of all campaigns
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

// topicBatches are the batches of a topic with sent messages, and how often the topic is asked
// for.
type topicBatches struct {
	asked   int
	first   time.Time // of the pages that are counted in asked
	loading bool
	again   map[int64]bool // batches that changed while the topic was being read
	loaded  bool
	used    time.Time
	size    int
	owners  owners
}

type batchOwner struct {
	kind delivery.Kind
	id   int64
}

// appBatch is one in-app batch.
type appBatch struct {
	id       int64
	owner    batchOwner
	topic    topic
	slot     template.Slot
	opensAt  time.Time
	dueAt    time.Time
	at       time.Time // of the messages without an exception
	from, to user.ID
	textsTo  int64
	sent     *roaring64.Bitmap
	size     int
	// recovered are the recipients with an exception and the instants of their messages.
	recovered map[user.ID]time.Time
}

// message returns the message of the batch for the user; false if the user has none.
func (b *appBatch) message(by user.ID) (message, bool) {
	if by < b.from || by > b.to {
		return message{}, false
	}
	at, is := b.recovered[by]
	if !b.sent.Contains(uint64(by)) {
		return message{}, false
	}
	if !is {
		at = b.at
	}
	if b.topic.kind != dropTopic {
		m := message{Message: inbox.Message{ID: inbox.MessageID(b.owner.kind, b.owner.id, b.dueAt), Kind: b.owner.kind, DueAt: b.dueAt, At: at}, batch: b.id}
		if b.topic.kind == campaignTopic {
			m.campaign = campaignKey{b.owner.id, b.textsTo}
		}
		return m, true
	}
	return reminderOf(reminder.Delivered{Kind: b.owner.kind, SlotID: b.owner.id, TemplateID: b.topic.id, Slot: b.slot, OpensAt: b.opensAt,
		DueAt: b.dueAt, At: at, TextsUpTo: b.textsTo}), true
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

// apply reads the changed batches of remembered topics. It returns false if the memory cannot
// answer this page.
func (m *inboxMemory) apply(ctx context.Context, c *changes) (bool, error) {
	if m.known(c) { // nearly always
		return true, nil
	}
	m.applying.Lock()
	defer m.applying.Unlock()
	m.mu.Lock()
	if c.since.history != m.since.history || c.since.text == "" || !c.usable || len(c.list) > m.most || len(m.applied) > appliedMost {
		// Concurrent pages with the same older snapshot forget only once.
		if c.since == m.since && c.now.history != "" {
			m.forget(c.now)
		}
		m.mu.Unlock()
		if c.now.history == "" {
			_, err := m.db.Pool.Exec(ctx, newHistorySQL)
			return false, pg.Translate(err)
		}
		return false, nil
	}
	again := map[topic][]int64{}
	for _, n := range c.list {
		if of := m.topics[n.topic]; !m.applied[n] && of != nil {
			switch {
			case n.batch == 0:
				m.drop(n.topic)
			case of.loading:
				of.again[n.batch] = true
			case of.loaded:
				again[n.topic] = append(again[n.topic], n.batch)
			}
		}
		if n.topic.kind != dropTopic && !m.applied[n] {
			m.recent = recentCampaigns{dropped: m.recent.dropped + 1}
		}
	}
	m.mu.Unlock()
	for t, ids := range again {
		if err := m.readAgain(ctx, t, ids); err != nil {
			return false, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.since.history != c.since.history || m.since.text == "" { // forgotten meanwhile
		return false, nil
	}
	for _, n := range c.list {
		m.applied[n] = true
	}
	m.advance(c.now)
	return true, nil
}

// known reports whether all changes are applied already.
func (m *inboxMemory) known(c *changes) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !c.usable || c.since.text == "" || c.since.history != m.since.history || len(c.list) > m.most {
		return false
	}
	for _, n := range c.list {
		if !m.applied[n] {
			return false
		}
	}
	m.advance(c.now)
	return true
}

// advance makes now the snapshot of the memory if it is later. All its changes are applied.
func (m *inboxMemory) advance(now snapshot) {
	if now.history != m.since.history || !now.at.After(m.since.at) {
		return
	}
	m.since = now
	if len(m.applied) == 0 {
		return
	}
	first, last, running := parseSnapshot(now.text)
	maps.DeleteFunc(m.applied, func(c change, _ bool) bool {
		return c.transaction < first || c.transaction < last && !slices.Contains(running, c.transaction)
	})
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

// forget drops all topics. The caller holds mu.
func (m *inboxMemory) forget(now snapshot) {
	m.since, m.topics, m.applied, m.size = now, map[topic]*topicBatches{}, map[change]bool{}, 0
	m.recent = recentCampaigns{dropped: m.recent.dropped + 1}
}

// campaigns returns the remembered list of campaigns.
func (m *inboxMemory) campaigns() recentCampaigns {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recent
}

// keepCampaigns remembers the list, unless a campaign has sent messages since it was read.
func (m *inboxMemory) keepCampaigns(list recentCampaigns) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if list.dropped == m.recent.dropped {
		m.recent = list
	}
}

// drop forgets one topic. The caller holds mu.
func (m *inboxMemory) drop(t topic) {
	if of := m.topics[t]; of != nil {
		m.size -= of.size
		delete(m.topics, t)
	}
}

// split adds the user's messages of remembered topics to list, from batches of owners with ids
// from first on, and returns the ids of the topics that must be read from the database. A topic
// that many pages ask for is read in the background.
func (m *inboxMemory) split(kind int16, ids []int64, first int64, by user.ID, list *[]message) (unknown []int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.tidy(now)
	for _, id := range ids {
		t := topic{kind, id}
		of := m.topics[t]
		if of == nil {
			of = &topicBatches{}
			m.topics[t] = of
		}
		of.used = now
		if of.loaded {
			of.collect(by, first, list)
			continue
		}
		unknown = append(unknown, id)
		if now.Sub(of.first) > askedFor {
			of.asked, of.first = 0, now
		}
		if of.asked++; of.asked >= m.enough && !of.loading {
			m.begin(t, of)
		}
	}
	return unknown
}

// tidy removes the counters of topics that are no longer asked for. The caller holds mu.
func (m *inboxMemory) tidy(now time.Time) {
	const most = 10_000
	if len(m.topics) > most && now.Sub(m.tidied) > askedFor {
		m.tidied = now
		maps.DeleteFunc(m.topics, func(_ topic, of *topicBatches) bool { return !of.loaded && !of.loading && now.Sub(of.used) > askedFor })
	}
}

// collect adds the messages of the topic that reached the user, of owners with ids from first on.
func (of *topicBatches) collect(by user.ID, first int64, list *[]message) {
	for _, o := range of.owners {
		if o.id < first {
			continue
		}
		if o.kind == delivery.KindTest { // repeated tests share ranges
			for _, b := range o.batches {
				if m, is := b.message(by); is {
					*list = append(*list, m)
				}
			}
			continue
		}
		at, is := slices.BinarySearchFunc(o.batches, by, func(b *appBatch, id user.ID) int { return cmp.Compare(b.from, id) })
		if !is {
			at--
		}
		if at < 0 {
			continue
		}
		if m, is := o.batches[at].message(by); is {
			*list = append(*list, m)
		}
	}
}

// begin reads the topic in the background. The caller holds mu.
func (m *inboxMemory) begin(t topic, of *topicBatches) {
	if m.life.Err() != nil || m.since.text == "" {
		return
	}
	of.loading, of.again = true, map[int64]bool{}
	m.reading.Go(func() {
		ctx, cancel := context.WithTimeout(m.life, readingFor)
		defer cancel()
		m.read(ctx, t, of)
	})
}

// read reads all batches of the topic, and again those that changed meanwhile. If this fails,
// pages go on to read the topic from the database.
func (m *inboxMemory) read(ctx context.Context, t topic, of *topicBatches) {
	all, size := owners{}, 0
	for ids := []int64(nil); ; {
		batches, err := m.batches(ctx, t, ids)
		for _, b := range batches {
			size += all.put(b)
		}
		m.mu.Lock()
		ids = slices.Collect(maps.Keys(of.again))
		clear(of.again)
		if err != nil || len(ids) == 0 || m.topics[t] != of {
			of.loading, of.again, of.asked, of.first = false, nil, 0, time.Now()
			if err == nil && m.topics[t] == of && m.makeRoom(size) {
				of.loaded, of.owners, of.size = true, all, size
				m.size += size
			}
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
	}
}

// makeRoom reports whether there is room for batches of size bytes. For them it forgets topics
// that no page has asked for lately, the longest unasked first. The caller holds mu.
func (m *inboxMemory) makeRoom(size int) bool {
	if m.size+size <= m.room {
		return true
	}
	for _, t := range slices.SortedFunc(maps.Keys(m.topics), func(a, b topic) int { return m.topics[a].used.Compare(m.topics[b].used) }) {
		if of := m.topics[t]; of.loaded && time.Since(of.used) > unasked && m.size+size > m.room {
			m.drop(t)
		}
	}
	return m.size+size <= m.room
}

// owners are the batches of a topic, by owner.
type owners []*ownBatches

// ownBatches are the batches of one owner by from, ascending.
type ownBatches struct {
	batchOwner
	batches []*appBatch
}

// put adds the batch, or replaces it, and returns by how many bytes the batches have grown.
func (o *owners) put(b *appBatch) (grown int) {
	i := slices.IndexFunc(*o, func(of *ownBatches) bool { return of.batchOwner == b.owner })
	if i < 0 {
		i = len(*o)
		*o = append(*o, &ownBatches{batchOwner: b.owner})
	}
	of := (*o)[i]
	at, _ := slices.BinarySearchFunc(of.batches, b.from, func(b *appBatch, from user.ID) int { return cmp.Compare(b.from, from) })
	for i := at; i < len(of.batches) && of.batches[i].from == b.from; i++ {
		if had := of.batches[i]; had.id == b.id {
			of.batches[i] = b
			return b.size - had.size
		}
	}
	of.batches = slices.Insert(of.batches, at, b)
	return b.size
}

// readAgain reads changed batches of a topic. The caller holds applying.
func (m *inboxMemory) readAgain(ctx context.Context, t topic, ids []int64) error {
	batches, err := m.batches(ctx, t, ids)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.topics[t]
	if of == nil || !of.loaded {
		return nil
	}
	for _, b := range batches {
		grown := of.owners.put(b)
		of.size, m.size = of.size+grown, m.size+grown
	}
	return nil
}

// appBatchSQL returns in-app batches with sent messages.
const appBatchSQL = `
select b.id, b.kind, b.owner_id, coalesce(s.slot, 0), coalesce(s.opens_at, a.opens_at, '0001-01-01'),
    case b.kind when 'reminder' then ` + pg.SlotDueAt + ` when 'correction' then a.created_at when 'cancelled' then a.created_at else b.due_at end,
    coalesce(b.finished_at, b.started_at, b.created_at), b.from_user, b.to_user, b.messages_upto, b.sent, e.users, e.instants
from batches b
left join slots s on b.kind = 'reminder' and s.id = b.owner_id
left join announcements a on b.kind in ('correction', 'cancelled') and a.id = b.owner_id
left join lateral (select array_agg(user_id) as users, array_agg(last_at) as instants
    from exceptions e where e.batch_id = b.id and e.outcome not in ('skipped', 'expired')) e on true
where b.channel = 0 and b.sent is not null and (b.kind in ('campaign', 'test') or coalesce(s.id, a.id) is not null) and `

// topicSQL selects the batches of a topic $1.
var topicSQL = map[int16]string{
	dropTopic:     appBatchSQL + `b.template_id = $1 and b.kind in ('reminder', 'correction', 'cancelled')`,
	campaignTopic: appBatchSQL + `b.kind = 'campaign' and b.owner_id = $1`,
	testTopic:     appBatchSQL + `b.kind = 'test' and b.owner_id >= $1`,
}

// batches returns the batches of the topic, or those among ids.
func (m *inboxMemory) batches(ctx context.Context, t topic, ids []int64) (list []*appBatch, err error) {
	sql, arg := topicSQL[t.kind], any(t.id)
	if ids != nil {
		sql, arg = appBatchSQL+`b.id = any($1)`, ids
	}
	err = m.db.PlannedOnce(ctx, sql, []any{arg}, func(rows pgx.Rows) error {
		for rows.Next() {
			b := &appBatch{topic: t, sent: roaring64.New()}
			var sent []byte
			var users []user.ID
			var instants []time.Time
			if err := rows.Scan(&b.id, &b.owner.kind, &b.owner.id, &b.slot, &b.opensAt, &b.dueAt, &b.at, &b.from, &b.to, &b.textsTo, &sent, &users, &instants); err != nil {
				return err
			}
			if _, err := b.sent.FromUnsafeBytes(sent); err != nil { // which are kept
				return err
			}
			for i, id := range users {
				if b.recovered == nil {
					b.recovered = map[user.ID]time.Time{}
				}
				b.recovered[id] = instants[i]
			}
			const batch, exception = 400, 48 // bytes, about
			b.size = batch + len(sent) + exception*len(users)
			list = append(list, b)
		}
		return rows.Err()
	})
	return list, pg.Translate(err)
}
