// Package catcher receives the messages that Dropbell sends (e-mail, SMS, webhooks and push) on
// a developer's machine and shows them on a small page, so that every channel can be tried
// without a provider.
package catcher

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Kind is how a message arrived; it is also its file's extension.
type Kind string

const (
	Mail    Kind = "eml"
	SMS     Kind = "sms"
	Webhook Kind = "hook"
	Push    Kind = "push"
)

// keep is how many messages of a kind remain; the oldest make room.
const keep = 4000

// message is one line of the list. The content is read from the message's file when the message
// is opened.
type message struct {
	ID    int64 // nanoseconds since 1970 at which it arrived, made unique
	Kind  Kind
	To    string
	Title string
	Key   string // the sender's idempotency key
}

func (m message) At() time.Time { return time.Unix(0, m.ID) }

func (m message) file() string { return strconv.FormatInt(m.ID, 10) + "." + string(m.Kind) }

// store keeps each message in a file of its own. Messages survive a restart and can be read with
// other tools.
type store struct {
	dir string

	mu       sync.Mutex
	messages []message // oldest first
}

func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	s := &store{dir: dir}
	for _, e := range entries {
		if m, ok := s.load(e.Name()); ok {
			s.messages = append(s.messages, m)
		}
	}
	slices.SortFunc(s.messages, func(a, b message) int { return cmp.Compare(a.ID, b.ID) })
	return s, nil
}

// load reads one file's line for the list. Files of other programs are left alone.
func (s *store) load(name string) (message, bool) {
	stem, ext, _ := strings.Cut(name, ".")
	id, err := strconv.ParseInt(stem, 10, 64)
	kind := Kind(ext)
	if err != nil || !slices.Contains([]Kind{Mail, SMS, Webhook, Push}, kind) {
		return message{}, false
	}
	raw, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return message{}, false
	}
	m := describe(kind, raw)
	m.ID = id
	return m, true
}

// add stores a message. A message whose key is already stored is dropped, like a provider drops
// a repetition.
func (s *store) add(kind Kind, raw []byte) error {
	m := describe(kind, raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	repeated := func(old message) bool { return m.Key != "" && old.Kind == kind && old.Key == m.Key }
	if slices.ContainsFunc(s.messages, repeated) {
		return nil
	}
	m.ID = time.Now().UnixNano()
	if n := len(s.messages); n > 0 {
		m.ID = max(m.ID, s.messages[n-1].ID+1)
	}
	if err := os.WriteFile(filepath.Join(s.dir, m.file()), raw, 0o600); err != nil {
		return fmt.Errorf("store message: %w", err)
	}
	s.messages = append(s.messages, m)
	return s.trim(kind)
}

// trim removes the oldest message of a kind when there are too many.
func (s *store) trim(kind Kind) error {
	count, oldest := 0, -1
	for i, m := range s.messages {
		if m.Kind != kind {
			continue
		}
		if count++; oldest < 0 {
			oldest = i
		}
	}
	if count <= keep {
		return nil
	}
	old := s.messages[oldest]
	s.messages = slices.Delete(s.messages, oldest, oldest+1)
	err := os.Remove(filepath.Join(s.dir, old.file()))
	if errors.Is(err, os.ErrNotExist) { // the file was deleted by hand
		return nil
	}
	return err
}

// list returns the newest messages of a kind first, at most limit, whose recipients contain to.
// total counts all matching messages.
func (s *store) list(kind Kind, to string, limit int) (found []message, total int) {
	to = strings.ToLower(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range slices.Backward(s.messages) {
		if m.Kind != kind || !strings.Contains(strings.ToLower(m.To), to) {
			continue
		}
		if total++; len(found) < limit {
			found = append(found, m)
		}
	}
	return found, total
}

// read returns a message with its content.
func (s *store) read(id int64) (message, []byte, bool) {
	s.mu.Lock()
	i, ok := slices.BinarySearchFunc(s.messages, id, func(m message, id int64) int { return cmp.Compare(m.ID, id) })
	if !ok {
		s.mu.Unlock()
		return message{}, nil, false
	}
	m := s.messages[i]
	s.mu.Unlock()
	raw, err := os.ReadFile(filepath.Join(s.dir, m.file()))
	return m, raw, err == nil
}
