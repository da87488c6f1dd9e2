package delivery

import "dropbell/adapters/postgres/internal/pg"

// NewRememberingInbox returns a store that reads a topic after so many pages and forgets all
// topics after more than most changes. The table histories gives the name of the server's history,
// because other tests on the server make checkpoints.
func NewRememberingInbox(db *pg.DB, pages, most int) Inbox {
	s := NewInbox(db, pg.Grouping{})
	s.memory.enough, s.memory.most, s.memory.history = pages, most, `(select name from histories)`
	s.texts = newInboxTexts(0)
	return s
}

// Remembered waits until no topic is being read and returns how many topics are remembered, and
// how many bytes their batches have.
func (s Inbox) Remembered() (topics, size int) {
	s.memory.reading.Wait()
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	for _, of := range s.memory.topics {
		if of.loaded {
			topics++
		}
	}
	return topics, s.memory.size
}

// Room sets how many bytes the remembered batches may have.
func (s Inbox) Room(size int) { s.memory.room = size }
