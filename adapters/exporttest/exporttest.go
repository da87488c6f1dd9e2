// Package exporttest is the contract test of the stores of files to which drops are exported, and a
// store in memory that is held to it.
package exporttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"dropbell/domain/export"
)

// Memory is a store of files in memory.
type Memory struct {
	mu    sync.Mutex
	files map[string][]byte
}

// Write is part of [export.Files].
func (m *Memory) Write(_ context.Context, key string, content io.Reader) error {
	b, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = map[string][]byte{}
	}
	m.files[key] = b
	return nil
}

// Read returns a file; nil if there is none.
func (m *Memory) Read(key string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[key]
}

// Files checks that a file is stored as it was written, that a later file replaces it, and that nothing
// is stored if the content fails. read returns a stored file, or nil.
func Files(t *testing.T, files export.Files, read func(key string) []byte) {
	large := make([]byte, 20_000_000)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(large)
	for _, content := range [][]byte{large, []byte("short"), {}} {
		if err := files.Write(t.Context(), "exports/1/a.csv.gz", bytes.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		if got := read("exports/1/a.csv.gz"); !bytes.Equal(got, content) {
			t.Errorf("%d bytes came back as %d, or others", len(content), len(got))
		}
	}
	broken := errors.New("broken")
	for _, n := range []int{0, 10, 19_000_000} {
		err := files.Write(t.Context(), "exports/1/b.csv.gz", io.MultiReader(bytes.NewReader(large[:n]), failing{broken}))
		if !errors.Is(err, broken) {
			t.Errorf("a content that fails after %d bytes: %v", n, err)
		}
		if got := read("exports/1/b.csv.gz"); got != nil {
			t.Errorf("of a content that fails after %d bytes %d are stored", n, len(got))
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
