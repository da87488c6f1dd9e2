package lookup

import (
	"context"
	"fmt"
	"slices"

	"github.com/maypok86/otter/v2"

	"dropbell/domain/message"
)

// BookSource is where texts really are.
type BookSource interface {
	// Current returns the versions that count for the place up to one.
	Current(ctx context.Context, p message.Place, upTo int64) ([]message.Version, error)
}

// maxBooks is how many books are kept, and of how many sets of versions a book: each of hundreds
// of shops may have texts of its own. A book with mails in two languages takes about 100 kB
// after these mails were sent.
const maxBooks = 512

// Books caches the books of places; see [message.Source]. The texts of a version never change,
// so no entry becomes stale. A shop's drops without texts of their own have books of the same
// versions. The texts of these versions are compiled once for all of these drops.
type Books struct {
	source BookSource
	cache  *otter.Cache[edition, *message.Book]
	// alike has a book of each set of versions, by their ids.
	alike *otter.Cache[string, *message.Book]
}

// edition is a book as of a version.
type edition struct {
	place message.Place
	upTo  int64
}

// NewBooks returns an empty cache in front of source.
func NewBooks(source BookSource) (*Books, error) {
	cache, err := otter.New(&otter.Options[edition, *message.Book]{MaximumSize: maxBooks, Logger: &otter.NoopLogger{}})
	if err != nil {
		return nil, err
	}
	alike, err := otter.New(&otter.Options[string, *message.Book]{MaximumSize: maxBooks, Logger: &otter.NoopLogger{}})
	return &Books{source, cache, alike}, err
}

// Book returns the texts of the place up to a version. Concurrent callers for the same book
// share one query.
func (b *Books) Book(ctx context.Context, p message.Place, upTo int64) (*message.Book, error) {
	if upTo < 0 {
		versions, err := b.source.Current(ctx, p, message.Newest)
		return message.NewBook(versions), err
	}
	return b.cache.Get(ctx, edition{p, upTo}, otter.LoaderFunc[edition, *message.Book](b.load))
}

func (b *Books) load(ctx context.Context, e edition) (*message.Book, error) {
	if e.upTo == 0 {
		return message.NewBook(nil), nil
	}
	// One caller loads for many: its hanging up must not fail the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadFor)
	defer cancel()
	versions, err := b.source.Current(ctx, e.place, e.upTo)
	book := message.NewBook(versions)
	if err != nil || len(versions) == 0 { // all books without versions share one shelf
		return book, err
	}
	first, added := b.alike.SetIfAbsent(idsOf(versions), book)
	if added {
		return book, nil
	}
	return book.Like(first), nil
}

func idsOf(versions []message.Version) string {
	ids := make([]int64, len(versions))
	for i, v := range versions {
		ids[i] = v.ID
	}
	slices.Sort(ids)
	return fmt.Sprint(ids)
}
