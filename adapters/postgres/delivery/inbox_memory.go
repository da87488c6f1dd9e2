package delivery

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"dropbell/adapters/postgres/internal/pg"
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
	history    string
	changesSQL func() string // with the history
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
	m.changesSQL = sync.OnceValue(m.newChangesSQL)
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
